"""Energy from a suite to MLflow, page and comparison, with a server that takes time."""

import json
import zlib
from base64 import b64decode
from statistics import median
from typing import Any

import in_process
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from mlflow import MlflowClient
from mlflow.entities import Run
from recorded import runs

from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Announcement, Outbox
from benchmarks.mlflow_store.store import Store
from benchmarks.suite.suite import load, tasks
from fl_core.recorded_names import Clock
from reports.comparisons import compare
from reports.page import sections
from reports.records.records import run_table
from reports.records.suite_reader import load as read_suite
from reports.sections.section import Results, Section
from tests.databases import new_store

WATTS, IDLE, SECONDS = [5, 3, 2], 0.5, 10
TARGET = 0.3
SUITE: dict[str, Any] = {
    "name": "powered",
    "seeds": 2,
    "problem": {
        "name": "quadratic",
        "centres": [[-1.0], [1.0], [0.5]],
        "start": [3.0],
        "noise": 0.1,
        "target": TARGET,
    },
    "budget": {"updates": 60},
    "evaluations": 12,
    "lr": 0.1,
    "strategies": ["asgd", {"name": "fedbuff", "buffer": 2}],
}
TIMING: dict[str, Any] = {
    "unit": SECONDS,
    "durations": {"name": "fixed", "times": [1, 2, 3]},
    "power": {"computation": {"name": "table", "table": WATTS}, "idle": IDLE},
    "server": {"durations": {"name": "fixed", "times": ["1/4"]}},
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with the runs of the suite, to be read alone."""
    folder = tmp_path_factory.mktemp("powered")
    store = new_store(folder / "results")
    path = folder / "powered.yaml"
    path.write_text(yaml.safe_dump({**SUITE, "timing": TIMING}))
    outbox = Outbox(store.outbox)
    planned = tasks(load(str(path)).runs())
    for task in planned:
        in_process.compute(task, outbox)
    delivery = Delivery(store, outbox)
    places, conditions = in_process.places(planned), in_process.conditions(planned)
    delivery.announce(Announcement("powered", "Clients that draw power.", places, conditions=conditions))
    delivery.send()
    delivery.close()
    return store


def files(store: Store, run: Run, name: str) -> dict[str, np.ndarray]:
    """A table of a run in MLflow, by column."""
    path = MlflowClient(store.tracking_uri).download_artifacts(run.info.run_id, f"{name}.parquet")
    return {key: np.array(values) for key, values in pq.read_table(path).to_pydict().items()}


def at_target(curve: dict[str, np.ndarray]) -> float:
    """The energy at the first evaluation that is near enough to the optimum."""
    return float(curve["energy"][np.argmax(curve["distance"] <= TARGET)])


def test_energy_reaches_mlflow(recorded: Store) -> None:
    """Watts times the seconds that clients worked, from another table of the run; its history; medians."""
    client = MlflowClient(recorded.tracking_uri)
    to_target: dict[str, list[float]] = {}
    for run in runs(recorded, "powered"):
        curve, clients = files(recorded, run, "curve"), files(recorded, run, "clients")
        end = curve["time"][-1]
        joules = SECONDS * (3 * IDLE * end + (np.array(WATTS) - IDLE) @ clients["computation_time"])
        assert curve["energy"][-1] == pytest.approx(joules)
        assert curve["energy"][0] == 0 and (np.diff(curve["energy"]) > 0).all()
        history = client.get_metric_history(run.info.run_id, "clock/energy")
        assert [point.value for point in history] == curve["energy"].tolist()
        assert run.data.metrics["energy_to_target"] == at_target(curve)
        to_target.setdefault(run.data.tags["asyncfl.strategy"], []).append(at_target(curve))
    groups = {run.data.tags["asyncfl.strategy"]: run for run in runs(recorded, "powered", "group")}
    assert groups.keys() == to_target.keys() == {"ASGD", "FedBuff (buffer 2)"}
    for strategy, group in groups.items():
        assert group.data.metrics["energy_to_target"] == pytest.approx(median(to_target[strategy]))


def test_views_of_a_scenario_have_energy_as_an_axis(recorded: Store) -> None:
    experiment = MlflowClient(recorded.tracking_uri).get_experiment_by_name("powered")
    states = [
        json.loads(zlib.decompress(b64decode(json.loads(value)["state"].partition(";")[2])))
        for name, value in experiment.tags.items()
        if name.startswith("mlflow.sharedViewState.")
    ]
    charts = [chart for state in states for chart in state.get("compareRunCharts", ())]
    assert any(chart.get("selectedXAxisMetricKey") == "clock/energy" for chart in charts)
    assert {chart["displayName"] for chart in charts if "energy" in chart["uuid"]} == {"Energy (J)"}
    assert any(chart.get("metricKey") == "energy_to_target" for chart in charts)
    assert any("metrics.`energy_to_target`" in state["selectedColumns"] for state in states)


def test_energy_stands_on_the_page_and_in_comparisons(recorded: Store) -> None:
    suite = read_suite(recorded.tracking_uri, "powered")
    expected = {(run.strategy, run.seed): at_target(dict(run.files.curve)) for run in suite.runs}
    results = Results.of(suite)
    parts: dict[str, Section] = {part.anchor: part for part in sections(results)}
    (costs,) = parts["cost"].tables
    assert {"Energy", "Energy to target"} <= set(costs.headings)
    found = costs.numbers.set_index(["strategy", "seed"])["energy_to_target"]
    assert found.to_dict() == expected
    curves = parts["curves"].tables[0].numbers
    assert {"energy", "time", "updates", "iteration"} == set(curves["clock"])
    times = parts["target"].tables[0].numbers
    mine = times[times["clock"] == "energy"]
    assert sorted(mine["met at"]) == sorted(expected.values())
    (scenario,) = results.scenarios
    assert scenario.axis_title(Clock.ENERGY) == "Energy (J)"
    assert any("Energy (J)" in figure.__html__() for _, figure in parts["curves"].figures)

    (comparison,) = compare(results.scenarios, "ASGD", "FedBuff (buffer 2)", "energy_to_target")
    pairs = {seed: (expected["ASGD", seed], expected["FedBuff (buffer 2)", seed]) for seed in (0, 1)}
    assert comparison.pairs == pairs and not comparison.measure.higher
    table = run_table(suite).set_index(["strategy", "seed"])["energy_to_target"]
    assert table.to_dict() == expected
