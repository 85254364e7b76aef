"""A run saved between two events and taken up again, bit for bit (docs/architecture.md, rule 15).

No random state is stored, since streams are named. Tensors that are shared (a version and the jobs that
start from it) are stored once.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import fields
from itertools import islice
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl_core.loop.events import Kind
from fl_core.loop.simulation import Simulation, arrives
from fl_core.recording.recorder import ARRIVALS, Record, Recorder
from fl_core.server.jobs import Job
from fl_core.server.roster import Roster

JOB = [field.name for field in fields(Job)]
MARKS = ("iteration_marks", "update_marks", "time_marks")


KEPT = "tensors, Python's own numbers, strings and None, and lists, tuples and dicts of these"


def save(recorder: Recorder, path: Path) -> None:
    """Write the run to `path`, atomically; TypeError if the strategy keeps something that cannot be saved."""
    parts = {
        "key": recorder.simulation.experiment.key,
        "simulation": _simulation(recorder.simulation),
        "recorder": _recorder(recorder),
        "diagnostics": _diagnostics(recorder),
    }
    partial = path.with_name(path.name + ".partial")
    torch.save(parts, partial)
    partial.replace(path)


def load(recorder: Recorder, path: Path) -> None:
    """Put a fresh recorder and its simulation into the saved state.

    ValueError if the file is damaged, or another run's.
    """
    try:
        # Wherever it was saved; all tensors of a run are where its model is.
        parts = torch.load(path, recorder.simulation.server.model.device, weights_only=True)
    except Exception as error:  # torch and pickle raise whatever they stumble over
        raise ValueError(f"{path} is damaged ({type(error).__name__})") from error
    if parts["key"] != recorder.simulation.experiment.key:
        raise ValueError(f"{path} is the checkpoint of another run")
    asked = recorder.diagnosis.asked.model_dump() if recorder.diagnosis else None
    if parts["diagnostics"]["asked"] != asked:
        raise ValueError(f"{path} is the checkpoint of a run with other diagnostics")
    _restore_simulation(recorder.simulation, parts["simulation"])
    _restore_recorder(recorder, parts["recorder"])
    _restore_diagnostics(recorder, parts["diagnostics"])


def _simulation(simulation: Simulation) -> dict[str, Any]:
    server = simulation.server
    jobs = list(server.jobs)
    place = {id(job): number for number, job in enumerate(jobs)}
    queue = [
        (time, int(kind), client, place[id(item)] if kind is Kind.ARRIVAL else item)
        for time, kind, client, item in simulation.queue.items()
        if kind is not Kind.ARRIVAL or arrives(item, time)
    ]
    return {
        "version": server.version,
        "now": server.now,
        "updates": server.updates,
        "local_lr": server.local_lr,
        "draws": server.draws,
        "alarm": server.alarm,
        "versions": server.versions,
        "briefs": server.briefs,
        "memory": _kept(server.memory, "server.memory"),
        "local": _kept(server.local, "server.local"),
        "roster": server.roster.state(),
        "jobs": [{name: _compact(getattr(job, name), name) for name in JOB} for job in jobs],
        "queue": queue,
        "indices": simulation.indices,
        "absences_read": simulation.absences_read,
        "serving": simulation.serving,
        "returns": simulation.returns,
        "gone": simulation.gone,
        "alarm_queued": simulation.alarm_queued,
        "started": simulation.started,
        "status": simulation.status,
        "reason": simulation.reason,
    }


def _restore_simulation(simulation: Simulation, state: dict[str, Any]) -> None:
    server = simulation.server
    for name in ("version", "now", "updates", "local_lr", "draws", "alarm", "versions", "briefs"):
        setattr(server, name, state[name])
    server.memory, server.local = SimpleNamespace(**state["memory"]), SimpleNamespace(**state["local"])
    server.roster = Roster.restored(state["roster"])
    jobs = [Job(**job) for job in state["jobs"]]
    server.in_flight = len(jobs)
    server.flight = {}
    for job in jobs:
        server.flight.setdefault(job.client, deque()).append(job)
    for time, kind, client, item in state["queue"]:
        simulation.queue.push(time, Kind(kind), client, jobs[item] if kind == Kind.ARRIVAL else item)
    for name in (
        "indices",
        "absences_read",
        "serving",
        "returns",
        "gone",
        "alarm_queued",
        "started",
        "status",
        "reason",
    ):
        setattr(simulation, name, state[name])
    for absences, read in zip(simulation.absences, simulation.absences_read, strict=True):
        next(islice(absences, read, read), None)  # what was read already


def _recorder(recorder: Recorder) -> dict[str, Any]:
    record = recorder.record
    return {
        "curve": record.curve,
        "arrivals": {name: torch.from_numpy(np.array(column)) for name, column in record.arrivals.items()},
        "marks": {name: getattr(recorder, name).reached for name in MARKS},
        "evaluated": recorder.evaluated,
        "diagnostics": record.diagnostics,
    }


def _restore_recorder(recorder: Recorder, state: dict[str, Any]) -> None:
    columns = {name: array(code, state["arrivals"][name].tolist()) for name, code in ARRIVALS}
    recorder.record = Record(curve=state["curve"], arrivals=columns, diagnostics=state["diagnostics"])
    for name, reached in state["marks"].items():
        getattr(recorder, name).reached = reached
    recorder.evaluated = state["evaluated"]
    recorder.resume()


def _diagnostics(recorder: Recorder) -> dict[str, Any]:
    diagnosis = recorder.diagnosis
    if diagnosis is None:
        return {"asked": None}
    shadows = {name: _simulation(shadow) for name, shadow in diagnosis.shadows.items()}
    return {"asked": diagnosis.asked.model_dump(), "shadows": shadows, "rest": diagnosis.state()}


def _restore_diagnostics(recorder: Recorder, state: dict[str, Any]) -> None:
    diagnosis = recorder.diagnosis
    if diagnosis is None:
        return
    for name, shadow in diagnosis.shadows.items():
        _restore_simulation(shadow, state["shadows"][name])
    diagnosis.restore(state["rest"])


def _kept(memory: SimpleNamespace, place: str) -> dict[str, Any]:
    return {name: _compact(value, f"{place}.{name}") for name, value in vars(memory).items()}


def _compact(value: Any, *place: Any) -> Any:
    """The same value; a tensor that is a small view of a large batch is copied out of it.

    TypeError, with the `place` of what is neither a tensor nor plain data: it would not come back as it was.
    """
    if isinstance(value, Tensor):
        whole = value.untyped_storage().nbytes() == value.numel() * value.element_size()
        return value if whole else value.clone()
    # Exactly these: a NumPy number is a float as well, and a Counter a dict, but not when it is loaded.
    kind = type(value)
    if kind in (int, float, bool, str, NoneType):
        return value
    if kind is dict:
        return {_compact(key, *place, key): _compact(item, *place, key) for key, item in value.items()}
    if kind in (list, tuple):
        return kind(_compact(item, *place, number) for number, item in enumerate(value))
    where = str(place[0]) + "".join(f"[{key!r}]" for key in place[1:])
    raise TypeError(f"{where} is a {kind.__module__}.{kind.__qualname__}: a run can save {KEPT}")
