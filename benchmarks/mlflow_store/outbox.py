"""Outbox: the folder of finished records waiting for MLflow, and of checkpoints of unfinished runs.

Workers write to it, and `Delivery` sends and deletes its records. A record is a folder that appears whole or
not at all:

    <outbox>/<suite>/<key>/result.json
    <outbox>/<suite>/<key>/artifacts/…      description.json, tables, or a traceback
    <outbox>/<suite>/<key>/checksums.json   SHA-256 of all these files
    <outbox>/<suite>/<key>.checkpoint       of a run that is not finished
    <outbox>/<suite>/suite.json             the suite's `Announcement`, until MLflow has it
    <outbox>/<suite>/….damaged              a record or suite.json with other checksums than written

Fixed: these files: records of earlier sessions wait in the outbox, and nothing in it may be lost.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from benchmarks.mlflow_store import parquet
from benchmarks.mlflow_store.run_result import RunResult
from fl_core.recorded_names import CURVE
from fl_core.recording.atomic import PARTIAL, is_being_written, remove, whole

DAMAGED = ".damaged"
CHECKSUMS = "checksums.json"
SUITE, CHECKSUM = "suite.json", "sha256"
RESULT, ARTIFACTS, DESCRIPTION = "result.json", "artifacts", "description.json"


@dataclass(frozen=True, slots=True)
class Announcement:
    """Description of a suite for MLflow, besides the runs."""

    suite: str
    description: str
    places: dict[str, tuple[str, str, str, str]]  # key of each current run → scenario, strategy, trial, seed
    highlight: list[str] = field(default_factory=list)  # strategies that figures draw in ink
    studies: list[dict[str, str]] = field(default_factory=list)  # tags of each study of a tuning campaign
    conditions: dict[str, list[str]] = field(default_factory=dict)  # scenario → the parts of its label


_RESULT, _ANNOUNCEMENT = TypeAdapter(RunResult), TypeAdapter(Announcement)


@dataclass(frozen=True, slots=True)
class Outbox:
    """The folder of all records."""

    folder: Path

    def checkpoint(self, suite: str, key: str) -> Path:
        """Return the path of a run's checkpoint."""
        return self.folder / suite / f"{key}.checkpoint"

    def artifacts(self, result: RunResult) -> Path:
        """Return the folder of a record's files."""
        return self.folder / result.suite / result.key / ARTIFACTS

    def curve(self, result: RunResult) -> dict[str, list[float | None]]:
        """Return the learning curve by column, None for a metric not evaluated; empty without a curve."""
        from pyarrow.parquet import read_table

        path = self.artifacts(result) / CURVE.file
        return read_table(path, use_threads=False).to_pydict() if path.exists() else {}

    def get(self, suite: str, key: str) -> RunResult | None:
        """Return the result of a task; None unless an undamaged record waits here."""
        return read(self.folder / suite / key)

    def put(
        self,
        result: RunResult,
        description: Mapping[str, Any],
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """Store a record completely and at once, in the place of any older record."""
        folder = self.folder / result.suite / result.key
        with whole(folder) as partial:
            artifacts = partial / ARTIFACTS
            artifacts.mkdir(parents=True)
            (partial / RESULT).write_text(
                _json(_RESULT.dump_python(result, exclude={"files"})), encoding="utf-8"
            )
            (artifacts / DESCRIPTION).write_text(_json(description), encoding="utf-8")
            for name, text in (texts or {}).items():
                (artifacts / name).write_text(text, encoding="utf-8")
            for name, columns in (tables or {}).items():
                parquet.write(artifacts / f"{name}.parquet", columns)
            (partial / CHECKSUMS).write_text(_json(_digests(partial)), encoding="utf-8")
            self.drop(result.suite, result.key)

    def announce(self, announcement: Announcement) -> None:
        """Store the announcement of a suite, until delivery to MLflow."""
        path = self.folder / announcement.suite / SUITE
        with whole(path) as partial:
            content = _ANNOUNCEMENT.dump_python(announcement, mode="json")
            partial.write_text(_json({**content, CHECKSUM: _digest(content)}), encoding="utf-8")

    def announced(self) -> Iterator[Announcement]:
        """Yield all undamaged announcements."""
        for path in sorted(self.folder.glob(f"*/{SUITE}")):
            if announcement := _announcement(path):
                yield announcement

    def drop_announcements(self) -> None:
        """Drop all announcements; to be called once MLflow has all."""
        for path in self.folder.glob(f"*/{SUITE}"):
            path.unlink(missing_ok=True)

    def waiting(self) -> list[Path]:
        """Return the folders of all records, the oldest first; `read` returns the content."""
        ages = {}
        for path in self.folder.glob("*/*"):
            with suppress(FileNotFoundError):  # another process has sent it meanwhile
                if path.is_dir() and path.suffix not in {PARTIAL, DAMAGED}:
                    ages[path] = path.stat().st_mtime
        return sorted(ages, key=lambda path: ages[path])

    def drop(self, suite: str, key: str) -> None:
        """Delete a record; a partly deleted record no longer counts as a record."""
        folder = self.folder / suite / key
        if folder.exists():
            gone = folder.with_name(f"{folder.name}.{os.getpid()}.gone{PARTIAL}")
            folder.rename(gone)
            shutil.rmtree(gone)

    def files(self, suite: str, key: str) -> dict[str, bytes]:
        """Return the files of a task's record, otherwise of the checkpoint, by name for `put_files`."""
        if self.get(suite, key):
            paths = [path for path in (self.folder / suite / key).rglob("*") if path.is_file()]
        else:
            paths = [path for path in [self.checkpoint(suite, key)] if path.exists()]
        return {path.relative_to(self.folder / suite).as_posix(): path.read_bytes() for path in paths}

    def put_files(self, suite: str, key: str, files: Mapping[str, bytes]) -> None:
        """Store the output of `files` from another machine; a record is stored completely and at once."""
        folder = self.folder / suite / key
        inside = {name: content for name, content in files.items() if name.startswith(f"{key}/")}
        if inside:
            with whole(folder) as partial:
                for name, content in inside.items():
                    path = partial / Path(name).relative_to(key)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                self.drop(suite, key)
        checkpoint = self.checkpoint(suite, key)
        if inside:
            checkpoint.unlink(missing_ok=True)
        elif checkpoint.name in files:
            with whole(checkpoint) as partial:
                partial.write_bytes(files[checkpoint.name])

    def sweep(self) -> list[Path]:
        """Remove leftovers of killed processes, and rename damaged files; return the new paths."""
        for path in self.folder.glob(f"*/*{PARTIAL}"):
            if not is_being_written(path):
                remove(path)
        damaged = [folder for folder in self.waiting() if not read(folder)]
        damaged += [path for path in self.folder.glob(f"*/{SUITE}") if not _announcement(path)]
        aside = [path.with_name(path.name + DAMAGED) for path in damaged]
        for older, path in zip(aside, damaged, strict=True):
            remove(older)
            path.rename(older)
        return aside


def read(folder: Path) -> RunResult | None:
    """Return the result in a record's folder; None if files are damaged or the folder has another name."""
    try:
        checksums = json.loads((folder / CHECKSUMS).read_bytes())
        content = (folder / RESULT).read_bytes()
        if checksums != _digests(folder):
            return None
        result = _RESULT.validate_json(content)
    except (OSError, ValueError):
        return None
    return result if (result.suite, result.key) == folder.parts[-2:] else None


def _announcement(path: Path) -> Announcement | None:
    """Return the content of a suite.json; None if damaged."""
    try:
        content = json.loads(path.read_bytes())
        written = content.pop(CHECKSUM) == _digest(content)
        announcement = _ANNOUNCEMENT.validate_python(content)
        return announcement if written and announcement.suite == path.parent.name else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _digest(value: Any) -> str:
    """Return the SHA-256 of plain data."""
    return hashlib.sha256(_json(value).encode()).hexdigest()


def _digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a record, except the list of checksums."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / CHECKSUMS)
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
