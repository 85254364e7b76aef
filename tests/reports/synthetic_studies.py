"""Studies whose truth is known, as the tracking store gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.mlflow_store.run_result import RunResult
from reports.records.records import RecordedSuite
from reports.records.studies import RecordedStudy, read_studies

RATES = {
    "local_lr": {"low": 0.001, "high": 1, "log": True},
    "server_lr": {"low": 0.1, "high": 10, "log": True},
}
Tried = Mapping[str, Any]


def tried(
    value: float | None,
    state: str = "complete",
    diverged: int = 0,
    origin: str = "sampler",
    by_seed: Sequence[float] = (),
    **at: Any,
) -> Tried:
    return {
        "value": value, "state": state, "diverged": diverged, "from": origin, "at": at, "by_seed": by_seed
    }  # fmt: skip


def runs(strategy: str, made: Sequence[Tried], /, at: str = "digits · i.i.d.", **tags: Any) -> list[Any]:
    """A study and its trials as MLflow gives them."""
    spec = {
        "kind": "study",
        "scenario": at,
        "strategy": strategy,
        "objective": "final",
        "metric": "test/accuracy",
        "direction": "maximize",
        "trials": str(len(made)),
        "seeds": "[1000, 1001]",
        "budget": "2000 client updates",
        "sampler": "tpe",
        "pruner": "none",
        "judged_on": "validation data",
        "status": "finished",
        "space": json.dumps(RATES),
        **tags,
    }
    study = f"{strategy} in {at}"
    parent = RunResult(study, "7", "FINISHED", 1, 2, "", {f"asyncfl.{k}": v for k, v in spec.items()})
    seeds = json.loads(spec["seeds"])
    children = []
    for number, one in enumerate(made):
        statuses = {"pruned": ["pruned"], "failed": ["error"], "running": ["done"]}.get(one["state"])
        if statuses is None:
            lost = one["diverged"]
            statuses = ["diverged"] * lost + ["done"] * (len(seeds) - lost)
        values = one["by_seed"] or [one["value"]] * len(seeds)
        for seed, status, value in zip(seeds, statuses, values, strict=False):
            own = {"kind": "trial", "trial": str(number), "from": one["from"], "seed": str(seed)}
            own |= {"status": status, **({"superseded": "true"} if "superseded" in spec else {})}
            metrics = {} if value is None else {"objective": value}
            tags = {"mlflow.parentRunId": study} | {f"asyncfl.{k}": v for k, v in own.items()}
            params = {name: str(value) for name, value in one["at"].items()}
            name = f"{study} {number} {seed}"
            children.append(RunResult(name, "7", "FINISHED", 2, 3, "", tags, params, metrics))
    return [parent, *children]


def read(*made: list[Any]) -> tuple[RecordedStudy, ...]:
    return read_studies(run for of in made for run in of)


def one(made: Sequence[Tried], /, **tags: Any) -> RecordedStudy:
    (study,) = read(runs("FedBuff", made, **tags))
    return study


def campaign(*made: list[Any], name: str = "suite.tuning") -> RecordedSuite:
    return RecordedSuite(name, "sqlite:///mlflow.db", "1", studies=read(*made))


def rate(local: float, server: float = 1.0) -> dict[str, float]:
    return {"local_lr": local, "server_lr": server}
