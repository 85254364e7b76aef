"""A partition read from a file: client → indices into the training data, as JSON or CSV."""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from fl_core import keys, reading
from fl_core.problems.data.data import Data
from fl_core.problems.partitions.partition import Partition, check
from fl_core.problems.problem import InvalidProblemError


class PartitionFile(Partition):
    """Clients' data points from a file, client → indices into the training data, JSON or CSV.

    JSON: a list with a list of indices for each client, or an object `{"0": [5, 7], …}`. CSV: rows of
    `client,index`; a header is skipped. Clients are 0 … n−1. Data points that are not listed are unused.
    """

    name: ClassVar[str] = "file"
    may_leave_out: ClassVar[bool] = True

    path: Path  # of a JSON file of lists, or CSV rows of `client,index`
    digest: str = Field("", validate_default=True)  # of the content, filled in: part of a run's identity

    @field_validator("digest")
    @classmethod
    def _identify(cls, digest: str, info: ValidationInfo) -> str:
        path = info.data.get("path")
        return digest if digest or path is None else keys.digest(_content(path))

    def label(self) -> str:
        return f"partition {self.path.name}"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        named = len(self._read())
        if named != clients:
            return f"partition file {self.path} names {named} clients, not {clients}: set clients to {named}"
        return None

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        parts = self._parts(data.published, clients)
        if data.rows is not None:  # some of the published training data are held out for tuning
            place = np.full(data.published, -1)
            place[data.rows.numpy()] = np.arange(len(data.rows))
            parts = [np.sort(place[part][place[part] >= 0]) for part in parts]
        check(self, parts, len(data.labels_train), clients)
        return parts

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        return self._parts(len(labels), clients)

    def _parts(self, samples: int, clients: int) -> list[np.ndarray]:
        """Return each client's ascending indices; InvalidProblemError for invalid or duplicate indices."""
        held = self._read()
        if reason := self.refuses(samples, 0, clients):
            raise InvalidProblemError(reason)
        holder: dict[int, int] = {}
        for client, indices in sorted(held.items()):
            if not 0 <= client < clients:
                raise InvalidProblemError(
                    f"partition file {self.path}: client {client} is not one of 0 … {clients - 1}"
                )
            for index in indices:
                if not 0 <= index < samples:
                    raise InvalidProblemError(
                        f"partition file {self.path}: client {client} holds data point {index}, and there "
                        f"are only 0 … {samples - 1}"
                    )
                if index in holder:
                    raise InvalidProblemError(
                        f"partition file {self.path}: data point {index} is held by clients "
                        f"{holder[index]} and {client}"
                    )
                holder[index] = client
        return [np.array(sorted(held[client]), int) for client in range(clients)]

    def _read(self) -> dict[int, list[int]]:
        content = _content(self.path)
        if keys.digest(content) != self.digest:
            raise ValueError(
                f"partition file {self.path}: the content is not the one described, of digest {self.digest}"
            )
        try:
            if self.path.suffix.lower() == ".csv":
                return _rows(content)
            text = content.decode("utf-8-sig", errors="replace")
            return _lists(json.loads(text, object_pairs_hook=_without_duplicates))
        except (ValueError, TypeError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"partition file {self.path}: neither JSON lists of indices nor CSV rows of client,index "
                f"({reason})"
            ) from None


def _content(path: Path) -> bytes:
    try:
        return reading.content(path)
    except OSError as error:
        raise ValueError(f"partition file {path}: {error.strerror}") from None


def _lists(content: Any) -> dict[int, list[int]]:
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    clients = [(int(client), indices) for client, indices in pairs]  # "7" and "07" are one client
    return _without_duplicates(
        [(client, [_whole(index) for index in indices]) for client, indices in clients]
    )


def _without_duplicates(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a JSON object's members as a dict; raise ValueError for duplicate keys."""
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"client {next(key for key in keys if keys.count(key) > 1)} stands there twice")
    return members


def _rows(content: bytes) -> dict[int, list[int]]:
    parts: dict[int, list[int]] = {}
    for line, cells in reading.rows(content):
        try:
            client, index = (_integer(cell) for cell in cells)
        except ValueError as error:
            if line == 1 and not any(map(_is_number, cells)):  # a header
                continue
            raise ValueError(f"line {line}: {error}") from None
        parts.setdefault(client, []).append(index)
    return parts


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-")[:1].isdigit()


def _integer(cell: str) -> int:
    """Return a whole number, written as 3.0 by pandas where a row of the column is empty."""
    digits, point, zeros = cell.partition(".")
    if point and zeros.strip("0"):
        raise ValueError(f"{cell} is no index")
    return int(digits)


def _whole(index: Any) -> int:
    if isinstance(index, bool) or not isinstance(index, int):
        raise ValueError(f"{index!r} is no index")
    return index
