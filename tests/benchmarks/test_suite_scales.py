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
    ("scales", "key"),
    [
        ("scale: small", "scale"),
        ("scales: {small: {}}", "scale"),
        ("scale: smal\nscales: {small: {}}", "scale"),
        ("scale: a\nscales: 3", "scales"),
        ("scale: a\nscales: {a: {}, b: {.x: 3}}", "scales.b"),
        ("scale: tuned\nscales: {tuned: {}}", "scales.tuned"),  # names of tuned variants end so
        ("scale: a\nscales: {a: {name: b}}", "scales.a.name"),
        ("scale: a\nscales: {a: {budget.updates: 0}}", "scales.a.budget.updates"),
        ("scale: a\nscales: {a: {seeds.x: 0}}", "scales.a.seeds.x"),
        ("scale: a\nscales: {a: {grid.problem.noise: [-1]}}", "scales.a.grid.problem.noise"),
        (
            "scale: a\nscales: {a: {problem: quadratic, grid.timing.durations: [{name: fx, spred: 1}]}}",
            "scales.a.grid.timing.durations.fx.spred",
        ),
    ],
)
def test_a_mistake_is_told_where_it_stands(tmp_path: Path, scales: str, key: str) -> None:
    (line,) = complain(tmp_path, scales)
    assert line.startswith(f"s.yaml: {key}: ")


def test_a_mistake_on_the_command_line_is_not_blamed_on_the_scale(tmp_path: Path) -> None:
    (line,) = complain(tmp_path, SCALES, settings=("budget.updates=0",))
    assert line.startswith("--set budget.updates: ")
    for scales, scale in ((SCALES, "papers"), ("", "small")):
        (line,) = complain(tmp_path, scales, scale)
        assert line.startswith(f"--scale {scale}: ")


def test_a_value_of_the_grid_is_not_blamed_on_the_whole_around_it(tmp_path: Path) -> None:
    """`problem` is set, and `problem.noise` spanned by the file's own grid."""
    path = tmp_path / "s.yaml"
    path.write_text(BODY.replace("[0, 0.5, 1]", "[0, -1]"))
    with pytest.raises(UserError) as caught:
        load(str(path), ["problem=quadratic"])
    (said,) = caught.value.lines
    assert said.startswith(f"{path}:8: grid.problem.noise: must be greater than or equal to 0, not -1")
