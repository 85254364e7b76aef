"""Records on disk: finished ones wait here until MLflow has them, unfinished ones keep a checkpoint.

A record is a folder that appears whole or not at all:

    <outbox>/<suite>/<key>/result.json
    <outbox>/<suite>/<key>/artifacts/…      description.json, tables, or a traceback
    <outbox>/<suite>/<key>/checksums.json   SHA-256 of all these files
    <outbox>/<suite>/<key>.damaged/…        a record whose files are not what was written
    <outbox>/<suite>/<key>.checkpoint       of a run that is not finished, and its .stopwatch
    <outbox>/<suite>/suite.json             what MLflow is told of the suite itself, while any of it waits
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PARTIAL, DAMAGED = ".partial", ".damaged"
CHECKSUMS = "checksums.json"
SUITE = "suite.json"
RESULT, ARTIFACTS, CURVE, DESCRIPTION = "result.json", "artifacts", "curve.parquet", "description.json"


@dataclass(frozen=True, slots=True)
class Result:
    """What MLflow records about a task, besides its artifacts."""

    kind: str  # run, pooled
    suite: str
    key: str
    name: str
    status: str  # done, diverged, stalled, error
    reason: str
    began: int  # milliseconds since 1970
    ended: int
    seconds: float  # of computing, over all attempts
    about: dict[str, Any]
    metrics: dict[str, float] = field(default_factory=dict)  # of the whole run
    evaluated: list[int] = field(
        default_factory=list
    )  # when each row of the curve was; milliseconds since 1970


@dataclass(frozen=True, slots=True)
class OutboxRecord:
    """A record in the outbox."""

    folder: Path

    @property
    def key(self) -> str:
        """The task's identity."""
        return self.folder.name

    @property
    def result(self) -> Result:
        """The content of its result.json."""
        return Result(**json.loads((self.folder / RESULT).read_text()))

    @property
    def sound(self) -> bool:
        """Whether its files are those that were written; records of older versions must be readable."""
        try:
            _ = self.result, self.description
            checksums = self.folder / CHECKSUMS
            return not checksums.exists() or json.loads(checksums.read_text()) == _digests(self.folder)
        except (OSError, ValueError, TypeError):
            return False

    @property
    def artifacts(self) -> Path:
        """Folder of its files."""
        return self.folder / ARTIFACTS

    @property
    def description(self) -> dict[str, Any]:
        """The experiment as plain data."""
        return json.loads((self.artifacts / DESCRIPTION).read_text())

    @property
    def curve(self) -> list[dict[str, float]]:
        """One row per evaluation; none for a task without a learning curve."""
        import pyarrow.parquet as pq

        path = self.artifacts / CURVE
        return pq.read_table(path, use_threads=False).to_pylist() if path.exists() else []


@dataclass(frozen=True, slots=True)
class Outbox:
    """The folder of all records."""

    folder: Path

    def checkpoint(self, suite: str, key: str) -> Path:
        """Where the run keeps its checkpoint."""
        return self.folder / suite / f"{key}.checkpoint"

    def stopwatch(self, suite: str, key: str) -> Path:
        """Where it keeps the real time that it took so far."""
        return self.folder / suite / f"{key}.stopwatch"

    def get(self, suite: str, key: str) -> OutboxRecord | None:
        """The record of a task, if it waits here."""
        folder = self.folder / suite / key
        return OutboxRecord(folder) if folder.is_dir() else None

    def put(
        self,
        result: Result,
        description: Mapping[str, Any],
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """Store a record in the place of any older one, at once and whole."""
        folder = self.folder / result.suite / result.key
        with _whole(folder) as partial:
            artifacts = partial / ARTIFACTS
            artifacts.mkdir(parents=True)
            (partial / RESULT).write_text(_json(asdict(result)))
            (artifacts / DESCRIPTION).write_text(_json(description))
            for name, text in (texts or {}).items():
                (artifacts / name).write_text(text)
            for name, columns in (tables or {}).items():
                _write_table(artifacts / f"{name}.parquet", columns)
            (partial / CHECKSUMS).write_text(_json(_digests(partial)))
            self.drop(OutboxRecord(folder))

    def announce(self, suite: str, description: str, places: Mapping[str, Sequence[str]]) -> None:
        """Keep what MLflow is told of a suite until it has heard it: its description and current runs."""
        path = self.folder / suite / SUITE
        path.parent.mkdir(parents=True, exist_ok=True)
        with _whole(path) as partial:
            partial.write_text(_json({"description": description, "places": places}))

    def announced(self) -> Iterator[tuple[str, str, dict[str, tuple[str, str, str]]]]:
        """What is kept so: suite, description, places."""
        for path in sorted(self.folder.glob(f"*/{SUITE}")):
            try:
                told = json.loads(path.read_text())
                places = {key: (str(a), str(b), str(c)) for key, (a, b, c) in told["places"].items()}
                yield path.parent.name, str(told["description"]), places
            except (ValueError, KeyError, TypeError, AttributeError):  # damaged: asyncfl run writes it anew
                continue

    def heard(self) -> None:
        """MLflow has heard of all suites."""
        for path in self.folder.glob(f"*/{SUITE}"):
            path.unlink(missing_ok=True)

    def waiting(self) -> Iterator[OutboxRecord]:
        """All records, oldest first."""
        folders = (
            path
            for path in self.folder.glob("*/*")
            if path.is_dir() and path.suffix not in {PARTIAL, DAMAGED}
        )
        yield from map(OutboxRecord, sorted(folders, key=lambda path: path.stat().st_mtime))

    def drop(self, record: OutboxRecord) -> None:
        """Forget a record; what is left of it when the process is killed meanwhile is no record."""
        if record.folder.exists():
            gone = record.folder.with_name(f"{record.folder.name}.{os.getpid()}.gone{PARTIAL}")
            record.folder.rename(gone)
            shutil.rmtree(gone)

    def files(self, suite: str, key: str) -> dict[str, bytes]:
        """A task's record or, without one, its checkpoint, by names that `put_files` understands."""
        if record := self.get(suite, key):
            paths = [path for path in record.folder.rglob("*") if path.is_file()]
        else:
            found = (self.stopwatch(suite, key), self.checkpoint(suite, key))
            paths = [path for path in found if path.exists()]
        return {path.relative_to(self.folder / suite).as_posix(): path.read_bytes() for path in paths}

    def put_files(self, suite: str, key: str, files: Mapping[str, bytes]) -> None:
        """Store what `files` returned on another machine: a record at once and whole."""
        folder = self.folder / suite / key
        inside = {name: content for name, content in files.items() if name.startswith(f"{key}/")}
        if inside:
            with _whole(folder) as partial:
                for name, content in inside.items():
                    path = partial / Path(name).relative_to(key)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                self.drop(OutboxRecord(folder))
        for path in (self.stopwatch(suite, key), self.checkpoint(suite, key)):  # in the order of saving
            if inside:
                path.unlink(missing_ok=True)
            elif path.name in files:
                path.parent.mkdir(parents=True, exist_ok=True)
                with _whole(path) as partial:
                    partial.write_bytes(files[path.name])

    def sweep(self) -> list[Path]:
        """Remove what killed processes left half-written; set damaged records aside and say where."""
        for path in self.folder.glob(f"*/*{PARTIAL}"):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return [self._set_aside(record) for record in list(self.waiting()) if not record.sound]

    def _set_aside(self, record: OutboxRecord) -> Path:
        """Set a damaged record aside, replacing an older one: the task is computed again."""
        aside = record.folder.with_name(f"{record.folder.name}{DAMAGED}")
        shutil.rmtree(aside, ignore_errors=True)
        return record.folder.rename(aside)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file or folder under another name: it gets its own at the end, and is removed after an error."""
    partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
    try:
        yield partial
        partial.rename(path)
    except OSError:
        shutil.rmtree(partial) if partial.is_dir() else partial.unlink(missing_ok=True)
        raise


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a record, but of the list of these."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS)
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def _write_table(path: Path, columns: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), path)
