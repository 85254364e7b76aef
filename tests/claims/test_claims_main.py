"""Main results: the word follows from all readings by one rule, and every main result has one."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from benchmarks.claims import stored_numbers
from benchmarks.claims.claim import SCALES, Sample
from benchmarks.claims.files import MainResult, Paper
from benchmarks.claims.kinds import KINDS
from reports.claims import matrix
from reports.claims.main_results import DECIDED, Outcome, scope
from reports.claims.readings import Reading
from reports.claims.verdicts import Verdict

TOY = Paper("toy", "Toy et al.", words={"beta": "β"})
PAPER, STAND_IN, READ = ("paper", "paper"), ("paper", "stand-in"), ("reading", "paper")
OWN = "paper's workload"
Case = tuple[str, tuple[str, str]]  # word, arrangement and workload


def outcome(*cases: Case, open_: str = "") -> Outcome:
    """A main result with these readings; β is 1 for every second one."""
    readings = tuple(reading(f"T-row/{at}", *case, beta=at % 2) for at, case in enumerate(cases))
    result = MainResult(id="it", words="It works", place="§1", readings=("T-row/*",), open=open_)
    return Outcome(TOY, result, readings)


def reading(
    id_: str, word: str, how: tuple[str, str], beta: int = 0, bound: bool = False, **more: object
) -> Reading:
    """A reading with this verdict."""
    claim = KINDS["theorem" if bound else "better"].model_construct(
        id=id_,
        kind="better",
        arrangement=how[0],
        workload=how[1],
        case={"beta": beta},
        bound=bound,
        a=Sample(),
        b=Sample(),
        **more,
    )
    return Reading(TOY, claim, "small", Verdict(word, 3.0 + beta if bound else 0.1))


@pytest.mark.parametrize(
    ("cases", "word", "scopes"),
    [
        ([], "not run", ""),
        ([("undecided", PAPER), ("not run", PAPER)], "undecided", ""),
        ([("reported", PAPER)], "undecided", ""),
        (
            [("confirmed", PAPER), ("confirmed", STAND_IN), ("not run", READ)],
            "holds",
            f"{OWN} 1 of 1, stand-ins 1 of 1",
        ),
        (
            [*[("confirmed", STAND_IN)] * 4, ("refuted", PAPER)],
            "mostly holds",
            f"{OWN} 0 of 1, stand-ins 4 of 4",
        ),
        ([("confirmed", PAPER), ("no effect", PAPER)], "mixed", f"{OWN} 1 of 2"),
        (
            [("confirmed", PAPER), *[("refuted", STAND_IN)] * 4],
            "mostly fails",
            f"{OWN} 1 of 1, stand-ins 0 of 4",
        ),
        ([("equal", PAPER), ("refuted", PAPER)], "fails", f"{OWN} 0 of 2"),
        ([("leans for", PAPER), ("leans against", PAPER), ("compatible", PAPER)], "undecided", ""),
        ([("confirmed", PAPER), ("leans against", STAND_IN)], "mostly holds", f"{OWN} 1 of 1"),
        ([("refuted", STAND_IN), ("leans for", PAPER)], "mostly fails", "stand-ins 0 of 1"),
    ],
)
def test_the_word_of_a_main_result_and_its_scopes(cases: list[Case], word: str, scopes: str) -> None:
    assert (outcome(*cases).word, matrix.scoped(outcome(*cases))) == (word, scopes and f" ({scopes})")
    assert outcome(*reversed(cases)).word == word  # whatever the order


@pytest.mark.parametrize("more", [{"twin": True}, {"stated_by": "ours"}, {"outside_conditions": True}])
def test_twins_statements_of_ours_and_what_is_outside_conditions_decide_nothing(more: dict[str, Any]) -> None:
    here = outcome(("confirmed", PAPER), ("confirmed", STAND_IN))
    others = [reading(f"T-row/{at}", "refuted", PAPER, **more) for at in range(9)]
    both = Outcome(TOY, here.result, (*here.readings, *others))
    assert (both.word, len(both.decided), both.share) == ("holds", 2, 1)
    assert both.pooled == here.pooled
    assert Outcome(TOY, here.result, tuple(others)).word == "undecided"


def test_theorems_are_toys_unless_they_print_a_number() -> None:
    theorem = reading("T-row/0", "confirmed", PAPER, bound=True)
    printed = replace(theorem, claim=theorem.claim.model_copy(update={"printed": "3.2"}))
    assert (scope(theorem), scope(printed)) == ("toy", "paper's workload")


def test_what_it_depends_on_is_what_separates_best() -> None:
    """Of arrangement, workload, scale and β: that with the fewest readings on the wrong side."""
    word = {0: "confirmed", 1: "refuted"}
    by_beta = outcome(*[(word[at % 2], (PAPER, STAND_IN)[at // 2 % 2]) for at in range(8)])
    assert by_beta.divide is not None
    assert (by_beta.divide.name, by_beta.divide.counts) == ("β", {"0": (4, 4), "1": (0, 4)})
    assert "By β: holds for 0 (4 of 4); fails for 1 (0 of 4)." in matrix.sentence(by_beta)
    by_workload = outcome(*[(word[at // 2 % 2], (PAPER, STAND_IN)[at // 2 % 2]) for at in range(8)])
    assert by_workload.divide is not None and by_workload.divide.name == "workload"
    alike = outcome(*[("confirmed", PAPER)] * 4, *[("refuted", PAPER)] * 4)
    assert alike.divide is None and "By " not in matrix.sentence(alike)
    two = outcome(("confirmed", PAPER), ("refuted", PAPER))  # too few for an adjusted R²
    assert two.divide is not None and two.divide.few
    assert matrix.where(two) == "By β (few readings): holds for 0 (1 of 1); fails for 1 (0 of 1)."
    later = tuple(reading(f"T-row/u{at}", "undecided", PAPER, beta=2) for at in range(3))
    more = replace(by_beta, readings=(*by_beta.readings, *later))
    assert "; undecided for 2 (3 readings)." in matrix.where(more)
    first, *others = by_beta.readings
    without = replace(first, claim=first.claim.model_copy(update={"case": {}}))
    assert replace(by_beta, readings=(without, *others)).divide is None  # not all of them have a β


def test_the_sentence_counts_each_kind_of_evidence_by_itself() -> None:
    cases = [*[("refuted", PAPER)] * 3, ("confirmed", PAPER), ("equal", PAPER), ("not run", PAPER)]
    here = outcome(*cases, ("undecided", PAPER), open_="p is lost.")
    assert matrix.counts(here) == (
        "Behind in 3 of 5 decided comparisons, ahead in 1, equal in 1; 1 undecided; 1 reading not run "
        "(an evening of two cores)."
    )
    assert matrix.sentence(here).endswith(" p is lost.")
    bounds = [reading(f"T-row/b{at}", "confirmed", STAND_IN, beta=at, bound=True) for at in (0, 9)]
    both = Outcome(TOY, here.result, (*here.readings, *bounds))
    assert "; 2 of 2 bounds seen to hold, 3.0 to 12 times what is measured; 1 undecided" in matrix.sentence(
        both
    )


def test_who_is_ahead_is_told_of_methods_that_stand_on_one_side() -> None:
    """Where a method leads one reading and follows in another, readings hold or fail."""

    def counts_of(*pairs: tuple[str, str]) -> str:
        one = reading("T-row/0", "confirmed", PAPER)
        sides = [
            {name: Sample(strategy=strategy) for name, strategy in zip("ab", pair, strict=True)}
            for pair in pairs
        ]
        readings = (replace(one, claim=one.claim.model_copy(update=update)) for update in sides)
        return matrix.counts(Outcome(TOY, outcome().result, tuple(readings)))

    assert counts_of(("fedbuff", "asgd"), ("fedbuff", "fedavg")) == "Ahead in 2 of 2 decided comparisons."
    assert counts_of(("fedbuff", "asgd"), ("fedavg", "fedbuff")) == "Holds in 2 of 2 decided experiments."


def test_every_main_result_of_the_papers_has_readings_or_says_that_none_has_run(
    main_results: list[Outcome],
) -> None:
    for one in main_results:
        assert one.readings
        assert (one.word == "not run") is not any(reading.ran for reading in one.readings)
        assert matrix.sentence(one).endswith(".")


def test_no_comparison_of_who_leads_is_left_out_of_the_main_results(
    all_papers: dict[str, Paper], main_results: list[Outcome]
) -> None:
    """Every entry of ACE or ACED against a baseline, whatever it says, is a reading of a main result."""
    used = {reading.claim.id for one in main_results for reading in one.readings}
    leading = (
        "A-best",
        "A-dropout/",
        "A-faster/ace",
        "F-weights-FP",
        "F-F80",
        "F-fedfix-balance",
        "G-per-update",
    )
    # CA²FL against FedBuff, and FedAvg without delay against ACE: no main result says it
    nets = ("", "-cnn", "-resnet", "-resnet-D1", "-resnet18", "-resnet18-D1")
    apart = tuple(f"A-best{net}/ca2fl-fedbuff" for net in nets)
    apart += ("A-best-20ng/fedavg-ace",)
    missing = {
        id_
        for paper in all_papers.values()
        for id_ in paper.claims
        if id_.startswith(leading) and not id_.startswith(apart) and id_ not in used
    }
    assert missing == set()


def test_no_entry_is_a_reading_of_two_main_results(main_results: list[Outcome]) -> None:
    times = Counter(
        (one.paper.name, reading.claim.id, reading.scale) for one in main_results for reading in one.readings
    )
    assert [key for key, n in times.items() if n > 1] == []


def test_every_twin_shares_runs_with_a_reading_that_counts(main_results: list[Outcome]) -> None:
    """Of the same paper, under one of its seeds at least, where both have numbers."""
    runs: dict[tuple[str, str], set[str]] = {}
    for name in {one.paper.name for one in main_results}:
        for scale in SCALES:
            for number in stored_numbers.read(stored_numbers.path(name, scale)):
                runs.setdefault((number.claim, scale), set()).update(number.runs.split())
    counted: dict[str, set[str]] = {}
    for one in main_results:
        for reading in one.deciding:
            counted.setdefault(one.paper.name, set()).update(
                runs.get((reading.claim.id, reading.scale), set())
            )
    for one in main_results:
        for reading in one.readings:
            mine = runs.get((reading.claim.id, reading.scale))
            if reading.claim.twin and mine:
                assert mine & counted[one.paper.name], reading.claim.id


def differences(reading: Reading) -> dict[int, tuple[float, ...]]:
    """The number of each seed that a reading is judged by: a difference, a contrast, or the values."""
    samples = reading.claim.samples
    seeds = set.intersection(*(set(reading.values.get(name, ())) for name in samples))
    found = {}
    for seed in sorted(seeds):
        row = [reading.values[name][seed] for name in samples]
        if reading.claim.kind in {"better", "same"}:
            row = [row[0] - row[1]]
        elif reading.claim.kind == "contrast":
            row = [math.log(value) if getattr(reading.claim, "log", False) else value for value in row]
            row = [sum(sample.times * value for sample, value in zip(samples.values(), row, strict=True))]
        found[seed] = tuple(row)
    return found


def test_no_two_deciding_readings_have_equal_differences(main_results: list[Outcome]) -> None:
    """Up to the sign, under all seeds that both have; of one paper, whichever main result they belong to."""
    by_first: dict[object, list[tuple[str, dict[int, tuple[float, ...]]]]] = {}
    for one in main_results:
        for reading in one.deciding:
            if reading.claim.needs_runs and (mine := differences(reading)):
                first = tuple(round(abs(value), 9) for value in mine[min(mine)])
                key = (one.paper.name, reading.scale, reading.claim.kind, min(mine), first)
                by_first.setdefault(key, []).append((reading.claim.id, mine))
    compared = 0
    for group in by_first.values():
        for (id_, mine), (other_id, other) in itertools.combinations(group, 2):
            seeds = sorted(mine.keys() & other.keys())
            rows = [np.array([table[seed] for seed in seeds]) for table in (mine, other)]
            compared += 1
            alike = any(np.allclose(rows[0], sign * rows[1], rtol=0, atol=1e-12) for sign in (1, -1))
            assert not alike, f"{id_} and {other_id}"
    assert compared  # numbers of a first seed do coincide


def test_the_published_code_is_told_with_its_numbers(
    all_readings: list[Reading], main_results: list[Outcome]
) -> None:
    """Means and points in the text, at both α, from the stored numbers."""
    (one,) = (one for one in main_results if one.result.id == "published-code")
    values: dict[str, Mapping[str, Mapping[int, float]]] = {}
    for reading in all_readings:
        if reading.scale == "small" and reading.claim.id.startswith("A-code"):
            values[reading.claim.id] = reading.values

    def mean(id_: str, side: str) -> str:
        means = [fmean(values[f"{id_}-a{alpha}"][side].values()) for alpha in (0.1, 0.3)]
        return f"{means[0]:.3f} and {means[1]:.3f}"

    def ahead(id_: str) -> list[int]:
        pairs = [values[f"{id_}-a{alpha}"] for alpha in (0.1, 0.3)]
        return [sum(pair["a"][seed] > pair["b"][seed] for seed in pair["a"]) for pair in pairs]

    def points(id_: str) -> list[float]:
        pairs = [values[f"{id_}-a{alpha}"] for alpha in (0.1, 0.3)]
        return [100 * (fmean(pair["a"].values()) - fmean(pair["b"].values())) for pair in pairs]

    told = one.result.open
    fedbuff, ca2fl = "A-code/aced-fedbuff-mean", "A-code/aced-ca2fl"
    order = f"ACED {mean(fedbuff, 'a')}, FedBuff {mean(fedbuff, 'b')}, CA²FL {mean(ca2fl, 'b')}"
    assert f"{order}, ACE {mean('A-code/ace-ca2fl', 'a')}." in told
    assert ahead(ca2fl) == [8, 8] and ahead(fedbuff) == [6, 5]
    words = {reading.claim.id: reading.word for reading in one.readings if reading.ran}
    assert words[f"{ca2fl}-a0.1"] == "confirmed"
    assert {words[f"{fedbuff}-a0.1"], words[f"{fedbuff}-a0.3"]} == {"undecided"}
    behind = [-value for value in points("A-code-uploads/aced-fedbuff-mean")]
    assert f"behind FedBuff by {behind[0]:.1f} and {behind[1]:.1f} points" in told
    repaired = mean("A-code-parts/fedbuff-starved", "a"), mean("A-code-parts/ca2fl-starved", "a")
    assert f"FedBuff comes to {repaired[0]} and CA²FL to {repaired[1]}" in " ".join(told.split())
    assert f"ACED comes to {mean('A-code-parts/aced-trigger', 'b')}" in told
    assert ahead("A-code-parts/each-fedbuff-starved") == [0, 0]
    one_defect = points("A-code-parts/each-ca2fl-starved")
    assert f"{-one_defect[0]:.1f} and {one_defect[1]:.1f} points, ahead in 4 and 7 of 8 seeds" in told
    assert ahead("A-code-parts/each-ca2fl-starved") == [4, 7]


def test_g_optimised_routing_along_the_curve_is_told_with_its_numbers(main_results: list[Outcome]) -> None:
    (one,) = (one for one in main_results if one.result.id == "per-update")
    at_eta = [reading for reading in one.readings if "-eta" in reading.claim.id and reading.ran]
    assert not any(reading.word in DECIDED for reading in at_eta if not reading.claim.twin)
    points = []
    for reading in at_eta:
        if reading.claim.id.endswith("-curve"):
            a, b = (reading.values[name] for name in ("a", "b"))
            differences = [100 * (a[seed] - b[seed]) for seed in a]
            assert len(differences) == 8 and min(differences) > 0
            points.append(sum(differences) / 8)
    told = (
        f"in 8 of 8 seeds in all of {len(points)} readings, by {min(points):.0f} to {max(points):.0f} points"
    )
    assert told in one.result.open
