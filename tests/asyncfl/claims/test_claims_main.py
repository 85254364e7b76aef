"""Main results: the word follows from all readings by one rule, and every main result has one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from asyncfl.claims.claim import Sample
from asyncfl.claims.command.group import command
from asyncfl.claims.files import MainResult, Paper, papers
from asyncfl.claims.kinds import KINDS
from asyncfl.claims.pages import matrix
from asyncfl.claims.pages.table import SAID
from asyncfl.claims.verdicts.main import Outcome, outcomes
from asyncfl.claims.verdicts.readings import Reading, all_of
from asyncfl.claims.verdicts.rules import Verdict

TOY = Paper("toy", "Toy et al.", words={"beta": "β"})
PAPER, STAND_IN, READ = ("paper", "paper"), ("paper", "stand-in"), ("reading", "paper")
Case = tuple[str, tuple[str, str]]  # word, arrangement and workload


def outcome(*cases: Case, corners: dict[str, tuple[str, ...]] | None = None, open_: str = "") -> Outcome:
    """A main result with these readings; β is 1 for every second one."""
    readings = tuple(reading(f"T-row/{at}", *case, beta=at % 2) for at, case in enumerate(cases))
    result = MainResult(
        id="it", words="It works", place="§1", readings=("T-row/*",), corners=corners or {}, open=open_
    )
    return Outcome(TOY, result, readings)


def reading(id_: str, word: str, how: tuple[str, str], beta: int = 0, bound: bool = False) -> Reading:
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
    )
    return Reading(TOY, claim, "small", Verdict(word, 3.0 + beta if bound else 0.1))


@pytest.mark.parametrize(
    ("cases", "word"),
    [
        ([], "not run"),
        ([("not run", PAPER)] * 3, "not run"),
        ([("undecided", PAPER), ("not run", PAPER)], "undecided"),
        ([("reported", PAPER)], "undecided"),
        ([("confirmed", PAPER), ("undecided", PAPER)], "reproduced"),
        ([("confirmed", PAPER), ("confirmed", STAND_IN), ("not run", READ)], "reproduced"),
        ([("confirmed", STAND_IN)] * 2, "reproduced on stand-ins"),
        ([("confirmed", READ), ("confirmed", STAND_IN)], "reproduced on stand-ins"),
        ([("confirmed", STAND_IN), ("undecided", PAPER)], "reproduced on stand-ins"),
        ([("confirmed", PAPER), ("refuted", STAND_IN)], "depends on the reading"),
        ([("confirmed", PAPER), ("equal", PAPER)], "depends on the reading"),
        ([("confirmed", PAPER), ("no effect", PAPER)], "depends on the reading"),
        ([("refuted", STAND_IN), ("undecided", PAPER)], "not reproduced"),
        ([("equal", PAPER), ("refuted", PAPER)], "not reproduced"),
        ([("no effect", READ)], "not reproduced"),
        ([("leans for", PAPER), ("leans against", PAPER), ("compatible", PAPER)], "undecided"),
        ([("confirmed", PAPER), ("leans for", PAPER), ("compatible", PAPER)], "reproduced"),
        ([("confirmed", PAPER), ("leans against", STAND_IN)], "depends on the reading"),
        ([("refuted", STAND_IN), ("leans for", PAPER)], "depends on the reading"),
        ([("refuted", STAND_IN), ("leans against", PAPER)], "not reproduced"),
    ],
)
def test_the_word_of_a_main_result(cases: list[Case], word: str) -> None:
    assert outcome(*cases).word == word
    assert outcome(*reversed(cases)).word == word  # whatever the order


def test_a_corner_is_named_or_it_counts() -> None:
    cases = [("confirmed", PAPER), *[("refuted", PAPER)] * 6]
    assert outcome(*cases).word == "depends on the reading"
    corner = outcome(*cases, corners={"the first": ("T-row/0",), "the second": ("T-row/1",)})
    assert (corner.word, corner.corners) == ("not reproduced", ["the first"])
    both = [("confirmed", PAPER), *cases]
    assert outcome(*both, corners={"the first": ("T-row/0",)}).word == "depends on the reading"
    assert outcome(*[("confirmed", PAPER)] * 2, corners={"all": ("T-row/*",)}).word == "reproduced"


def test_what_it_depends_on_is_what_separates_best() -> None:
    """Of arrangement, workload, scale and β: that with the fewest readings on the wrong side."""
    word = {0: "confirmed", 1: "refuted"}
    by_beta = outcome(*[(word[at % 2], (PAPER, STAND_IN)[at // 2 % 2]) for at in range(8)])
    assert by_beta.divide is not None
    assert (by_beta.divide.name, by_beta.divide.counts) == ("β", {"0": (4, 4), "1": (0, 4)})
    assert "Depends most on β: 4 of 4 with 0, 0 of 4 with 1." in matrix.sentence(by_beta)
    by_workload = outcome(*[(word[at // 2 % 2], (PAPER, STAND_IN)[at // 2 % 2]) for at in range(8)])
    assert by_workload.divide is not None and by_workload.divide.name == "workload"
    alike = outcome(*[("confirmed", PAPER)] * 4, *[("refuted", PAPER)] * 4)
    assert alike.divide is None and "Depends" not in matrix.sentence(alike)
    first, *others = by_beta.readings
    without = replace(first, claim=first.claim.model_copy(update={"case": {}}))
    assert replace(by_beta, readings=(without, *others)).divide is None  # not all of them have a β


def test_the_sentence_counts_each_kind_of_evidence_by_itself() -> None:
    cases = [*[("refuted", PAPER)] * 3, ("confirmed", PAPER), ("equal", PAPER), ("not run", PAPER)]
    here = outcome(*cases, ("undecided", PAPER), open_="p is lost.")
    assert matrix.sentence(here) == (
        "Behind in 3 of 5 decided comparisons, ahead in 1, equal in 1; 1 undecided; 1 reading not run "
        "(an evening of two cores). p is lost."
    )
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


# The table of main results; one line each.
MAIN = {
    "ace": (
        *("ace-fedbuff", "ace-ca2fl", "ace-delay-adaptive", "ace-vanilla", "ca2fl-others"),
        *("fewest-iterations", "everyone-declines", "delay-and-heterogeneity", "error-terms"),
        *("drop-outs", "other-tasks", "eight-bits"),
    ),
    "anarchic": (
        *("anarchy-is-free", "tables-logistic", "tables-cnn", "tables-lstm", "general-arrivals"),
        *("biased-arrivals", "speed-up", "arbitrary-arrivals", "afl-keeps"),
    ),
    "asyncsgd": (
        *("per-update", "per-time", "ten-to-thirty", "printed-numbers", "delays-and-bounds"),
        *("number-of-tasks", "steadier"),
    ),
    "fraboni": (
        *("time-based", "surrogate", "sync-async", "balance", "fedbuff-async", "rate-sensitivity", "bounds"),
    ),
}


@pytest.fixture(scope="module")
def shipped() -> list[Outcome]:
    return outcomes(all_of(papers().values()))


def test_every_main_result_of_the_papers_has_readings_or_says_that_none_has_run(
    shipped: list[Outcome],
) -> None:
    there: dict[str, list[str]] = {}
    for one in shipped:
        there.setdefault(one.paper.name, []).append(one.result.id)
        assert one.readings
        assert (one.word == "not run") is not any(reading.ran for reading in one.readings)
        assert matrix.sentence(one).endswith(".")
    assert there == {name: list(ids) for name, ids in MAIN.items()}


def test_no_comparison_of_who_leads_is_left_out_of_the_main_results(shipped: list[Outcome]) -> None:
    """Every entry of ACE or ACED against a baseline, whatever it says, is a reading of a main result."""
    used = {reading.claim.id for one in shipped for reading in one.readings}
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
    apart = tuple(f"A-best{net}/ca2fl-fedbuff" for net in ("", "-cnn", "-resnet", "-resnet-D1"))
    apart += ("A-best-20ng/fedavg-ace",)
    missing = {
        id_
        for paper in papers().values()
        for id_ in paper.claims
        if id_.startswith(leading) and not id_.startswith(apart) and id_ not in used
    }
    assert missing == set()


def test_corners_are_few(shipped: list[Outcome]) -> None:
    """A corner that held a fifth of the decided readings would be no corner."""
    for one in shipped:
        if one.corners:
            assert len(one.holding) < len(one.decided) / 5


def test_ace_against_fedbuff_is_told_with_its_numbers(shipped: list[Outcome]) -> None:
    (one,) = (one for one in shipped if one.result.id == "ace-fedbuff")
    assert one.word == "not reproduced"
    assert matrix.sentence(one).startswith(
        "Behind in 53 of 57 decided comparisons, ahead in 4 (the shortest delays)"
    )


def test_front_pages_are_short(shipped: list[Outcome]) -> None:
    """A few characters in a cell of the matrix, 120 columns in the terminal."""
    for one in shipped:
        for column in matrix.COLUMNS:
            cell = matrix.cell(one, column)
            assert len(f"{matrix.bar(cell)} {matrix.count(cell)}") <= 12
            assert {*matrix.bar(cell)} == {SAID[reading.word].square for reading in cell}
    lines = CliRunner().invoke(command, []).output.splitlines()
    assert max(map(len, lines)) <= 120
