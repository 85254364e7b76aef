"""Users' copies of public traces of phones, converted for suites: times free for training, speeds, links.

`asyncfl trace import` calls `read`, and `benchmarks/trace_import.py` reads all other logs.

FedScale's two files are pickles (Lai et al.: FedScale. ICML 2022), FLASH's is JSON (Yang et al.:
Characterizing impacts of heterogeneity in federated learning upon large-scale smartphone data. WWW 2021).

Fixed: the numbers in written files, whose digests are in keys of runs; `_PlainUnpickler`, so that no file
runs code.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError, warn
from benchmarks.trace_import import JobLog, write_once
from fl_core import file_reading
from fl_core.text import many

# Errors that an unpickler raises for damaged bytes
DAMAGED = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, TypeError, ValueError)
MAX_BYTES = 1_000_000_000
RATE_COLUMN = "Mbit/s"  # in the file of links
REFERENCE = datetime(2020, 1, 2, tzinfo=UTC)  # time 0 of FLASH
INFERENCES_PER_STEP = 3  # a local step takes as long as three inferences, by FedScale's rule
BEHAVIOUR, CAPACITY = "FedScale's client_behave_trace", "FedScale's client_device_capacity"
PUBLISHED = {  # kind of file → size in bytes and SHA-256 of the authors' file; others only cause a warning
    BEHAVIOUR: (25_640_150, "d0b6f81a01f0ea5f7ec432583f5afe93b1e72424db4c1affa88c484f15901662"),
    CAPACITY: (39_369_071, "477f61049443987318fc5667cafa059b3b420eb0e03ccb5ceb3262d20e059e53"),
}


@dataclass(frozen=True)
class Presence:
    """Times of presence of phones, in seconds, each repeated after the phone's own period."""

    name: str  # of the kind of file
    clients: list[tuple[int, list[tuple[int, int]]]]  # of each: period, and (from, to) of each presence
    left_out: int  # clients that are never present, or whose record cannot be read

    @property
    def share(self) -> float:
        """Share of the time with a client present, averaged over clients."""
        shares = [sum(end - begin for begin, end in spells) / period for period, spells in self.clients]
        return sum(shares) / len(shares)

    def described(self, path: Path) -> Iterator[str]:
        """Yield sentences on the contents of the file."""
        yield f"{path}: {self.name}, {many(len(self.clients), 'client')}"
        if self.left_out:
            yield f"Left out: {many(self.left_out, 'client')} never present, or of an unreadable record"
        yield f"A client is present for {100 * self.share:.3g} % of the time on average"

    def save(self, trace: Path) -> dict[str, Any]:
        """Write the trace, rows of client, from, to and period; return the timing of a suite file."""
        rows = (
            f"{client},{begin},{end},{period}\n"
            for client, (period, spells) in enumerate(self.clients)
            for begin, end in spells
        )
        write_once(trace, f"client,from,to,period\n{''.join(rows)}")
        return {"availability": {"name": "trace", "path": str(trace), "clients": "random"}}


@dataclass(frozen=True, eq=False)
class StepLog(JobLog):
    """Length of a local step of each phone, by FedScale's rule, and the rates of network links."""

    rates: Sequence[float]  # Mbit/s of each client, down and up

    def save(self, trace: Path) -> dict[str, Any]:
        """Write the trace and the links; return the timing of a suite file."""
        links = trace.with_name(f"{trace.stem}-links.csv")
        rows = (f"{client},{rate:.6g}\n" for client, rate in enumerate(self.rates))
        super().save(trace)
        write_once(links, f"client,{RATE_COLUMN}\n{''.join(rows)}")
        rate = {"name": "column", "path": str(links), "column": RATE_COLUMN, "client": "client"}
        return {
            "durations": {"name": "trace", "path": str(trace), "per_step": True},
            "network": {"downlink": rate, "uplink": rate},
        }


def read(path: Path, batch: int | None = None) -> Presence | StepLog | None:
    """Return the contents of a public trace of phones; None for any other file.

    Args:
        path: The file.
        batch: The size of a mini-batch, for FedScale's client_device_capacity.

    Raises:
        UserError: The file cannot be read, is a pickle or JSON of another layout, or needs `batch`.
    """
    try:
        with path.open("rb") as file:
            first = file.read(1)
        if first not in (b"\x80", b"{"):  # of pickles since protocol 2, and of JSON
            return None
        content = file_reading.content(path, MAX_BYTES)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    records = _unpickled(path, content) if first == b"\x80" else _parsed(path, content)
    sample = next(iter(records.values())) if isinstance(records, dict) and records else None
    keys = sample.keys() if isinstance(sample, dict) else set()
    if first == b"{" and "messages" in keys:
        return _flash(path, records)
    if first != b"{" and {"active", "inactive", "finish_time"} <= keys:
        _compare(path, content, BEHAVIOUR)
        return _behaviour(path, records)
    if first != b"{" and {"computation", "communication"} <= keys:
        _compare(path, content, CAPACITY)
        return _capacity(path, records, batch)
    raise UserError(
        f"{path}: must be {BEHAVIOUR} (with active, inactive and finish_time of each client), "
        f"{CAPACITY} (with computation and communication) or FLASH's JSON (with messages)"
    )


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler of numbers, texts, lists and dicts; any other pickle could execute code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"names {module}.{name}; only numbers, texts, lists and dicts are read")


def _unpickled(path: Path, content: bytes) -> Any:
    try:
        return _PlainUnpickler(BytesIO(content)).load()
    except (pickle.UnpicklingError, *DAMAGED) as error:
        raise UserError(f"{path}: is a pickle that cannot be read: {error or type(error).__name__}") from None


def _parsed(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not JSON: {error}") from None


def _compare(path: Path, content: bytes, published: str) -> None:
    """Warn if a file differs from the file published by the authors."""
    size, digest = PUBLISHED[published]
    if hashlib.sha256(content).hexdigest() != digest:
        warn(
            f"{path}: differs from the published {published}, which has {size:,} bytes and the "
            f"SHA-256 {digest}"
        )


def _presence(path: Path, name: str, records: Iterable[tuple[int, list[tuple[int, int]]] | None]) -> Presence:
    """Return the presence of clients, without clients never present."""
    all_clients = list(records)
    clients = [client for client in all_clients if client is not None]
    if not clients:
        raise UserError(f"{path}: {name}: has no client that is ever present. Name another file")
    return Presence(name, clients, len(all_clients) - len(clients))


def _behaviour(path: Path, records: Mapping[Any, Any]) -> Presence:
    """Return the active times of FedScale's clients: from active[i] to inactive[i], modulo finish_time."""

    def client(record: Any) -> tuple[int, list[tuple[int, int]]] | None:
        """Return period and presence of a client; None without any presence, or for an invalid record."""
        try:
            period = int(record["finish_time"])
            spells = [
                (max(0, int(begin)), min(int(end), period))
                for begin, end in zip(record["active"], record["inactive"], strict=True)
            ]
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        spells = [(begin, end) for begin, end in spells if begin < end]
        return (period, spells) if spells else None

    return _presence(path, BEHAVIOUR, map(client, records.values()))


def _capacity(path: Path, records: Mapping[Any, Any], batch: int | None) -> StepLog:
    """Return lengths of steps from milliseconds an inference, and rates from kbit/s; a kbit has 1024 bits."""
    import pandas as pd

    pairs = []
    for record in records.values():
        try:
            pair = float(record["computation"]), float(record["communication"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if all(0 < value < float("inf") for value in pair):
            pairs.append(pair)
    if not pairs:
        raise UserError(f"{path}: {CAPACITY}: has no client with two numbers above 0")
    if batch is None:
        raise UserError(f"--batch is missing: {CAPACITY} needs the size of a mini-batch")
    computation, communication = zip(*pairs, strict=True)
    seconds = [INFERENCES_PER_STEP * batch * milliseconds / 1000 for milliseconds in computation]
    left_out = len(records) - len(pairs)
    return StepLog(
        rows=len(records),
        left_out={"without two numbers above 0": left_out} if left_out else {},
        jobs=pd.DataFrame({"client": range(len(seconds)), "length": seconds}),
        absences=None,
        seconds=True,
        rates=[rate * 1024 / 1e6 for rate in communication],
    )


def _flash(path: Path, records: Mapping[Any, Any]) -> Presence:
    """Return the times of FLASH's phones locked, charging and on Wi-Fi, modulo the record's length."""

    def client(record: Any) -> tuple[int, list[tuple[int, int]]] | None:
        """Return period and presence of a client; None without any presence, or for an invalid record."""
        try:
            messages = list(_messages(record["messages"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        if not messages or (period := messages[-1][0] - messages[0][0]) <= 0:
            return None
        spells = []
        for begin, end in _ready(messages):
            start = begin % period
            spells += [(start, min(start + end - begin, period))]
            if start + end - begin > period:
                spells.append((0, start + end - begin - period))
        return (period, spells) if spells else None

    return _presence(path, "FLASH's states", map(client, records.values()))


def _messages(text: str) -> Iterator[tuple[int, str]]:
    """Yield the seconds since REFERENCE and the state of each line, `2020-02-03 04:05:06<tab>Screen_off`."""
    for line in text.splitlines():
        if line.strip():
            date, _, state = line.strip().partition("\t")
            moment = datetime.strptime(date.strip(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
            yield int((moment - REFERENCE).total_seconds()), state.strip().lower()


def _ready(messages: Iterable[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each time locked, charging and on Wi-Fi; a last time without end is left out."""
    changes = {
        "battery_charged_on": ("charging", True),
        "battery_charged_off": ("charging", False),
        "screen_lock": ("locked", True),
        "screen_unlock": ("locked", False),
        "wifi": ("wifi", True),
        **dict.fromkeys(("unknown", "2g", "3g", "4g", "5g"), ("wifi", False)),
    }
    state, since = {"charging": False, "locked": False, "wifi": False}, None
    for time, message in messages:
        if message in changes:
            field, value = changes[message]
            state[field] = value
        ready = all(state.values())
        if ready and since is None:
            since = time
        elif not ready and since is not None:
            if since < time:
                yield since, time
            since = None
