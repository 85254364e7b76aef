"""Users' copies of public traces of phones: times free for training, speeds of phones and links.

FedScale's two files are pickles (Lai et al.: FedScale. ICML 2022), FLASH's is JSON (Yang et al.:
Characterizing impacts of heterogeneity in federated learning upon large-scale smartphone data. WWW 2021).
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError, warn
from benchmarks.job_logs import JobLog, write_once
from fl_core import reading
from fl_core.text import many

# What damaged bytes raise in an unpickler
DAMAGED = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, TypeError, ValueError)
MOST_BYTES = 1_000_000_000
RATE = "Mbit/s"  # the column of links
REFERENCE = datetime(2020, 1, 2, tzinfo=UTC)  # when FLASH's time 0 is
BACKWARD = 3  # a step takes this many times an inference (FedScale's rule)


@dataclass(frozen=True)
class Published:
    """A file as published by the authors."""

    name: str
    bytes: int
    sha256: str


BEHAVIOUR = Published(
    "FedScale's client_behave_trace",
    25_640_150,
    "d0b6f81a01f0ea5f7ec432583f5afe93b1e72424db4c1affa88c484f15901662",
)
CAPACITY = Published(
    "FedScale's client_device_capacity",
    39_369_071,
    "477f61049443987318fc5667cafa059b3b420eb0e03ccb5ceb3262d20e059e53",
)


@dataclass(frozen=True)
class Presence:
    """Times of presence of phones, in seconds, each repeated after the phone's own period."""

    name: str  # of the file's kind
    clients: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)  # period; from, to
    left_out: int = 0  # clients that are never present, or whose record cannot be read

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

    def write(self, trace: Path) -> None:
        """Write the trace, rows of client, from, to and period."""
        rows = (
            f"{client},{begin},{end},{period}\n"
            for client, (period, spells) in enumerate(self.clients)
            for begin, end in spells
        )
        write_once(trace, f"client,from,to,period\n{''.join(rows)}")

    def timing(self, trace: Path) -> dict[str, Any]:
        """Return the timing for a suite file, with an already written trace."""
        return {"availability": {"name": "trace", "path": str(trace), "clients": "random"}}


@dataclass(frozen=True)
class DeviceCapacity:
    """Speeds of phones and of network links."""

    computation: list[float]  # milliseconds an inference of one data point takes
    communication: list[float]  # kbit/s
    left_out: int  # clients without two positive numbers

    def steps(self, batch: int) -> JobLog:
        """Return the length of a local step of each client, by FedScale's rule; computation only.

        Args:
            batch: The size of a mini-batch.
        """
        import pandas as pd

        seconds = [BACKWARD * batch * computation / 1000 for computation in self.computation]
        return JobLog(
            rows=len(seconds) + self.left_out,
            left_out={"without two numbers above 0": self.left_out} if self.left_out else {},
            jobs=pd.DataFrame({"client": range(len(seconds)), "length": seconds}),
            absences=None,
            seconds=True,
        )

    def write_links(self, links: Path) -> None:
        """Write the rate of each client's link, down and up; a kbit has 1024 bits in FedScale's rule."""
        rates = (f"{client},{rate * 1024 / 1e6:.6g}\n" for client, rate in enumerate(self.communication))
        write_once(links, f"client,{RATE}\n{''.join(rates)}")

    def timing(self, trace: Path, links: Path) -> dict[str, Any]:
        """Return the timing for a suite file, with an already written trace and links."""
        rate = {"name": "column", "path": str(links), "column": RATE, "client": "client"}
        return {
            "durations": {"name": "trace", "path": str(trace), "per_step": True},
            "network": {"downlink": rate, "uplink": rate},
        }


def read(path: Path) -> Presence | DeviceCapacity | None:
    """Return the contents of a public trace of phones; None for any other file.

    Raises:
        UserError: The file cannot be read, or is a pickle or JSON of another layout.
    """
    try:
        with path.open("rb") as file:
            first = file.read(1)
        if first not in (b"\x80", b"{"):  # of pickles since protocol 2, and of JSON
            return None
        content = reading.content(path, MOST_BYTES)
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
        return _capacity(path, records)
    raise UserError(
        f"{path}: is neither {BEHAVIOUR.name} (active, inactive and finish_time of each client) nor "
        f"{CAPACITY.name} (computation and communication) nor FLASH's JSON (messages)"
    )


class _Plain(pickle.Unpickler):
    """An unpickler of numbers, texts, lists and dicts, without calls."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"names {module}.{name}; only numbers, texts, lists and dicts are read")


def _unpickled(path: Path, content: bytes) -> Any:
    try:
        return _Plain(BytesIO(content)).load()
    except (pickle.UnpicklingError, *DAMAGED) as error:
        raise UserError(f"{path}: is a pickle that cannot be read: {error or type(error).__name__}") from None


def _parsed(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not JSON: {error}") from None


def _compare(path: Path, content: bytes, published: Published) -> None:
    if hashlib.sha256(content).hexdigest() != published.sha256:
        warn(
            f"{path}: another file than {published.name} as published, which has {published.bytes:,} bytes "
            f"and the SHA-256 {published.sha256}"
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

    return _presence(path, BEHAVIOUR.name, map(client, records.values()))


def _capacity(path: Path, records: Mapping[Any, Any]) -> DeviceCapacity:
    pairs = []
    for record in records.values():
        try:
            pair = float(record["computation"]), float(record["communication"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if all(0 < value < float("inf") for value in pair):
            pairs.append(pair)
    if not pairs:
        raise UserError(f"{path}: {CAPACITY.name}: has no client with two numbers above 0")
    computation, communication = map(list, zip(*pairs, strict=True))
    return DeviceCapacity(computation, communication, len(records) - len(pairs))


def _flash(path: Path, records: Mapping[Any, Any]) -> Presence:
    """Return the times of FLASH's phones locked, charging and on Wi-Fi, modulo the record's length."""

    def client(record: Any) -> tuple[int, list[tuple[int, int]]] | None:
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
