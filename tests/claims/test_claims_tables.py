"""Printed tables: a table with its own numbers passes, one with wrong numbers does not."""

import csv
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.claims.claim import Sample
from benchmarks.claims.files import FOLDER, MainResult, Paper
from benchmarks.claims.kinds import KINDS, Same, Value
from reports.claims.main_results import Outcome
from reports.claims.printed_tables import PrintedTable, placebo, tables
from reports.claims.readings import Reading
from reports.claims.verdicts import verdicts

MARGIN = 0.003


def readings_of(
    level: Mapping[tuple[int, int], float], away: float = 0.0, spread: float = 0.002
) -> list[Reading]:
    """Cells of p and c whose printed numbers are levels, of which our runs are this far away."""
    rng = np.random.default_rng(1)
    claims, values = {}, {}
    for (p, c), number in level.items():
        id_ = f"T/p{p}-c{c}"
        drawn = number + away + spread * rng.standard_normal(64)
        values[id_] = {"value": dict(enumerate(drawn.tolist()))}
        claims[id_] = KINDS["value"].model_construct(
            id=id_, kind="value", row="T", place="Table 1", table="t.csv", case={"p": p, "c": c},
            printed=f"{number:.4f}", margin=MARGIN, runs=1, metric="test/accuracy", looks=(64,),
        )  # fmt: skip
        claims[id_].__dict__["samples"] = {"value": Sample(metric="test/accuracy", at="end")}
    judged = verdicts(claims, values)
    return [
        Reading(Paper("toy", "Toy"), claim, "paper", judged[id_], values[id_])
        for id_, claim in claims.items()
    ]


def table(level: Mapping[tuple[int, int], float], away: float = 0.0, spread: float = 0.002) -> PrintedTable:
    """The table of these cells."""
    (found,) = tables(readings_of(level, away, spread))
    return found


LEVELS = {(p, c): 0.86 + 0.01 * p + 0.005 * (c == 5) for p in (1, 2, 3, 4) for c in (5, 10, 20, 40)}


def test_own_numbers_pass_and_those_of_a_neighbour_do_not() -> None:
    found = table(LEVELS)
    assert found.own.passes and found.own.correlation > 0.95 and found.own.error < MARGIN
    assert [placebo.name for placebo in found.placebos] == ["p", "c"]
    assert not any(placebo.passes for placebo in found.placebos)
    assert found.placebos[0].words["refuted"] > 0


def test_a_table_without_contrasts_lets_placebos_pass() -> None:
    """Such a table cannot be told from a wrong one, which is what the share of placebos says."""
    assert all(placebo.passes for placebo in table(dict.fromkeys(LEVELS, 0.9)).placebos)


def test_a_systematic_difference_is_named() -> None:
    found = table(LEVELS, away=0.006, spread=0.0005)
    assert not found.own.passes and found.difference.mean == pytest.approx(0.006, abs=5e-4)
    assert {(group.condition, group.value) for group in found.own.groups if group.differs} == {
        *(("p", str(p)) for p in (1, 2, 3, 4)),
        *(("c", str(c)) for c in (5, 10, 20, 40)),
    }
    assert all(group.above == group.difference.n == 4 for group in found.own.groups)


@pytest.fixture(scope="module")
def anarchic(all_papers: dict[str, Paper]) -> Paper:
    return all_papers["anarchic"]


@pytest.fixture(scope="module")
def at_paper_scale(all_readings: list[Reading]) -> list[Reading]:
    return [one for one in all_readings if (one.paper.name, one.scale) == ("anarchic", "paper")]


def test_placebos_of_the_shipped_tables_fail(at_paper_scale: list[Reading]) -> None:
    found = tables(at_paper_scale)
    assert {one.name: [wrong.name for wrong in one.placebos] for one in found} == {
        "Table 2": ["p", "workers_m", "local_steps_c", "cell"],
        "Table 3": ["p", "local_steps_c", "cell"],
    }
    assert not any(wrong.passes for one in found for wrong in one.placebos)
    for one in found:
        assert one.own.correlation > 0.9 and one.own.error < 0.01
        for wrong in one.placebos:
            assert wrong.correlation < one.own.correlation and wrong.error > one.own.error


def with_numbers(outcome: Outcome, wrong: list[Reading]) -> Outcome:
    """The main result with the claims of these cells, judged again."""
    judged = verdicts({cell.claim.id: cell.claim for cell in wrong}, {c.claim.id: c.values for c in wrong})
    remade = (Reading(outcome.paper, c.claim, "paper", judged[c.claim.id], c.values) for c in wrong)
    return replace(outcome, readings=tuple(remade))


@pytest.mark.parametrize("name", ["table-2-logistic", "table-3-logistic"])
def test_no_placebo_of_a_printed_table_has_a_word_that_holds(name: str, main_results: list[Outcome]) -> None:
    (one,) = (one for one in main_results if one.result.id == name)
    own = [reading for reading in one.readings if reading.ran]
    assert with_numbers(one, own).word == one.word
    conditions = [wrong.name for table in tables(one.readings) for wrong in table.placebos]
    assert len(conditions) >= 3
    for condition in conditions:
        assert with_numbers(one, placebo(own, condition)).word not in {"holds", "mostly holds"}


def test_a_table_with_a_systematic_difference_is_mixed_at_best() -> None:
    """Its decided cells hold; those of p = 1 are imprecise, and all on one side by more than the margin."""
    levels = {(p, c): 0.9 + 0.001 * p for p in (1, 2, 3, 4) for c in (5, 10, 20, 40)}
    exact = readings_of(levels, spread=0.0002)
    away = readings_of({key: level for key, level in levels.items() if key[0] == 1}, away=0.01, spread=0.01)
    result = MainResult(id="table", words="Table 1", place="Table 1", readings=("T/*",))
    assert Outcome(exact[0].paper, result, tuple(exact)).word == "holds"
    both = Outcome(exact[0].paper, result, (*away, *exact[4:]))
    assert {reading.word for reading in both.readings} == {"confirmed", "compatible"}
    assert both.share == 1 and both.word == "mixed"


def test_sentences_on_p_1_tell_the_numbers_that_are_stored(
    anarchic: Paper, at_paper_scale: list[Reading]
) -> None:
    """Means of ours − printed with dynamic steps, and intervals of differences from synchronous rounds."""
    found = {one.claim.id: one.verdict for one in at_paper_scale}
    away = []
    for id_, claim in anarchic.claims.items():
        if id_.startswith("N-table-2-LR/p1-m5-") and id_.endswith("_dynamic"):
            assert isinstance(claim, Value) and claim.printed is not None
            away.append(100 * (float(claim.printed) - (found[id_].found or 0.0)))
    assert len(away) == 4
    assert f"{min(away):.1f} to {max(away):.1f} points" in anarchic.main["table-2-logistic"].open
    of_p1 = [verdict for id_, verdict in found.items() if id_.startswith("N-async-free/mnist-p1-c")]
    assert len(of_p1) == 6 and all(verdict.high is not None and verdict.high < 0 for verdict in of_p1)
    refuted = sorted(f"{-100 * (v.found or 0.0):.1f}" for v in of_p1 if v.word == "refuted")
    told = anarchic.main["anarchy-is-free"].open
    assert f"{refuted[0]}, {refuted[1]} and {refuted[2]} points" in told
    (second,) = (r for r in at_paper_scale if r.claim.id == "N-async-free/mnist-p1-c5-both")
    losses = [100 * (second.values["b"][seed] - second.values["a"][seed]) for seed in second.values["a"]]
    assert len(losses) == 64 and second.verdict.seeds == 32
    mean, half = np.mean(losses), stats.t.ppf(0.975, 63) * np.std(losses, ddof=1) / 8
    assert f"64 stored seeds it is {mean:.2f} [{mean - half:.2f}, {mean + half:.2f}]" in " ".join(
        told.split()
    )


@pytest.mark.parametrize(
    ("file", "model", "patterns"),
    [
        ("afl_table2", "LR", ("N-table-2-LR/", "N-async-free/mnist")),
        ("afl_table2", "CNN", ("N-table-2-CNN/", "N-async-free/cifar10")),
        ("afl_table2", "RNN", ("N-table-2-LSTM/", "N-async-free/shakespeare")),
        ("afl_table3", "LR", ("N-table-3-LR/", "N-afl-keeps/mnist", "N-prox-same/mnist")),
        ("afl_table3", "CNN", ("N-table-3-CNN/", "N-afl-keeps/cifar10")),
        ("afl_table3", "RNN", ("N-table-3-LSTM/", "N-afl-keeps/shakespeare")),
    ],
)
def test_margins_are_half_a_point_or_a_quarter_of_the_table_s_spread(
    anarchic: Paper, file: str, model: str, patterns: tuple[str, ...]
) -> None:
    with (FOLDER / "published" / f"{file}.csv").open(newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["model"] == model]
    cells = list(rows[0])[list(rows[0]).index("local_steps_c") + 1 :]
    spread = np.std([float(row[cell]) for row in rows for cell in cells], ddof=1)
    expected = min(0.005, round(float(spread) / 4, 4))
    claims = [claim for id_, claim in anarchic.claims.items() if id_.startswith(patterns)]
    allowed = {claim.allowed for claim in claims if isinstance(claim, Same | Value)}
    assert allowed == {expected}
