"""Flower apps under the loop: three as Flower's quickstarts are, and small ones that are written here.

In an environment of its own: tox run -e flower.
"""

import gc
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, MetricRecord, RecordDict

from fl_core.execution.execution import Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.flower import MEASURED, Flower
from fl_core.problems.flower_apps.records import Layout, packed, unpacked
from fl_core.problems.flower_apps.world import AppError
from fl_core.problems.problem import InvalidProblemError
from fl_core.recorded_names import Status
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder, run
from fl_core.scenario import Budget, Scenario, Timing
from fl_core.streams import stream

torch.set_num_threads(1)

APPS = Path(__file__).parents[1] / "flower_apps"
QUICKSTARTS: dict[str, dict[str, Any]] = {
    "pytorch": {
        "initial": "pytorchexample.task:Net",
        "evaluate": "pytorchexample.server_app:global_evaluate",
        "examples": "pytorchexample.task:num_examples",
        "importance": "data",
    },
    "sklearn": {"initial": "sklearnexample.task:initial_arrays", "lower": ("test_logloss",)},
    "numpy": {"initial": "numpyexample.task:initial_arrays", "metric": "test/loss"},
}


def quickstart(name: str, **fields: Any) -> Flower:
    return Flower(app=APPS / name, **{"clients": 4, **QUICKSTARTS[name], **fields})


def experiment(
    problem: Flower,
    strategy: str = "fedbuff",
    *,
    updates: int = 12,
    durations: Any = "two_speed",
    seed: int = 1,
    **fields: Any,
) -> Experiment:
    budget, timing = Budget(updates=updates), Timing(durations=durations)
    return Experiment(
        scenario=Scenario(problem=problem, budget=budget, timing=timing, evaluations=2),
        strategy={"name": strategy, "local": "client_app", "local_lr": 0.05, **fields},
        seed=seed,
    )


def after(planned: Experiment, execution: Execution | None = None) -> Simulation:
    """The simulation of an experiment at its end."""
    simulation = Simulation(planned)
    for _ in simulate(simulation, execution):
        pass
    return simulation


def same(first: Simulation, second: Simulation) -> bool:
    kept = [simulation.state.client_moments for simulation in (first, second)]
    states = all(
        torch.equal(kept[0][client]["state"], kept[1][client]["state"]) for client in kept[0] | kept[1]
    )
    return states and torch.equal(first.server.model, second.server.model)


@pytest.mark.parametrize("strategy", ["fedavg", "fedfix", "fedbuff", "fedasync"])
@pytest.mark.parametrize("name", QUICKSTARTS)
def test_quickstarts_learn(name: str, strategy: str) -> None:
    planned = experiment(quickstart(name), strategy, durations="exponential", updates=24)
    record = run(planned)
    assert record.status is Status.DONE
    ranking = planned.scenario.problem.ranking
    first, last = (record.curve[at][ranking.name] * ranking.sign for at in (0, -1))
    assert last > first
    assert len(record.arrivals["client"]) == 24


def slow_reference(problem: Flower, seed: int, rounds: int, lr: float) -> np.ndarray:
    """FedAvg over all clients of the NumPy app, written from its task, without Flower."""
    sys.path.insert(0, str(APPS / "numpy"))
    try:
        from numpyexample.task import load_data
    finally:
        sys.path.remove(str(APPS / "numpy"))
    n, before = problem.clients, np.random.get_state()  # noqa: NPY002
    w, velocities = np.zeros(3), np.zeros((n, 3))
    for job in range(rounds):
        ends = []
        for client in range(n):
            np.random.seed(int(stream(seed, "client_app", client, job).integers(2**32)))  # noqa: NPY002
            x, y = load_data(client, n)
            end = w.copy()
            for _ in range(5):
                batch = np.random.choice(len(x), 5, replace=False)  # noqa: NPY002
                slope = x[batch].T @ (x[batch] @ end - y[batch]) / 5
                velocities[client] = 0.5 * velocities[client] + slope
                end -= lr * velocities[client]
            ends.append(end)
        w = w + np.mean([end - w for end in ends], axis=0)
    np.random.set_state(before)  # noqa: NPY002
    for name in [name for name in sys.modules if name.startswith("numpyexample")]:
        del sys.modules[name]
    return w


def test_fedavg_equals_a_loop_without_flower() -> None:
    """State, seeds and rate reach the app, and its arrays come back."""
    problem = quickstart("numpy")
    end = after(experiment(problem, "fedavg", updates=12, durations="fixed"))
    assert end.server.version == 3
    np.testing.assert_allclose(end.server.model, slow_reference(problem, 1, 3, 0.05), rtol=1e-12)


@pytest.mark.parametrize("name", QUICKSTARTS)
@pytest.mark.parametrize("execution", [OneByOne(), AllInFlight(8)], ids=["one by one", "all in flight"])
def test_runs_repeat_bit_for_bit_in_any_order_of_computing(name: str, execution: Execution) -> None:
    planned = experiment(quickstart(name), "fedbuff", buffer=2)
    assert same(after(planned), after(planned, execution))


def test_generators_are_left_as_they_were() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    after(experiment(quickstart("numpy")))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


def jobs_counted(simulation: Simulation) -> dict[int, int]:
    """How many jobs each client counts in its own state."""
    kept = simulation.state.client_moments.items()
    return {client: unpacked(tensors)["counts"]["jobs"] for client, tensors in kept}


def arrived(simulation: Simulation) -> dict[int, int]:
    counts: dict[int, int] = {}
    for event in simulate(simulation, AllInFlight(8)):
        if event.staleness is not None and event.client is not None:
            counts[event.client] = counts.get(event.client, 0) + 1
    return counts


@pytest.mark.parametrize(
    "fields",
    [{"strategy": "fedbuff", "buffer": 2}, {"strategy": "fedavg", "take": 2}],
    ids=["kept", "dismissed"],
)
def test_a_clients_state_knows_of_jobs_that_arrived_and_no_others(fields: dict[str, Any]) -> None:
    simulation = Simulation(experiment(quickstart("numpy"), **fields))
    assert arrived(simulation) == jobs_counted(simulation)


def test_a_resumed_run_equals_one_that_was_not_interrupted(tmp_path: Path) -> None:
    planned = experiment(quickstart("numpy"), "fedbuff", buffer=2)
    whole = after(planned)
    recorder = Recorder(Simulation(planned))
    recorder.start()
    for number, event in enumerate(simulate(recorder.simulation), 1):
        recorder.see(event)
        if number == 5:
            break
    checkpoint.save(recorder, tmp_path / "saved")
    again = Recorder(Simulation(planned))
    checkpoint.load(again, tmp_path / "saved")
    for event in simulate(again.simulation):
        again.see(event)
    assert same(whole, again.simulation)


CLIENT = """
import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()

@app.train()
def train(msg, context):
    (w,) = msg.content["arrays"].to_numpy_ndarrays()
    metrics = {}
{train}
    content = RecordDict({"arrays": ArrayRecord([w]), "metrics": MetricRecord(metrics)})
    return Message(content=content, reply_to=msg)
"""
TASK = """
import numpy as np
from flwr.app import MetricRecord

def initial():
    return [np.zeros(3)]

def evaluate(server_round, arrays):
    (w,) = arrays.to_numpy_ndarrays()
    return MetricRecord({"loss": float(np.sum((w - 1) ** 2))})
"""
PROJECT = """
[tool.flwr.app.components]
clientapp = "mine.client_app:app"
[tool.flwr.app.config]
learning-rate = 0.5
epochs = 1
"""


def written(folder: Path, train: str, task: str = TASK, **fields: Any) -> Flower:
    """An app whose clients train by the given lines."""
    package = folder / "mine"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (package / "__init__.py").write_text("")
    (package / "task.py").write_text(task)
    (package / "client_app.py").write_text(CLIENT.replace("{train}", textwrap.indent(train, "    ")))
    given = {"clients": 2, "evaluate": "mine.task:evaluate", "metric": "test/loss", **fields}
    return Flower(app=folder, initial="mine.task:initial", **given)


def test_apps_whose_packages_share_a_name_are_not_mixed_up(tmp_path: Path) -> None:
    """Side by side in one process."""
    simulations = [
        Simulation(experiment(written(tmp_path / str(step), f"w = w + {step}"), "asgd", updates=4))
        for step in (1, 10)
    ]
    events = [simulate(simulation) for simulation in simulations]
    for _ in zip(*events, strict=True):
        pass
    ends = [simulation.server.model.tolist() for simulation in simulations]
    assert ends == [[4.0] * 3, [40.0] * 3]


def test_rates_and_settings_reach_the_app_under_its_own_names(tmp_path: Path) -> None:
    problem = written(
        tmp_path,
        'run, sent = context.run_config, msg.content["config"]\n'
        'w = np.array([run["learning-rate"], sent["global"], run["epochs"] + 10 * sent["mu"]])\n',
        clients=1,
        local_lr="learning-rate",
        server_lr="global",
        config={"epochs": 4},
        train_config={"mu": 0.5},
    )
    simulation = Simulation(experiment(problem, "fedavg", updates=1, server_lr=1.0))
    assert [*simulate(simulation)]
    assert simulation.server.model.tolist() == pytest.approx([0.05, 1.0, 9.0])


def test_the_strategys_steps_are_the_apps_epochs(tmp_path: Path) -> None:
    lines = 'w = w - msg.content["config"]["lr"] * context.run_config["epochs"]'
    named = written(tmp_path / "named", lines, steps="epochs")
    three = {"name": "client_app", "steps": 3}
    job = after(experiment(named, "asgd", updates=1, durations="fixed", local=three)).arrived
    assert job is not None and job.delta is not None and job.gradient is not None
    assert job.delta.tolist() == pytest.approx([-0.15] * 3)
    assert job.gradient.tolist() == pytest.approx([1.0] * 3)  # −Δ / (η_l K)
    unnamed = written(tmp_path / "unnamed", lines)
    with pytest.raises(AppError, match="steps"):
        after(experiment(unnamed, "asgd", local=three))


@pytest.mark.parametrize(
    ("train", "word"),
    [
        ("w = w[:2]", "shape"),
        ("raise ValueError('no data')", "no data"),
        ("raise SystemExit(3)", "SystemExit"),
        ("return None", "None"),
        ("return Message(content=RecordDict(), reply_to=msg)", "records of arrays"),
        ("from flwr.app import Error\nreturn Message(Error(1, 'gave up'), reply_to=msg)", "gave up"),
        ("w = w.astype(str)", "type"),
        ("w = msg.content['absent']", "absent"),
    ],
)
def test_a_client_that_fails_is_told_in_one_line(tmp_path: Path, train: str, word: str) -> None:
    with pytest.raises(AppError, match=word) as error:
        after(experiment(written(tmp_path, train)))
    assert "client " in str(error.value) and "\n" not in str(error.value)


def test_updates_that_are_not_finite_end_a_run_as_diverged(tmp_path: Path) -> None:
    assert after(experiment(written(tmp_path, "w = w / 0 * 0"))).status is Status.DIVERGED


@pytest.mark.parametrize(
    ("task", "fields", "word"),
    [
        ("def initial():\n    return 3", {}, "int"),
        ("def initial():\n    raise OSError('offline')", {}, "offline"),
        ("import no_such_package", {}, "no_such_package"),
        (TASK, {"initial": "json:dumps"}, "folder"),
        (TASK, {"config": {"epoch": 2}}, "'epochs'"),
        (TASK, {"config": {"epochs": "two"}}, "int"),
    ],
)
def test_an_app_that_cannot_be_used_is_told_beforehand(
    tmp_path: Path, task: str, fields: dict[str, Any], word: str
) -> None:
    problem = written(tmp_path, "pass", task)
    with pytest.raises(InvalidProblemError, match=word):
        problem.model_copy(update={**fields, "config": tuple(fields.get("config", {}).items())}).check(0)


def test_what_does_not_repeat_is_told(tmp_path: Path) -> None:
    """A generator that outlives a call; one that is seeded in each, or the global ones, are fine."""
    lines = {
        "global": "w = w + np.random.rand()",
        "own": "w = w + np.random.default_rng(3).random()",
        "outlives": "context.__class__.rng = rng = getattr(context, 'rng', np.random.default_rng(3))\n"
        "w = w + rng.random()",
        "unseeded": "w = w + np.random.default_rng().random()",
    }
    remarks = {name: written(tmp_path / name, train).remarks(0) for name, train in lines.items()}
    assert [name for name, said in remarks.items() if any("two results" in line for line in said)] == [
        "outlives",
        "unseeded",
    ]


def test_a_rate_that_is_not_read_is_told(tmp_path: Path) -> None:
    lines = {
        "message": 'w = w - msg.content["config"]["lr"]',
        "run_config": 'w = w - context.run_config["learning-rate"]',
        "renamed": 'w = w - context.run_config["learning-rate"]',
        "none": "w = w - 1",
    }
    names = {"renamed": "learning-rate", "none": None}
    told = {
        name: [
            line
            for line in written(tmp_path / name, train, local_lr=names.get(name, "lr")).remarks(0)
            if "learning rates" in line
        ]
        for name, train in lines.items()
    }
    assert [name for name, said in told.items() if said] == ["run_config"]


def test_a_measured_job_takes_the_seconds_of_its_call_times_its_length(tmp_path: Path) -> None:
    problem = written(tmp_path, "import time\ntime.sleep(0.05)", measured=True)
    law = {"name": "fixed", "times": [1, 3]}
    simulation = Simulation(experiment(problem, "asgd", updates=6, durations=law))
    served: dict[int | None, list[float]] = {0: [], 1: []}
    for event in simulate(simulation):
        assert event.began is not None
        served[event.client].append((event.time - event.began) * float(simulation.lengths.clock.unit))
    assert min(served[0]) >= 0.05 and min(served[1]) >= 0.15
    assert MEASURED in problem.remarks(0)


def test_strategies_see_the_lengths_of_arrays() -> None:
    simulation = after(experiment(quickstart("pytorch"), "heloco", updates=3))
    assert simulation.server.blocks == [2048, 32, 32, 32, 320, 10]


def test_running_variances_are_told(tmp_path: Path) -> None:
    """A client that counts mini-batches and variances, as BatchNorm does, is taken as it is."""
    task = "from torch import nn\ndef initial():\n    return nn.BatchNorm1d(3)\n" + TASK.replace(
        "def initial", "def no"
    )
    problem = written(tmp_path, "pass", task)
    assert problem.world(0).d == 13
    assert any("running_var" in line for line in problem.remarks(0))


def test_clients_evaluate_weighted_by_their_examples() -> None:
    problem = quickstart("numpy", evaluate="clients")
    world = problem.world(0)
    model = torch.tensor([0.3, 1.0, -1.0], dtype=torch.float64)
    evaluation = world.evaluate(model)
    by_client = evaluation.client_metrics["test/loss"]
    assert len(by_client) == 4
    assert evaluation.metrics["test/loss"] == pytest.approx(by_client.mean())  # each has 20 examples
    assert evaluation.client_loss is None


def test_examples_weigh_clients(tmp_path: Path) -> None:
    task = f"{TASK}\ndef count(partition_id, num_partitions):\n    return 10 * (partition_id + 1)\n"
    problem = written(tmp_path, "pass", task, clients=4, examples="mine.task:count", importance="data")
    assert problem.world(0).p.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])


ARRAYS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "half": np.array([0.5, -2.0], np.float16),
    "count": np.array(41),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 4), np.float32),
}


def test_arrays_are_a_vector_and_back() -> None:
    layout, vector = Layout.of(ArrayRecord({name: Array(array) for name, array in ARRAYS.items()}))
    assert vector.dtype is torch.float32 and layout.d == 11
    for name, array in layout.record(vector).items():
        back = array.numpy()
        assert back.dtype == ARRAYS[name].dtype and back.shape == ARRAYS[name].shape
        assert (back == ARRAYS[name]).all()
    shuffled = ArrayRecord({name: Array(ARRAYS[name]) for name in reversed(ARRAYS)})
    assert torch.equal(layout.vector(shuffled), vector)
    by_place = ArrayRecord([*ARRAYS.values()])
    assert torch.equal(layout.vector(by_place), vector)
    moved = layout.record(vector + 0.4)
    assert moved["count"].numpy() == 41  # rounded
    double, _ = Layout.of([np.zeros(2), np.zeros(2, np.float32)])
    assert double.dtype is torch.float64


def test_a_clients_state_is_bytes_and_back() -> None:
    state = RecordDict(
        {
            "arrays": ArrayRecord([np.arange(3.0), np.array(2)]),
            "metrics": MetricRecord({"loss": 0.1, "many": [1, 2], "never": float("inf")}),
            "config": ConfigRecord(
                {"on": True, "name": "ü", "raw": b"\x00\xff", "mixed": [b"a", b"b"], "n": 3}
            ),
        }
    )
    tensors = packed(state)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.uint8}
    back = unpacked(tensors)
    assert back == state
    assert [type(value) for value in back["config"].values()] == [bool, str, bytes, list, int]
    assert unpacked(packed(RecordDict())) == unpacked({}) == RecordDict()


def test_two_hundred_clients_hold_their_states_and_nothing_else() -> None:
    """Contexts, messages and worlds of clients that are not at work are not kept."""
    simulation = after(experiment(quickstart("numpy", clients=200), "fedbuff", updates=400))
    gc.collect()
    assert not [held for held in gc.get_objects() if isinstance(held, Context)]
    sizes = [tensors["state"].numel() for tensors in simulation.state.client_moments.values()]
    assert len(sizes) > 100 and max(sizes) < 1000
