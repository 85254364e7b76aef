"""The suite that the campaigns of these tests come from, how they are run, and what their fixtures are."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.engine import Local
from benchmarks.mlflow_store.store import Store
from tuning.driver import Driver
from tuning.storage import open_storage
from tuning.study import Campaign

Write = Callable[..., Path]
Make = Callable[..., Campaign]

QUADRATIC = {"name": "quadratic", "centres": [[1.0], [1.0]], "curvature": [2.0, 6.0]}  # λ = 4 on average
RATE = {"local_lr": {"low": 1e-3, "high": 1}}
SUITE = {
    "name": "small",
    "seeds": 2,
    "problem": QUADRATIC,
    "budget": {"updates": 20},
    "evaluations": 5,
    "lr": 0.01,
    "strategies": ["fedavg"],
    "tuning": {"trials": 6, "seeds": 2, "batch": 3, "space": RATE},
}


def tune(campaign: Campaign, store: Store, workers: int = 1) -> Driver:
    """Run a campaign to its end."""
    driver = Driver(campaign, open_storage(str(store.folder / "tuning.journal")), store)
    driver.run(Local(workers), lambda _: None)
    return driver
