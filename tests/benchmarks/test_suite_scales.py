"""Scales: named sets of overrides in a suite's file, one of them the default."""

import re
from pathlib import Path

import pytest

from benchmarks.errors import UserError
from benchmarks.suite.shipped import recorded_name
from benchmarks.suite.suite import Suite, load

BODY = """
name: sized
seeds: 5
problem: {name: quadratic, centres: [[-1], [0], [4]]}
timing: {durations: {name: fx, spread: 50}}
budget: {updates: 1000}
strategies: [fedavg, {name: fedbuff, buffer: 2}]
grid: {problem.noise: [0, 0.5, 1]}
"""
SCALES = """
scale: small
scales:
  paper: {}
  small: {seeds: 2, budget.updates: 30, grid.problem.noise: [0, 1], strategies.fedbuff.buffer: 3}
"""


def suite(
    folder: Path, scales: str = SCALES, scale: str | None = None, settings: tuple[str, ...] = ()
) -> Suite:
    path = folder / "s.yaml"
    path.write_text(BODY + scales)
    return load(str(path), settings, scale)


def complain(
    folder: Path, scales: str, scale: str | None = None, settings: tuple[str, ...] = ()
) -> list[str]:
    with pytest.raises(UserError) as caught:
        suite(folder, scales, scale, settings)
    path = re.escape(str(folder / "s.yaml"))
    return [re.sub(rf"^{path}(:\d+)?: ", "s.yaml: ", line) for line in caught.value.lines]


def test_a_scale_is_what_one_would_set_by_hand(tmp_path: Path) -> None:
    by_hand = ("seeds=2", "budget.updates=30", "grid.problem.noise=[0, 1]", "strategies.fedbuff.buffer=3")
    keys = [run.key for run in suite(tmp_path, scales="", settings=by_hand).runs()]
    assert [run.key for run in suite(tmp_path, scale="small").runs()] == keys


def test_the_default_is_the_one_that_the_suite_names(tmp_path: Path) -> None:
    assert suite(tmp_path) == suite(tmp_path, scale="small")
    assert suite(tmp_path).scale == "small"


def test_an_empty_scale_is_the_file_as_it_stands(tmp_path: Path) -> None:
    plain = suite(tmp_path, scales="")
    paper = suite(tmp_path, scale="paper")
    assert [run.key for run in paper.runs()] == [run.key for run in plain.runs()]
    assert (plain.scale, paper.scale) == (None, "paper")


def test_scales_are_recorded_apart(tmp_path: Path) -> None:
    path = str(tmp_path / "s.yaml")
    names = {suite(tmp_path, scale=scale).runs()[0].suite for scale in ("small", "paper")}
    assert names == {"sized-small", "sized-paper"}
    assert recorded_name(path) == "sized-small"
    assert recorded_name(path, "paper") == "sized-paper"
    assert recorded_name("gone-long-ago", "paper") == "gone-long-ago-paper"
    assert recorded_name("gone-long-ago") == "gone-long-ago"
    assert {run.suite for run in suite(tmp_path, scales="").runs()} == {"sized"}


def test_what_is_set_on_the_command_line_comes_last(tmp_path: Path) -> None:
    budget = suite(tmp_path, settings=("budget.updates=7",)).spec.budget
    assert budget.updates == 7


@pytest.mark.parametrize(
    ("scales", "line"),
    [
        ("scale: small", "s.yaml: scale: there are no scales to choose from"),
        ("scales: {small: {}}", "s.yaml: scale: must say which one is meant unless `--scale` does: small"),
        (
            "scale: smal\nscales: {small: {}}",
            "s.yaml: scale: unknown scale 'smal'. Did you mean 'small'? Available: small",
        ),
        ("scale: a\nscales: 3", "s.yaml: scales: must be a mapping of names to dotted keys and their values"),
        (
            "scale: a\nscales: {a: 3}",
            "s.yaml: scales.a: must be a mapping of dotted keys to values, such as ",
        ),
        (
            "scale: a\nscales: {a: {}, b: {.x: 3}}",
            "s.yaml: scales.b: must be a mapping of dotted keys to values",
        ),
        (
            "scale: tuned\nscales: {tuned: {}}",
            "s.yaml: scales.tuned: names that end in '-tuned' are those of ",
        ),
        ("scale: a\nscales: {a: {name: b}}", "s.yaml: scales.a.name: no scale changes name, scale, scales"),
        (
            "scale: a\nscales: {a: {budget.updates: 0}}",
            "s.yaml: scales.a.budget.updates: must be greater than",
        ),
        (
            "scale: a\nscales: {a: {budgets: 1}}",
            "s.yaml: scales.a.budgets: no such key. Did you mean 'budget'?",
        ),
        ("scale: a\nscales: {a: {seeds.x: 0}}", "s.yaml: scales.a.seeds.x: seeds is 5, which has no keys"),
        (
            "scale: a\nscales: {a: {grid.problem.noise: [-1]}}",
            "s.yaml: scales.a.grid.problem.noise: must be greater than or equal to 0, not -1",
        ),
        (
            "scale: a\nscales: {a: {problem: quadratic, grid.timing.durations: [{name: fx, spred: 1}]}}",
            "s.yaml: scales.a.grid.timing.durations.fx.spred: no such key. Did you mean 'spread'?",
        ),
    ],
)
def test_a_mistake_is_told_where_it_stands(tmp_path: Path, scales: str, line: str) -> None:
    (said,) = complain(tmp_path, scales)
    assert said.startswith(line)


def test_a_scale_that_does_not_exist(tmp_path: Path) -> None:
    assert complain(tmp_path, SCALES, "papers") == [
        "--scale papers: unknown scale 'papers'. Did you mean 'paper'? Available: paper, small"
    ]
    assert complain(tmp_path, "", "small") == [f"--scale small: {tmp_path / 's.yaml'} has no scales"]


def test_a_mistake_on_the_command_line_is_not_blamed_on_the_scale(tmp_path: Path) -> None:
    (said,) = complain(tmp_path, SCALES, settings=("budget.updates=0",))
    assert said.startswith("--set budget.updates: must be greater than")


def test_a_value_of_the_grid_is_not_blamed_on_the_whole_around_it(tmp_path: Path) -> None:
    """`problem` is set, and `problem.noise` spanned by the file's own grid."""
    path = tmp_path / "s.yaml"
    path.write_text(BODY.replace("[0, 0.5, 1]", "[0, -1]"))
    with pytest.raises(UserError) as caught:
        load(str(path), ["problem=quadratic"])
    (said,) = caught.value.lines
    assert said.startswith(f"{path}:8: grid.problem.noise: must be greater than or equal to 0, not -1")
