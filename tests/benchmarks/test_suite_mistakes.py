"""What is wrong with a suite is said in a line each: where, what, what is allowed; everything at once."""

import re
from pathlib import Path

import pytest

from benchmarks.errors import UserError
from benchmarks.suite.suite import load

GOOD = {
    "name": "small",
    "seeds": "2",
    "problem": "{name: quadratic}",
    "timing": "{durations: {name: fx, spread: 50}}",
    "budget": "{updates: 30}",
    "strategies": "[fedavg, {name: fedbuff, buffer: 2}]",
}


def complain(folder: Path, *overrides: str, **changed: str) -> list[str]:
    """The lines about a suite in which some keys were changed."""
    path = folder / "s.yaml"
    path.write_text("\n".join(f"{key}: {value}" for key, value in {**GOOD, **changed}.items() if value))
    with pytest.raises(UserError) as caught:
        load(str(path), overrides)
    return [re.sub(rf"^{re.escape(str(path))}(:\d+)?: ", "s.yaml: ", line) for line in caught.value.lines]


DIGITS = "problem: {name: digits, clients: 2}\n"
# Lines of a suite, and the key that the message names; misspelt parts are in tests/commands/messages.txt.
MISTAKES = [
    ("target: 0.9", "target"),
    ("timing: {durations: {name: fx, spred: 3}}", "timing.durations.spred"),
    ("strategies: [{name: fedbuff, buffer: two}]", "strategies.fedbuff.buffer"),
    ("strategies: [{name: fedavg, sample: 10}]", "strategies.fedavg.sample"),  # of a part, beside the part
    ("strategies: [{name: fedavg, sampling: md}]", "strategies.fedavg.sampling.sample"),
    ("strategies: fedavg", "strategies"),
    ("strategies: [{buffer: 3}]", "strategies.0"),
    ("budget: {}", "budget"),
    ("budget: ", "budget"),
    ("seeds: [1, 1]", "seeds"),
    ("lr: fast", "lr"),
    ("lr: {fedbuff: {locl: 1}}", "lr.fedbuff.locl"),
    ("problem: {name: quadratic, importance: eqal}", "problem.importance"),
    ("problem: {name: quadratic, noise: .nan}", "problem.noise"),
    ("name: ../evil", "name"),
    ("name: x.tuning", "name"),
    ("name: Default", "name"),  # an experiment of MLflow's own
    ("grid: [1]", "grid"),
    ("grid: {problem.noise: 3}", "grid.problem.noise"),
    ("grid: {seeds: [1, 2]}", "grid.seeds"),
    ("grid: {problem.noise: [1, 2, 1]}", "grid.problem.noise"),
    ("grid: {budget.updates.x: [1, 2]}", "grid.budget.updates.x"),
    ("grid: {timing.durations: [{name: fx, spred: 3}, fixed]}", "grid.timing.durations.fx.spred"),
    ("grid: {timing.durations: [fixed, '']}", "grid.timing.durations"),
    ("grid: {timing.durations: [fixed, {name: null}]}", "grid.timing.durations"),
    ("timing: {durations: {name: fixed, times: [1, 2, 3]}}", "timing.durations"),  # of two clients
    ("strategies: [fedavg, ace, fedavg]", "strategies.2"),
    ("strategies: [{name: ace, local: {steps: 3}}]\ngrid: {local.steps: [1, 2]}", "grid.local.steps"),
    ("strategies: [{name: async_fedavg, weights: [1, 2, 3]}]", "strategies.0"),
    (DIGITS + "budget: {updates: 20, target: 90}", "budget.target"),  # an accuracy
    (
        DIGITS + "scenarios: {digits · i.i.d. · F50: {budget: {updates: 20, target: 90}}}",
        "scenarios.digits · i.i.d. · F50.budget.target",
    ),
    ("timing: {network: {downlink: 0}}", "timing.network"),
    ("arrangement: {name: rounds, history: 2, arrivals: [1, 2, 3]}", "arrangement"),
    ("timing: {durations: iterations, network: {downlink: 1}}", "timing"),
    ("strategies: ['json:JSONDecoder']", "strategies.0"),  # no strategy
    ("strategies: ['sluggish:Deaf']", "strategies.0"),  # without `receive`
]


@pytest.mark.parametrize(("changed", "key"), MISTAKES)
def test_one_mistake_is_one_line_that_names_the_key(tmp_path: Path, changed: str, key: str) -> None:
    lines = dict(line.split(": ", 1) for line in changed.splitlines())
    (line,) = complain(tmp_path, **lines)
    assert line.startswith(f"s.yaml: {key}: ")


@pytest.mark.parametrize(
    "changed", [{"seeds": "0"}, {"seeds": "[]"}, {"strategies": "[]"}, {"grid": "{problem.noise: []}"}]
)
def test_a_suite_without_runs(tmp_path: Path, changed: dict[str, str]) -> None:
    (line,) = complain(tmp_path, **changed)
    assert line.startswith("s.yaml: ") and line.endswith("the suite expands to no run")


def test_every_mistake_is_said_once_however_large_the_grid(tmp_path: Path) -> None:
    lines = complain(
        tmp_path,
        strategies="[fedbuf, {name: fedbuff, buffer: -1, bufer: 3}, {name: ace, local_lr: slow}]",
        seeds="{}",
        grid="{problem.noise: [0, -1, 2], timing.durations.spread: [0, 20, 120]}",
    )
    assert [line.split(": ")[1] for line in lines] == [
        "seeds",
        "strategies.0",
        "strategies.fedbuff.buffer",
        "strategies.fedbuff.bufer",
        "strategies.ace.local_lr",
        "grid.timing.durations.spread",
        "grid.problem.noise",
    ]
    assert lines[-1].endswith("must be greater than or equal to 0, not -1 (where problem.noise is -1)")


def test_a_refusal_says_where_in_the_grid(tmp_path: Path) -> None:
    (line,) = complain(
        tmp_path,
        strategies="[{name: async_fedavg, weights: [1, 2]}]",
        grid="{problem.centres: [[[0], [1]], [[0], [1], [2]]], problem.noise: [0, 1]}",
    )
    assert line.endswith(
        "weights: 2 given for 3 clients; give one for each (where problem.centres is [[0], [1], [2]])"
    )


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("problem.nois=1", "problem.nois"),
        ("strategies.fedbuf.buffer=1", "strategies.fedbuf.buffer"),
        ("seeds=[1", "seeds=[1"),
        ("seeds.x=1", "seeds.x"),
        ("seeds=", "seeds"),
        ("nothing.there=1", "nothing"),
        ("problem.nothing.there=1", "problem.nothing"),
        ("scale=small", "scale=small"),
        (f"name={'x' * 200}", "name"),
        ("tuning.seeds=100000000", "tuning.seeds"),
        ("problem=", "problem"),
    ],
)
def test_a_mistake_on_the_command_line_names_the_option(tmp_path: Path, setting: str, key: str) -> None:
    (line,) = complain(tmp_path, setting)
    assert line.startswith(f"--set {key}: ")


def test_an_override_that_no_value_of_the_grid_has(tmp_path: Path) -> None:
    lines = complain(tmp_path, "timing.durations.alfa=1", grid="{timing.durations: [fx, fixed]}")
    assert {line.split(": ")[0] for line in lines} == {"--set timing.durations.alfa"}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("name: a\nseeds: 1\nseeds: 2\nname: b", [":3: ", ":4: "]),
        ("name: [", [":1: "]),
        ("name: a\n---\nname: b", [":2: "]),
        ("", [": "]),
        ("[1, 2]", [": "]),
        ("{[1]: 2}", [":1: "]),
        ("\x00", [": "]),
    ],
)
def test_a_file_that_is_no_suite(tmp_path: Path, text: str, places: list[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load(str(path))
    for line, place in zip(caught.value.lines, places, strict=True):
        assert line.startswith(f"{path}{place}")


def test_a_merge_key_is_no_repetition(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "name: small\nseeds: 1\nproblem: quadratic\nbudget: {updates: 3}\n"
        "strategies: [&one {name: fedbuff, buffer: 2}, {<<: *one, buffer: 3}]"
    )
    assert [run.experiment.strategy.buffer for run in load(str(tmp_path / "s.yaml")).runs()] == [2, 3]


@pytest.mark.parametrize("name", ["zzz", "/"])
def test_no_such_suite(name: str) -> None:
    with pytest.raises(UserError, match=name):
        load(name)
