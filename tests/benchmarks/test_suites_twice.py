"""A suite with each kind of budget, made tiny, is recorded and run again, which changes nothing in MLflow."""

import pytest
from in_process import compute
from mlflow import MlflowClient
from recorded import runs

from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Announcement, Outbox
from benchmarks.mlflow_store.store import Store
from benchmarks.suite.suite import PlannedRun, Suite, Task, load, tasks

# No whole number of rounds: a synchronous run ends some time after its last version.
BUDGETS = {"updates": "75", "time": "5.5", "iterations": "7"}


def tiny(name: str) -> Suite:
    """A shipped suite on handwritten digits dealt out evenly, one seed of a few rounds."""
    usual = load(name, tuned=False).spec
    clients = usual.problem.clients
    budget = [
        f"budget.{key}={BUDGETS[key]}" for key, limit in usual.budget if limit is not None and key in BUDGETS
    ]
    # A grid over the partition would multiply the runs; networks need time, and other data sets files.
    problem = [f"problem={{name: digits, clients: {clients}}}", "problem.partition=iid"]
    goals = ["scenarios={}"] if usual.scenarios else []
    return load(name, [*problem, *budget, *goals, "seeds=1", "evaluations=3", "local.steps=1"], tuned=False)


@pytest.mark.parametrize(
    "name",
    [
        "fraboni_weights",  # a budget of virtual time
        pytest.param("anarchic", marks=pytest.mark.slow),
        pytest.param("ace_iterations", marks=pytest.mark.slow),
    ],
)
def test_a_second_run_finds_all_of_the_first(name: str, store: Store) -> None:
    suite = tiny(name)
    found = [task for task in tasks(suite.runs()) if isinstance(task, PlannedRun)]
    assert session(suite, store, found) == len(found) > 0
    before = recorded(suite, store)
    pairs = {(task.scenario, task.strategy) for task in found}
    assert before.keys() == pairs
    assert all(status == "FINISHED" and points for status, points in before.values())
    assert session(suite, store, found) == 0
    assert recorded(suite, store) == before


def session(suite: Suite, store: Store, found: list[Task]) -> int:
    """Compute and deliver what MLflow does not have, as `asyncfl run` does; how many that were."""
    outbox = Outbox(store.outbox)
    delivery = Delivery(store, outbox)
    left = delivery.missing(found)
    places = {task.key: task.place for task in found if isinstance(task, PlannedRun)}
    delivery.announce(Announcement(suite.name, suite.description, places))
    for task in left:
        compute(task, outbox)
    delivery.close()
    assert not delivery.refused and not delivery.outage and not outbox.waiting()
    return len(left)


def recorded(suite: Suite, store: Store) -> dict[tuple[str, str], tuple[str, list[tuple[int, float]]]]:
    """State and mean clock of every group, by scenario and strategy."""
    client = MlflowClient(store.tracking_uri)
    return {
        (run.data.tags["asyncfl.scenario"], run.data.tags["asyncfl.strategy"]): (
            run.info.status,
            [
                (point.step, point.value)
                for point in client.get_metric_history(run.info.run_id, "clock/virtual_time")
            ],
        )
        for run in runs(store, suite.name, kind="group")
    }
