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


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (
            {"strategies": "[fedbuf]"},
            "s.yaml: strategies.0: unknown strategy 'fedbuf'. Did you mean 'fedbuff'?",
        ),
        (
            {"timing": "{durations: fix}"},
            "s.yaml: timing.durations: unknown durations 'fix'. Did you mean",
        ),
        ({"target": "0.9"}, "s.yaml: target: no such key. Did you mean 'problem.target'? Allowed: name, "),
        (
            {"timing": "{durations: {name: fx, spred: 3}}"},
            "s.yaml: timing.durations.spred: no such key. Did you mean 'spread'? Allowed: name, ",
        ),
        (
            {"strategies": "[{name: fedbuff, buffer: two}]"},
            "s.yaml: strategies.fedbuff.buffer: must be a whole number, not 'two'",
        ),
        (  # an option of a part, written beside the part
            {"strategies": "[{name: fedavg, sample: 10}]"},
            "s.yaml: strategies.fedavg.sample: no such key. Did you mean 'sampling'? Allowed: name, ",
        ),
        (
            {"strategies": "[{name: fedavg, sampling: md}]"},
            "s.yaml: strategies.fedavg.sampling.sample: is missing",
        ),
        ({"strategies": "fedavg"}, "s.yaml: strategies: must be a list, not 'fedavg'"),
        ({"strategies": "[{buffer: 3}]"}, "s.yaml: strategies.0: a strategy needs a name: one of ace, "),
        ({"budget": "{}"}, "s.yaml: budget: a budget needs 'updates' or 'time'"),
        ({"budget": ""}, "s.yaml: budget: is missing"),
        ({"seeds": "[1, 1]"}, "s.yaml: seeds: duplicate seed"),
        ({"lr": "fast"}, "s.yaml: lr: must be a number, not 'fast'"),
        ({"lr": "{fedbuff: {locl: 1}}"}, "s.yaml: lr.fedbuff.locl: no such key. Did you mean 'local'?"),
        (
            {"problem": "{name: quadratic, importance: eqal}"},
            "s.yaml: problem.importance: must be 'equal' or 'data'",
        ),
        ({"problem": "{name: quadratic, noise: .nan}"}, "s.yaml: problem.noise: must be "),
        ({"name": "../evil"}, "s.yaml: name: "),
        ({"name": "x.tuning"}, "s.yaml: name: names that end in '.tuning' are those of campaigns: choose"),
        ({"name": "Default"}, "s.yaml: name: 'Default' is an experiment of MLflow's own: choose another, n"),
        ({"grid": "[1]"}, "s.yaml: grid: must be a mapping of dotted keys to lists of values"),
        ({"grid": "{problem.noise: 3}"}, "s.yaml: grid.problem.noise: must be a list of values, not 3"),
        ({"grid": "{seeds: [1, 2]}"}, "s.yaml: grid.seeds: a grid spans keys of problem, timing, "),
        ({"grid": "{problem.noise: [1, 2, 1]}"}, "s.yaml: grid.problem.noise: duplicate value"),
        (
            {"grid": "{budget.updates.x: [1, 2]}"},
            "s.yaml: grid.budget.updates.x: budget.updates is 30, which has no",
        ),
        (
            {"grid": "{timing.durations: [{name: fx, spred: 3}, fixed]}"},
            "s.yaml: grid.timing.durations.fx.spred: no such key. Did you mean 'spread'?",
        ),
        (
            {"timing": "{durations: {name: fixed, times: [1, 2, 3]}}"},
            "s.yaml: timing.durations: times: 3 given for 2 clients; give one for all, or one for each",
        ),
        ({"strategies": "[fedavg, ace, fedavg]"}, "s.yaml: strategies.2: the same as entry 0, FedAvg"),
        (
            {"strategies": "[{name: ace, local: {steps: 3}}]", "grid": "{local.steps: [1, 2]}"},
            "s.yaml: grid.local.steps: makes no difference to ACE",
        ),
        (
            {"strategies": "[{name: async_fedavg, weights: [1, 2, 3]}]"},
            "s.yaml: strategies.0: Async FedAvg (weights (1.0, 2.0, 3.0)) is incompatible with this ",
        ),
        (
            {"problem": "{name: digits, clients: 2}", "budget": "{updates: 20, target: 90}"},
            "s.yaml: budget.target: 'test/accuracy' lies between 0 and 1: write 0.9 for 90 %",
        ),
        (
            {
                "problem": "{name: digits, clients: 2}",
                "scenarios": "{digits · i.i.d. · F50: {budget: {updates: 20, target: 90}, target: 0.9}}",
            },
            "s.yaml: scenarios.digits · i.i.d. · F50.budget.target: 'test/accuracy' lies between 0 and 1",
        ),
        (
            {"timing": "{network: {downlink: 0}}"},
            "s.yaml: timing.network: downlink: a link of 0 Mbit/s lets nothing through; rates are above 0",
        ),
        (
            {"arrangement": "{name: rounds, history: 2, arrivals: [1, 2, 3]}"},
            "s.yaml: arrangement: arrivals: 3 given for 2 clients",
        ),
        (
            {"timing": "{durations: iterations, network: {downlink: 1}}"},
            "s.yaml: timing: time is counted in server iterations: leave out the network",
        ),
        (
            {"strategies": "['no_such_module:Mine']"},
            "s.yaml: strategies.0: cannot import 'no_such_module:Mine': ModuleNotFoundError",
        ),
        (
            {"strategies": "['json:JSONDecoder']"},
            "s.yaml: strategies.0: 'json:JSONDecoder' is not a strategy: it must subclass asyncfl.Strategy",
        ),
        (
            {"strategies": "['sluggish:Deaf']"},
            "s.yaml: strategies.0: Deaf has no receive: write `def receive(self, server, update)`, ",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(f"{key} {of}" for key, of in value.items()),
)
def test_one_mistake_is_one_line(tmp_path: Path, changed: dict[str, str], line: str) -> None:
    lines = complain(tmp_path, **changed)
    assert len(lines) == 1
    assert lines[0].startswith(line)


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
    ("name", "words"), [("''", "''"), ("{name: ''}", "name ''"), ("{name: null}", "name none")]
)
def test_a_part_of_the_grid_without_a_name_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (line,) = complain(tmp_path, grid=f"{{timing.durations: [fixed, {name}]}}")
    assert line.startswith("s.yaml: grid.timing.durations: ") and line.endswith(
        f"(where timing.durations is {words})"
    )


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("problem.nois=1", "--set problem.nois: no such key. Did you mean 'noise'? Allowed: name, clients,"),
        (
            "strategies.fedbuf.buffer=1",
            "--set strategies.fedbuf.buffer: unknown entry 'fedbuf'. Did you mean 'fedbuff'?",
        ),
        (
            "strategies.fedbuff.buffer=0",
            "--set strategies.fedbuff.buffer: must be greater than or equal to 1, not 0",
        ),
        ("seeds", "--set seeds: must be KEY=VALUE"),
        ("seeds=[1", "--set seeds=[1: column 3: not valid YAML: "),
        ("seeds.x=1", "--set seeds.x: seeds is 2, which has no keys"),
        ("seeds=", "--set seeds: must be a number or a list, not empty"),
        ("seeds=three", "--set seeds: must be a number or a list, not 'three'"),
        ("nothing.there=1", "--set nothing: no such key. Did you mean 'tuning'? Allowed: name, "),
        ("problem.nothing.there=1", "--set problem.nothing: no such key. Did you mean 'noise'? Allowed: "),
        ("scale=small", "--set scale=small: --set cannot choose a scale. Use --scale small"),
        (f"name={'x' * 200}", "--set name: should have at most 120 characters, not 'xxx"),
        ("tuning.seeds=100000000", "--set tuning.seeds: must be less than or equal to 10000, not 100000000"),
        ("problem=", "--set problem: "),
    ],
)
def test_a_mistake_on_the_command_line_names_the_option(tmp_path: Path, setting: str, line: str) -> None:
    lines = complain(tmp_path, setting)
    assert len(lines) == 1 and lines[0].startswith(line)


def test_an_override_that_no_value_of_the_grid_has(tmp_path: Path) -> None:
    lines = complain(tmp_path, "timing.durations.alfa=1", grid="{timing.durations: [fx, fixed]}")
    assert {line.split(": ")[0] for line in lines} == {"--set timing.durations.alfa"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: a\nseeds: 1\nseeds: 2\nname: b", ":3: duplicate key 'seeds'"),
        ("name: [", ":1: column 8: not valid YAML: "),
        ("name: a\n---\nname: b", ":2: column 1: not valid YAML: expected a single document"),
        ("", ": must be a mapping of keys to values"),
        ("[1, 2]", ": must be a mapping of keys to values"),
        ("{[1]: 2}", ":1: a key must be a text, not a list or a mapping"),
        ("\x00", ": not valid YAML: unacceptable character"),
    ],
)
def test_a_file_that_is_no_suite(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load(str(path))
    assert caught.value.lines[0].startswith(f"{path}{line}")


def test_all_repeated_keys_are_told(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("name: a\nseeds: 1\nseeds: 2\nname: b")
    with pytest.raises(UserError) as caught:
        load(str(path))
    assert len(caught.value.lines) == 2


def test_a_merge_key_is_no_repetition(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "name: small\nseeds: 1\nproblem: quadratic\nbudget: {updates: 3}\n"
        "strategies: [&one {name: fedbuff, buffer: 2}, {<<: *one, buffer: 3}]"
    )
    assert [run.experiment.strategy.buffer for run in load(str(tmp_path / "s.yaml")).runs()] == [2, 3]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("quikstart", "unknown suite 'quikstart'. Did you mean 'quickstart'? Available: "),
        ("zzz", "unknown suite 'zzz'. Available: "),
        ("no/such/file.yaml", "no/such/file.yaml: No such file or directory"),
        ("/", "/: Is a directory"),
    ],
)
def test_no_such_suite(name: str, line: str) -> None:
    with pytest.raises(UserError) as caught:
        load(name)
    assert caught.value.lines[0].startswith(line)
