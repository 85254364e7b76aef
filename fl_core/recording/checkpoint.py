"""A checkpoint: a run saved to a file between two events, and resumed bit for bit (docs/rules.md, rule 15).

Workers save one now and then and when they are stopped; the next worker of the run loads it.
No random state is stored, since streams are named. Tensors that are shared (a version and the jobs that
start from it) are stored once. The file begins with the SHA-256 of its content, which is checked before
anything of it is used.

Fixed: the file is checked before use, and loaded with `weights_only`, so that it cannot run code. Free: its
form, since a checkpoint of another form is refused, and its run begins again.
"""

import hashlib
import io
import os
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fl_core import user_code
from fl_core.loop.serialization import fits, plain, restore, values
from fl_core.recorded_names import ARRIVALS, Status
from fl_core.recording.atomic import whole
from fl_core.recording.recorder import Record, Recorder

MARKS = ("iteration_marks", "update_marks", "byte_marks", "time_marks")
DIGEST = hashlib.sha256().digest_size  # bytes


def save(recorder: Recorder, path: Path, extra: Any = None) -> None:
    """Write a run to a file, atomically.

    Args:
        recorder: The run between two events.
        path: The file.
        extra: Plain data of the caller, which `load` returns.

    Raises:
        TypeError: The strategy keeps something that cannot be saved.
        OSError: The file cannot be written; an older checkpoint stays.
    """
    parts = {
        "key": recorder.simulation.experiment.key,
        "code": _own_code(recorder),
        "simulation": plain(recorder.simulation),
        "recorder": _recorder(recorder),
        "diagnostics": _diagnostics(recorder),
        "extra": extra,
    }
    content = io.BytesIO()
    torch.save(parts, content)  # not into the file: torch does not say why a file cannot be written
    with whole(path) as partial, partial.open("wb") as file:
        file.write(hashlib.sha256(content.getbuffer()).digest())
        file.write(content.getbuffer())
        file.flush()
        os.fsync(file.fileno())  # else a crash of the machine could leave the name without the content


def load(recorder: Recorder, path: Path) -> Any:
    """Restore a saved state into a fresh recorder and simulation; return the caller's `extra`.

    Raises:
        ValueError: The file is damaged, or of another run or version, or the user's code was edited since.
    """
    with path.open("rb") as file:
        digest = file.read(DIGEST)
        if hashlib.file_digest(file, "sha256").digest() != digest:
            raise ValueError(f"{path} is damaged, or was saved by an earlier version of asyncfl")
        file.seek(DIGEST)
        # A checkpoint saved on a GPU can be loaded on a CPU: all tensors go to the device of the run's model.
        parts = torch.load(file, recorder.simulation.server.model.device, weights_only=True)
    if parts["key"] != recorder.simulation.experiment.key:
        raise ValueError(f"{path} is the checkpoint of another run")
    if parts["code"] != _own_code(recorder):
        raise ValueError(
            f"the code of {', '.join(_own_code(recorder))} was edited after the checkpoint was saved"
        )
    asked = recorder.diagnosis.asked.model_dump() if recorder.diagnosis else None
    if parts["diagnostics"]["asked"] != asked:
        raise ValueError(f"{path} is the checkpoint of a run with other diagnostics")
    if not fits(recorder.simulation, parts["simulation"]):
        raise ValueError(f"{path} is the checkpoint of another version of asyncfl")
    if parts["recorder"]["evaluate"] != str(recorder.evaluate):
        raise ValueError(f"{path} is the checkpoint of a run that is evaluated on other data")
    restore(recorder.simulation, parts["simulation"])
    _restore_recorder(recorder, parts["recorder"])
    _restore_diagnostics(recorder, parts["diagnostics"])
    return parts["extra"]


def _own_code(recorder: Recorder) -> dict[str, str]:
    """Return the digest of the user's code for each import path: a resume with edited code is refused."""
    return user_code.digests(user_code.named(recorder.simulation.experiment.description()))


def _recorder(recorder: Recorder) -> dict[str, Any]:
    """Return the recorder's state as plain data: the record so far, and the marks passed."""
    record = recorder.record
    columns = {name: torch.from_numpy(np.array(column)) for name, column in record.arrivals.items()}
    return {
        "record": {**values(record), "status": str(record.status), "arrivals": columns},
        "marks": {name: getattr(recorder, name).reached for name in MARKS},
        "evaluate": str(recorder.evaluate),
        "evaluated": recorder.evaluated,
    }


def _restore_recorder(recorder: Recorder, state: dict[str, Any]) -> None:
    saved = state["record"]
    columns = {name: array(kind, saved["arrivals"][name].tolist()) for name, kind in ARRIVALS.columns.items()}
    recorder.record = Record(**{**saved, "status": Status(saved["status"]), "arrivals": columns})
    for name, reached in state["marks"].items():
        getattr(recorder, name).reached = reached
    recorder.evaluated = state["evaluated"]
    recorder.resume()


def _diagnostics(recorder: Recorder) -> dict[str, Any]:
    """Return the state of the diagnostics, with the simulations that follow the run."""
    diagnosis = recorder.diagnosis
    if diagnosis is None:
        return {"asked": None}
    shadows = {name: plain(shadow) for name, shadow in diagnosis.shadows.items()}
    return {"asked": diagnosis.asked.model_dump(), "shadows": shadows, "rest": diagnosis.state()}


def _restore_diagnostics(recorder: Recorder, state: dict[str, Any]) -> None:
    diagnosis = recorder.diagnosis
    if diagnosis is None:
        return
    for name, shadow in diagnosis.shadows.items():
        restore(shadow, state["shadows"][name])
    diagnosis.restore(state["rest"])
