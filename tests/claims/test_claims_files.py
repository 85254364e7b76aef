"""Files of claims: entries that stand for many, mistakes told by file and key, scenarios that become runs."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.claims import stored_numbers
from benchmarks.claims.expansion import filled, members
from benchmarks.claims.files import Paper, papers
from benchmarks.claims.plan import ClaimPlan, contains, mistakes
from benchmarks.claims.stored_numbers import Number
from benchmarks.errors import UserError
from benchmarks.suite.suite import load

SCENARIOS: dict[str, Any] = {
    "inline": {
        "seeds": 3,
        "problem": "quadratic",
        "budget": {"updates": 100},
        "strategies": ["asgd", {"name": "ace"}, {"name": "ace", "cache": "int8"}],
        "grid": {"problem.noise": [0, 1], "lr": [0.1, 0.2]},
        "scales": {"small": {}, "paper": {"budget.updates": 1000}},
        "needs": {"paper": {"runs": "patience", "gpu": "a day", "cores": "a week"}},
    },
    "twin": {
        "seeds": [2, 3],
        "problem": {"name": "quadratic", "noise": 0},
        "budget": {"updates": 100},
        "strategies": ["asgd"],
        "lr": 0.1,
    },
    "powered": {
        "seeds": 3,
        "problem": {"name": "quadratic", "noise": 0},
        "timing": {"power": {"computation": 3}},
        "budget": {"updates": 100},
        "strategies": ["asgd", {"name": "ace", "cache": "int8"}],
        "lr": 0.1,
    },
    "shipped": {"suite": "quickstart", "set": {"seeds": 4, "budget.updates": 50}, "scales": {"small": {}}},
}
CLAIM: dict[str, Any] = {
    "id": "T-row/case",
    "place": "§1",
    "statement": "It is so.",
    "kind": "better",
    "clock": "updates",
    "rates": "stated",
    "arrangement": "paper",
    "workload": "paper",
    "scenario": "inline",
    "where": {"problem.noise": 0, "lr.*.local": 0.1},
    "metric": "distance",
    "a": {"strategy": "asgd"},
    "b": {"strategy": {"name": "ace", "cache": "int8"}},
}


def written(folder: Path, *claims: dict[str, Any], **scenarios: Any) -> Paper:
    """A paper of these claims."""
    document = {
        "paper": "toy",
        "title": "Toy et al.",
        "scenarios": {**SCENARIOS, **scenarios},
        "claims": [*claims],
    }
    (folder / "toy.yaml").write_text(yaml.safe_dump(document))
    return papers(folder)["toy"]


def test_a_sample_picks_the_runs_that_it_describes(tmp_path: Path) -> None:
    paper = written(tmp_path, CLAIM)
    claim = paper.claims["T-row/case"]
    picked = ClaimPlan(paper, "small", ()).picked(claim)
    for name, cache in (("a", None), ("b", "int8")):
        assert list(picked[name]) == [0, 1, 2]
        for seed, [run] in picked[name].items():
            description = run.experiment.description()
            assert run.experiment.seed == seed
            assert description["scenario"]["problem"]["noise"] == 0
            assert description["strategy"].get("cache") == cache
            assert description["strategy"]["local_lr"] == 0.1
            assert description["scenario"]["budget"]["updates"] == 100
            assert (run.suite, run.scenario.partition(" · ")[0]) == ("claims-toy-small", "inline")
    large = ClaimPlan(paper, "paper", ()).picked(claim)
    assert large["a"][0][0].experiment.scenario.budget.updates == 1000
    assert str(paper.needs(claim, "paper")) == "patience: about a day on a GPU, or a week"
    assert paper.needs(claim, "small") is None


def test_several_points_need_a_word_on_what_to_do_with_them(tmp_path: Path) -> None:
    wide = {**CLAIM, "where": {"problem.noise": 0}}
    paper = written(tmp_path, wide)
    with pytest.raises(
        UserError, match=r"toy\.yaml: claims\.T-row/case: a: `where` picks 2 points of inline"
    ):
        ClaimPlan(paper, "small", ()).picked(paper.claims["T-row/case"])
    paper = written(tmp_path, {**wide, "over": "mean"})
    assert len(ClaimPlan(paper, "small", ()).picked(paper.claims["T-row/case"])["a"][0]) == 2


def test_a_metric_that_its_runs_do_not_record_is_a_mistake(tmp_path: Path) -> None:
    """Before anything is run."""
    paper = written(tmp_path, {**CLAIM, "metric": "sp/loss"})
    assert ClaimPlan(paper, "small", ()).picked(paper.claims["T-row/case"])
    inline = {**SCENARIOS["inline"], "arrangement": "iteration_delay"}
    paper = written(tmp_path, {**CLAIM, "metric": "sp/loss"}, inline=inline)
    with pytest.raises(UserError, match=r"claims\.T-row/case: a: ASGD in .*: no 'sp/loss' is recorded"):
        ClaimPlan(paper, "small", ()).picked(paper.claims["T-row/case"])


def test_a_clock_of_energy_needs_the_power_of_clients(tmp_path: Path) -> None:
    entry = {**CLAIM, "clock": "energy", "reach": 0.5, "higher": False}
    assert mistakes([written(tmp_path, {**entry, "scenario": "powered"})]) == []
    without = mistakes([written(tmp_path, entry)])
    assert len(without) == 2 and all("timing.power" in mistake for mistake in without)  # at both scales


def test_shared_runs_are_made_once_and_unused_ones_never(tmp_path: Path) -> None:
    """Of 4 points × 3 strategies × 3 seeds, two strategies at one point; the twin shares a seed of them."""
    common = ("place", "statement", "clock", "rates", "arrangement", "workload", "metric")
    value = {key: CLAIM[key] for key in common} | {"kind": "report"}
    paper = written(
        tmp_path,
        CLAIM,
        {**CLAIM, "id": "T-row/again", "metric": "excess_loss"},
        {**value, "id": "T-row/twin", "scenario": "twin"},
    )
    runs = ClaimPlan(paper, "small", tuple(paper.claims.values())).runs()
    assert len(runs) == len({run.key for run in runs}) == 2 * 3 + 1


def test_a_shipped_suite_is_changed_by_set(tmp_path: Path) -> None:
    more = {"scenario": "shipped", "metric": "test/accuracy", "b": {"strategy": "fedbuff"}}
    place = {"timing.durations": {"name": "fx", "spread": 80}}
    paper = written(tmp_path, {**CLAIM, **more, "where": place})
    [run] = ClaimPlan(paper, "small", ()).picked(paper.claims["T-row/case"])["b"][3]
    assert run.experiment.scenario.budget.updates == 50
    (fedbuff,) = (part for part in load("quickstart").spec.strategies if part.name == "fedbuff")
    assert run.experiment.strategy == fedbuff


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"clock": None}, "T-row/case.clock"),
        ({"kind": "bettr"}, "T-row/case: kind"),
        ({"metrik": "x"}, "T-row/case.metrik"),
        ({"scenario": "inlin"}, "T-row/case: a"),
        ({"kind": "same"}, "T-row/case.margin"),
        ({"kind": "same", "metric": "test/accuracy", "reach": 0.5, "clock": "time"}, "T-row/case.margin"),
        ({"id": "{x}/y", "each": {"y": [1]}}, "{x}/y: {x}"),
        ({"each": 3}, "T-row/case: each"),
        ({"id": "no row"}, "no row.id"),
        ({"arrangement": None}, "T-row/case: arrangement"),
        ({"arrangement": {"paper": "paper"}}, "T-row/case: arrangement"),
        ({"workload": None}, "T-row/case: workload"),
        ({"looks": [8, 8]}, "T-row/case.looks"),
    ],
)
def test_mistakes_in_entries_are_named_by_file_line_and_key(
    tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    with pytest.raises(UserError) as raised:
        written(tmp_path, {**CLAIM, **change})
    (line,) = raised.value.lines
    at = next(n for n, text in enumerate((tmp_path / "toy.yaml").read_text().splitlines(), 1) if "- " in text)
    assert line.startswith(f"{tmp_path / 'toy.yaml'}:{at}: claims.{key}")


def test_mistakes_in_scenarios_are_told_once_and_those_in_samples_by_entry(tmp_path: Path) -> None:
    twice = [CLAIM, {**CLAIM, "id": "T-row/other"}]
    with pytest.raises(UserError, match=r"duplicate id"):
        written(tmp_path, CLAIM, CLAIM)
    paper = written(tmp_path, *({**one, "b": {"strategy": "ace"}} for one in twice))
    for line, (case, scale) in zip(
        mistakes([paper]), product(("case", "other"), ("small", "paper")), strict=True
    ):
        assert f"toy.yaml: claims.T-row/{case}: b: ace must name one strategy of inline, not 2." in line
        assert line.endswith(f"(scale {scale})")
    bad = {**SCENARIOS["inline"], "budget": {"update": 3}, "scales": {"small": {}}}
    [line, *_] = mistakes([written(tmp_path, *twice, inline=bad)])
    text = (tmp_path / "toy.yaml").read_text().splitlines()
    assert line.startswith(f"{tmp_path / 'toy.yaml'}:{text.index('  inline:') + 1}: scenarios.inline: budget")
    with pytest.raises(UserError, match=r"scenarios\.shipped\.seeds: write changes of a suite under `set`"):
        written(tmp_path, shipped={**SCENARIOS["shipped"], "seeds": 3})


def test_families() -> None:
    entry = {"id": "A/{k}-{m}", "each": {"k": [1, 2], "m": [[3], "x"]}, "where": {"a.{m}": "{m}"}, "n": 7}
    found = list(members(entry, Path()))
    assert [one["id"] for one in found] == ["A/1-[3]", "A/1-x", "A/2-[3]", "A/2-x"]
    assert found[1] == {"id": "A/1-x", "where": {"a.x": "x"}, "n": 7, "case": {"k": 1, "m": "x"}}
    assert found[0]["where"] == {"a.[3]": [3]}  # the value itself where nothing stands beside it
    assert filled("{k}%", {"k": 0.5}) == "0.5%"
    [more] = members({"id": "A/{k}", "each": [{"k": 1, "m": 5}], "case": {"beta": "{m}"}}, Path())
    assert more["case"] == {"beta": 5, "k": 1}  # also what no id names


def test_readers_see_words_and_the_rest_sees_values() -> None:
    entry = {"id": "A/{k}", "each": {"k": ["ca2fl", 3]}, "statement": "{k} beats ace.", "strategy": "{k}"}
    assert list(members(entry, Path(), {"ca2fl": "cached FedBuff", "ace": "unused"})) == [
        {
            "id": "A/ca2fl",
            "statement": "Cached FedBuff beats ace.",
            "strategy": "ca2fl",
            "case": {"k": "ca2fl"},
        },
        {"id": "A/3", "statement": "3 beats ace.", "strategy": 3, "case": {"k": 3}},
    ]


def test_cells_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,p,sync,async\nLR,1,0.8910,0.9\nCNN,2,0.7,0.60\n")
    table = {
        "file": "t.csv",
        "rows": {"model": "LR"},
        "cells": {"sync": {"history": 1}, "async": {"history": 5}},
    }
    entry = {
        "id": "T/{p}-{cell}",
        "table": table,
        "printed": "{printed}",
        "where": {"h": "{history}", "p": "{p}"},
    }
    assert list(members(entry, tmp_path)) == [
        {
            "id": f"T/1-{cell}",
            "printed": printed,
            "where": {"h": history, "p": 1},
            "case": {"p": 1, "cell": cell},
            "table": "t.csv",
        }
        for cell, printed, history in (("sync", "0.8910", 1), ("async", "0.9", 5))
    ]


@pytest.mark.parametrize(
    ("actual", "wanted", "is_it"),
    [
        ({"name": "fx", "spread": "80"}, "fx", True),
        ({"name": "fx", "spread": "80"}, {"spread": 80}, True),
        ({"name": "fx", "spread": "80"}, {"spread": 8}, False),
        ({"name": "fx", "spread": "80"}, {"share": 0.2}, False),
        ("1/5", 0.2, True),
        (None, None, True),
        ({"name": "rounds"}, None, False),
        (True, 1, False),
        (["1", "2"], [1, 2], True),
        ([1, 2], [1], False),
    ],
)
def test_what_is_wanted_is_contained_in_what_is_there(actual: Any, wanted: Any, is_it: bool) -> None:
    assert contains(actual, wanted) is is_it


def test_numbers_survive_the_file_and_give_way_to_newer_ones(tmp_path: Path) -> None:
    def number(claim: str, seed: int, value: float, origin: str = "abc, torch 2") -> Number:
        return Number(claim, "a", seed, value, "k1 k2", "2026-01-01T00:00:00+00:00", origin)

    file = tmp_path / "results" / "toy-small.csv"
    first = [number("T/b", 0, 0.1 + 0.2), number("T/a", 0, float("inf")), number("T/c", 1, 1.0)]
    stored_numbers.merge(file, ["T/a", "T/b", "T/c"], first)
    assert stored_numbers.read(file) == [first[1], first[0], first[2]]
    newer = number("T/b", 5, 2.0, "def, torch 3")
    stored_numbers.merge(file, ["T/a", "T/b"], [newer])
    assert stored_numbers.read(file) == [first[1], newer]
    origins = file.parent / "origins" / "toy-small.csv"
    assert origins.read_text() == 'origin,made_with\n1,"abc, torch 2"\n2,"def, torch 3"\n'
    assert stored_numbers.values(stored_numbers.read(file)) == {
        "T/a": {"a": {0: float("inf")}},
        "T/b": {"a": {5: 2.0}},
    }
    assert stored_numbers.read(tmp_path / "nowhere.csv") == []


def test_origins_stay_valid_if_numbers_are_not_written_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption between the two files leaves the earlier numbers with their origins."""
    first = Number("T/a", "a", 0, 1.0, "k1", "2026-01-01T00:00:00+00:00", "abc, torch 2")
    newer = Number("T/a", "a", 0, 2.0, "k1", "2026-01-02T00:00:00+00:00", "def, torch 3")
    file, write = tmp_path / "toy-small.csv", stored_numbers.write
    stored_numbers.merge(file, ["T/a"], [first])

    def interrupted(path: Path, *arguments: Any) -> None:
        if path == file:
            raise KeyboardInterrupt
        write(path, *arguments)

    monkeypatch.setattr(stored_numbers, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stored_numbers.merge(file, ["T/a"], [newer])
    assert stored_numbers.read(file) == [first]
    monkeypatch.setattr(stored_numbers, "write", write)
    stored_numbers.merge(file, ["T/a"], [newer])
    assert stored_numbers.read(file) == [newer]


def test_a_number_without_its_origin_is_damage(tmp_path: Path) -> None:
    number = Number("T/a", "a", 0, 1.0, "k1", "2026-01-01T00:00:00+00:00", "abc, torch 2")
    file = tmp_path / "toy-small.csv"
    stored_numbers.merge(file, ["T/a"], [number])
    (tmp_path / "origins" / "toy-small.csv").unlink()
    with pytest.raises(UserError, match=r"toy-small\.csv:2: is damaged"):
        stored_numbers.read(file)


def test_an_entry_takes_arrangement_workload_and_looks_from_its_scenario(tmp_path: Path) -> None:
    silent = {key: value for key, value in CLAIM.items() if key not in {"arrangement", "workload"}}
    entries = {
        "arrangement": {"small": "ours", "paper": "paper"},
        "workload": {"small": "stand-in", "paper": "paper"},
        "looks": [5, 9],
    }
    inline = {**SCENARIOS["inline"], "entries": entries}
    paper = written(tmp_path, silent, {**CLAIM, "id": "T-row/own", "looks": [4]}, inline=inline)
    taken, own = paper.claims["T-row/case"], paper.claims["T-row/own"]
    assert (taken.arranged("small"), taken.works_on("small"), taken.looks) == ("ours", "stand-in", (5, 9))
    assert (own.arranged("small"), own.works_on("small"), own.looks) == ("paper", "paper", (4,))


def test_an_arrangement_of_ours_explains_a_failure_before_its_conditions(tmp_path: Path) -> None:
    """The other combinations are those of shipped claims."""
    claim = written(tmp_path, {**CLAIM, "outside_conditions": True, "arrangement": "ours"}).claims[
        "T-row/case"
    ]
    assert claim.failure("small") == "ours"


@pytest.mark.parametrize(("readings", "key"), [(["T-none/*"], "main.it"), ([], "main.0.readings")])
def test_a_main_result_names_readings_that_are_there(tmp_path: Path, readings: list[str], key: str) -> None:
    document = {"paper": "toy", "title": "Toy et al.", "scenarios": SCENARIOS, "claims": [CLAIM]}
    document["main"] = [{"id": "it", "words": "It works", "place": "§1", "readings": readings}]
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(UserError) as raised:
        papers(tmp_path)
    (line,) = raised.value.lines
    assert key in line
