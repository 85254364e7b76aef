"""A suite file becomes runs: grid × strategies × seeds, with what they share, and what `--set` changes."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import UserError
from benchmarks.suite.overrides import Setting
from benchmarks.suite.suite import PlannedRun, load
from fl_core.arrangements import Rounds
from fl_core.experiment import Experiment
from fl_core.local_work import SGD, Prox
from fl_core.problems.quadratic import Quadratic
from fl_core.recorded_names import UNTUNED, Tag
from fl_core.scenario import Budget, Scenario, Timing
from fl_core.strategies.ace import ACE
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.hyperparameters import with_parameters
from fl_core.timing.durations import FX, TwoSpeed

BASE = """
name: small
seeds: 2
problem: {name: quadratic, centres: [[-1], [0], [4]]}
timing: {durations: {name: fx, spread: 50}}
budget: {updates: 30}
local: {steps: 3, batch: 8}
strategies: [fedavg, {name: fedbuff, buffer: 2}]
"""
GRID = """
grid:
  timing.durations: [{name: fx, spread: 80}, {name: two_speed, share: 0.4}, exponential]
  problem.noise: [0, 0.5]
"""

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a suite file and answers its path."""

    def _write(text: str) -> str:
        path = tmp_path / "suite.yaml"
        path.write_text(text)
        return str(path)

    return _write


def scenarios(runs: list[PlannedRun]) -> list[str]:
    return list(dict.fromkeys(run.scenario for run in runs))


def test_a_suite_is_the_experiments_that_one_would_write_by_hand(write: Write) -> None:
    scenario = Scenario(
        problem=Quadratic(centres=((-1.0,), (0.0,), (4.0,))),
        timing=Timing(durations=FX(spread=50)),
        budget=Budget(updates=30),
    )
    local = SGD(steps=3, batch=8)
    by_hand = [
        Experiment(scenario=scenario, strategy=strategy, seed=seed)
        for strategy in (FedAvg(local=local), FedBuff(buffer=2, local=local))
        for seed in (0, 1)
    ]
    runs = load(write(BASE)).runs()
    assert [run.experiment for run in runs] == by_hand
    assert [run.key for run in runs] == [experiment.key for experiment in by_hand]
    assert {run.suite for run in runs} == {"small"}


def test_the_grid_is_a_product_in_the_order_of_the_file(write: Write) -> None:
    runs = load(write(BASE + GRID)).runs()
    laws = [run.experiment.scenario.timing.durations.reference() for run in runs]
    assert len(runs) == 3 * 2 * 2 * 2 == len({run.key for run in runs})
    assert laws == ["fx"] * 8 + ["two_speed"] * 8 + ["exponential"] * 8
    assert [run.experiment.scenario.problem.noise for run in runs[:8]] == [0] * 4 + [0.5] * 4


def test_labels_tell_scenarios_and_strategies_apart(write: Write) -> None:
    runs = load(write(BASE + GRID)).runs()
    assert len(scenarios(runs)) == 6
    assert scenarios(runs)[0] == "quadratic · F80 · noise 0"
    assert len({(run.scenario, run.strategy, run.experiment.seed) for run in runs}) == len(runs)
    first = runs[0]
    about = first.tags()
    assert [about[tag] for tag in (Tag.PROBLEM, Tag.PARTITION, Tag.TIMING)] == ["quadratic", "", "F80"]
    assert first.strategy == "FedAvg"
    assert about[Tag.PAPER].startswith("Synchronous FedAvg, a round waits for the slowest (McMahan et al.,")


def test_strategies_that_differ_in_a_rate_alone_get_it_into_their_labels(write: Write) -> None:
    strategies = "[{name: ace, local_lr: 0.1}, {name: ace, local_lr: 0.2}, {name: ace, local: prox}]"
    runs = load(write(BASE), [f"strategies={strategies}"]).runs()
    labels = list(dict.fromkeys(run.strategy for run in runs))
    assert labels == ["ACE [local_lr 0.1]", "ACE [local_lr 0.2]", "ACE + prox"]


def test_of_several_variants_each_is_named(write: Write) -> None:
    strategies = "[async_fedavg, {name: async_fedavg, weights: identical}, fedavg]"
    runs = load(write(BASE), [f"strategies={strategies}", "seeds=1"]).runs()
    labels = [run.strategy for run in runs]
    assert labels == ["Async FedAvg (weights time_based)", "Async FedAvg (weights identical)", "FedAvg"]


def test_long_rows_of_probabilities_are_counted(write: Write) -> None:
    strategies = "[{name: generalized_asyncsgd, routing: [0.25, 0.25, 0.5]}]"
    [run] = load(write(BASE), [f"strategies={strategies}", "seeds=1", "problem.centres=[[0],[1],[2]]"]).runs()
    assert run.strategy == "Generalized AsyncSGD (routing (2 × 0.25, 0.5))"


def test_grid_values_that_labels_do_not_show_are_told_nonetheless(write: Write) -> None:
    grid = "grid: {timing.durations.reading: [grid, uniform], budget.updates: [30, 60], local.steps: [1, 4]}"
    labels = scenarios(load(write(BASE + grid)).runs())
    assert len(set(labels)) == 8
    assert "updates 60" in labels[-1] and "steps 4" in labels[-1]


def test_whole_problems_are_told_apart_by_what_differs(write: Write) -> None:
    split = "partition: {{name: class_dirichlet, alpha: {}}}, target: 0.9"
    few, many, even = (
        f"{{name: digits, clients: {n}, {split.format(alpha)}}}" for n, alpha in ((5, 1), (9, 1), (5, 2))
    )
    assert scenarios(load(write(BASE + f"grid: {{problem: [{few}, {many}]}}")).runs()) == [
        "digits · Dirichlet 1 · F50 · problem clients 5",
        "digits · Dirichlet 1 · F50 · problem clients 9",
    ]
    assert scenarios(load(write(BASE + f"grid: {{problem: [{few}, {many}, {even}]}}")).runs())[1:] == [
        "digits · Dirichlet 1 · F50 · problem clients 9 partition alpha 1",
        "digits · Dirichlet 2 · F50 · problem clients 5 partition alpha 2",
    ]


def test_an_arrangement_is_part_of_the_label(write: Write) -> None:
    (label,) = scenarios(load(write(BASE + "arrangement: {name: rounds, workers: 2}")).runs())
    assert label == "quadratic · F50 · rounds of 2 from the last 5 models"


def test_rounds_need_no_durations_in_the_label(write: Write) -> None:
    text = BASE.replace("timing:", "# timing:") + "arrangement: {name: rounds, history: 1}"
    (label,) = scenarios(load(write(text)).runs())
    assert label == "quadratic · synchronous rounds of 5"


def test_rates_of_a_strategy_come_from_itself_then_by_name_then_from_its_paper(write: Write) -> None:
    text = BASE.replace("buffer: 2", "buffer: 2, local_lr: 0.7") + (
        "lr: {fedavg: 0.3, fedbuff: {local: 0.4, server: 0.5}}\n"
    )
    fedavg, fedbuff = (run.experiment.strategy for run in load(write(text), ["seeds=1"]).runs())
    assert (fedavg.local_lr, fedavg.server_lr) == (0.3, FedAvg().server_lr)
    assert (fedbuff.local_lr, fedbuff.server_lr) == (0.7, 0.5)


def test_one_rate_for_all(write: Write) -> None:
    runs = load(write(BASE + "lr: 1e-3"), ["strategies=[fedavg, ace]"]).runs()
    assert {run.experiment.strategy.local_lr for run in runs} == {0.001}  # PyYAML reads 1e-3 as text


@pytest.mark.parametrize(
    ("strategies", "warned"),
    [("[fedavg, ace]", True), ("[fedavg]", False), ("[fedavg, {name: ace, local_lr: 0.2}]", False)],
)
def test_one_rate_for_several_strategies_is_said_in_the_description(
    write: Write, strategies: str, warned: bool
) -> None:
    suite = load(write(BASE + "lr: 0.1"), [f"strategies={strategies}"])
    assert (suite.untuned == UNTUNED) is suite.description.endswith(UNTUNED) is warned


def test_another_local_work_keeps_the_suites_steps_and_batch(write: Write) -> None:
    text = BASE.replace("buffer: 2", "buffer: 2, local: {name: prox, mu: 0.5, batch: 4}")
    assert load(write(text)).runs()[-1].experiment.strategy.local == Prox(mu=0.5, steps=3, batch=4)


def test_a_strategy_keeps_the_local_work_of_its_paper(write: Write) -> None:
    runs = load(write(BASE), ["strategies=[fedasync, {name: fedasync, local: {steps: 9}}]", "seeds=1"]).runs()
    usual, longer = (run.experiment.strategy.local for run in runs)
    assert usual == Prox(mu=0.005, steps=3, batch=8)
    assert longer == Prox(mu=0.005, steps=9, batch=8)


def test_seeds_are_a_count_or_a_list(write: Write) -> None:
    def seeds(value: str) -> list[int]:
        suite = load(write(BASE), [f"seeds={value}", "strategies=[ace]"])
        return [run.experiment.seed for run in suite.runs()]

    assert seeds("3") == [0, 1, 2]
    assert seeds("[7, 5]") == [7, 5]


def test_a_part_of_the_users_own(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_for_the_suite.py").write_text(
        "from typing import ClassVar\n"
        "from fl_core.strategies.ace import ACE\n"
        "class Mine(ACE):\n"
        '    """Mine, all mine."""\n'
        '    title: ClassVar[str] = "Mine"\n'
        "    boost: float = 2.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    strategies = "strategies=[{name: 'mine_for_the_suite:Mine', boost: 3}]"
    run = load(write(BASE), [strategies, "seeds=1"]).runs()[0]
    assert isinstance(run.experiment.strategy, ACE)
    assert run.experiment.description()["strategy"]["name"] == "mine_for_the_suite:Mine"
    assert (run.strategy, run.tags()[Tag.PAPER]) == ("Mine (boost 3.0)", "Mine, all mine.")


@pytest.mark.parametrize("name", ["two\nlines", "escape\x1b[31m"])
def test_labels_hold_no_control_characters(write: Write, tmp_path: Path, name: str) -> None:
    """Of a strategy's own label, of a file that a scenario is named after, and of a suite."""
    with pytest.raises(UserError, match=r"strategies.1.label"):
        load(
            write(MINE),
            [Setting(("strategies",), [{"name": "fedavg"}, {"name": "fedbuff", "label": name}], "")],
        )
    trace = tmp_path / f"{name}.csv"
    trace.write_text("0,1\n1,1\n2,1\n3,1\n4,1\n5,1\n6,1\n7,1\n8,1\n9,1\n")
    durations = {"name": "trace", "path": str(trace)}
    with pytest.raises(UserError, match=r"scenario .*control characters"):
        load(write(BASE), [Setting(("timing", "durations"), durations, "")])
    with pytest.raises(UserError, match="name"):
        load(write(BASE), [Setting(("name",), name, "")])


# -- overrides -------------------------------------------------------------------------------------


def test_an_override_makes_way_for_itself(write: Write) -> None:
    settings = ["timing.durations=two_speed", "timing.durations.share=0.25", "arrangement.name=rounds"]
    scenario = load(write(BASE), settings).runs()[0].experiment.scenario
    assert scenario.timing.durations == TwoSpeed(share=0.25)
    assert scenario.arrangement == Rounds()


def test_an_override_reaches_a_strategy_by_its_name_or_place(write: Write) -> None:
    runs = load(write(BASE), ["strategies.fedbuff.buffer=7", "strategies.0.local_lr=0.9", "seeds=1"]).runs()
    assert (runs[0].experiment.strategy.local_lr, runs[1].experiment.strategy.buffer) == (0.9, 7)


def test_an_override_of_a_key_of_the_grid_narrows_it(write: Write) -> None:
    suite = load(write(BASE + GRID), ["timing.durations={name: fx, spread: 20}"])
    assert list(suite.grid) == ["problem.noise"]
    assert {run.tags()[Tag.TIMING] for run in suite.runs()} == {"F20"}


def test_an_override_inside_a_key_of_the_grid_changes_the_values_that_have_it(write: Write) -> None:
    suite = load(write(BASE + GRID), ["timing.durations.spread=30"])
    laws = list(dict.fromkeys(run.tags()[Tag.TIMING] for run in suite.runs()))
    assert laws == ["F30", "two-speed 40 % × 10", "exponential"]


def test_an_override_can_span_a_grid(write: Write) -> None:
    suite = load(write(BASE + GRID), ["grid.problem.noise=[1, 2, 3]", "timing.durations=exponential"])
    assert [run.experiment.scenario.problem.noise for run in suite.runs()[::4]] == [1, 2, 3]


def test_the_grid_may_span_a_whole_and_its_part(write: Write) -> None:
    text = BASE.replace("problem: {name: quadratic, centres: [[-1], [0], [4]]}\n", "")
    grid = "grid: {problem.noise: [1, 2], problem: [quadratic, {name: quadratic, centres: [[3], [4]]}]}"
    assert len(scenarios(load(write(text + grid)).runs())) == 4


MINE = BASE.replace("{name: fedbuff, buffer: 2}", "{name: fedbuff, buffer: 2, label: mine}")


def test_what_has_a_label_makes_that_of_no_other_longer(write: Write) -> None:
    other = BASE.replace("{name: fedbuff, buffer: 2}", "{name: fedavg, local_lr: 0.2, label: mine}")
    assert {run.strategy for run in load(write(other)).runs()} == {"FedAvg", "mine"}


def test_a_label_names_a_strategy_and_changes_no_key(write: Write) -> None:
    plain, labelled = (load(write(text)).runs() for text in (BASE, MINE))
    assert [run.strategy for run in labelled] == ["FedAvg", "FedAvg", "mine", "mine"]
    assert [run.key for run in labelled] == [run.key for run in plain]
    twice = MINE.replace("fedavg", "{name: fedavg, label: mine}")
    with pytest.raises(UserError, match=r"suite.yaml:8: strategies.1.label: "):
        load(write(twice))
    with pytest.raises(UserError, match=r"strategies.1.label: "):
        load(write(MINE.replace("label: mine", "label: 3")))


def test_strategies_are_picked_out_by_label_or_name(write: Write) -> None:
    assert load(write(BASE)).highlighted == []
    for name in ("mine", "fedbuff"):
        assert load(write(f"{MINE}highlight: [{name}]\n")).highlighted == ["mine"]
    with pytest.raises(UserError, match="highlight: "):
        load(write(f"{MINE}highlight: [mien]\n"))


COUNTED = """
from collections import Counter
from pydantic import model_validator
from fl_core.local_work import SGD
from fl_core.strategies.asgd import ASGD

counts = Counter()


class Work(SGD):
    @model_validator(mode="after")
    def _count(self):
        counts["local"] += 1
        return self


class Mine(ASGD):
    @model_validator(mode="after")
    def _count(self):
        counts["strategy"] += 1
        return self
"""


def test_a_value_is_validated_once_however_many_runs_share_it(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counted_parts.py").write_text(COUNTED)
    monkeypatch.syspath_prepend(tmp_path)
    strategies = """
strategies:
  - {name: "counted_parts:Mine", local_lr: 0.2, server: nesterov}
  - {name: "counted_parts:Mine", local_lr: 0.3}
"""
    text = BASE.replace("local: {", 'local: {name: "counted_parts:Work", ')
    suite = load(write(text.partition("strategies:")[0] + strategies + GRID))
    runs = suite.runs()
    counts = importlib.import_module("counted_parts").counts
    assert len(runs) == 6 * 2 * 2 and {run.experiment.strategy.local.steps for run in runs} == {3}
    assert counts == {"local": 1, "strategy": 2}
    assert len({id(run.experiment.strategy) for run in runs}) == 2


def test_other_values_of_a_strategy_leave_its_parts_as_they_are() -> None:
    strategy = FedBuff(buffer=3, local=Prox(mu=0.5, steps=4), server="adam")
    scenario = Scenario(problem=Quadratic(), budget=Budget(updates=100))
    changed = with_parameters(strategy, {"local_lr": 0.25, "local.mu": 2}, scenario)
    assert changed == FedBuff(buffer=3, local_lr=0.25, local=Prox(mu=2, steps=4), server="adam")
    assert changed.server is strategy.server
    other = with_parameters(strategy, {"local.batch": 8, "local.name": "sgd"}, scenario)
    assert other.local == SGD(steps=4, batch=8)
