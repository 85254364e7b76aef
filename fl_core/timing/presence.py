"""Recorded presence of clients, as a law of availability: CSV rows of `client,from,to` and a period."""

import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from fl_core import keys
from fl_core.parts import FieldError, Length
from fl_core.streams import stream
from fl_core.timing import traces
from fl_core.timing.availability import NEVER, Absence, Availability, Spell, between
from fl_core.timing.clock import MICRO, VirtualClock
from fl_core.timing.law_labels import label


class Schedule(NamedTuple):
    """A client's times of presence, in ticks of MICRO."""

    spells: Sequence[Spell]  # in order, with gaps between
    period: int | None  # after which the spells repeat; None: never


class PresenceTrace(Availability):
    """Recorded presence from a CSV file, rows of `client,from,to`, or `client,from,to,period`.

    A client is absent outside of its rows. These repeat after `period`, or else after the client's own, the
    file's fourth column; without either a client is gone after its last row. Beside a trace of durations
    clients are those of that trace, by their ids; alone, they are numbered as in one.
    """

    name: ClassVar[str] = "trace"

    path: Path  # of the CSV file
    # Which of the file's: the first n, or n drawn anew for every seed
    clients: Literal["first", "random"] = "first"
    period: Length | None = None  # virtual time after which rows repeat; None: as the file says
    shift: bool = False  # whether each client starts somewhere in its period, drawn anew for every seed
    digest: str = Field("", validate_default=True)  # of the content, filled in: part of a run's identity

    @field_validator("digest")
    @classmethod
    def _identify(cls, digest: str, info: ValidationInfo) -> str:
        """Fill in the digest of the file, and check all rows."""
        path = info.data.get("path")
        if digest or path is None:
            return digest
        digest = keys.digest(traces.content(path, limit=traces.MOST_BYTES))
        schedules = _schedules(path, digest, info.data.get("period")).values()
        if info.data.get("shift") and not all(schedule.period for schedule in schedules):
            raise FieldError("shift", f"needs a 'period', since {path} has none: add one, or leave out shift")
        return digest

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        drawn = seed if self.clients == "random" else None
        schedule = _of_clients(self.path, self.digest, self.period, n, drawn)[client]
        return self._absences(schedule, client, seed)

    def absences_of(self, ids: Sequence[str], client: int, seed: int) -> Iterator[Absence]:
        number = traces.number(self.path, self.digest, ids[client])
        return self._absences(_schedules(self.path, self.digest, self.period)[number], client, seed)

    def _absences(self, schedule: Schedule, client: int, seed: int) -> Iterator[Absence]:
        """Yield the absences under a schedule, repeated and shifted as the fields say."""
        spells, period = schedule
        if period is None:
            return between(spells)
        if spells == [(0, period)]:
            return NEVER
        begin = int(stream(seed, "shift", client).integers(period)) if self.shift else 0
        starts = (turn * period - begin for turn in count())
        return between((start + leaves, start + returns) for start in starts for leaves, returns in spells)

    def times(self) -> tuple[Fraction, ...]:
        return (MICRO,)

    def label(self) -> str:
        return label(self, f"present as in {self.path.name}", except_for=("path", "digest"))


@functools.lru_cache(maxsize=32)
def _of_clients(
    path: Path, digest: str, period: Fraction | None, n: int, seed: int | None
) -> Sequence[Schedule]:
    """Return the schedules of the n clients of a run; cached, since each client asks."""
    return traces.of_clients(path, _schedules(path, digest, period), n, seed)


@functools.lru_cache(maxsize=4)
def _schedules(path: Path, digest: str, period: Fraction | None) -> Mapping[int, Schedule]:
    """Return the schedule of each client of a file, times rounded to ticks of MICRO.

    Raises:
        ValueError: The file has another digest, or a row that is no time of presence within the period.
    """
    seen: dict[str, list[tuple[Spell, int | None]]] = defaultdict(list)
    period_ticks = None if period is None else VirtualClock(MICRO).round(period)
    for line, (client, *cells) in traces.rows(path, traces.content(path, digest, traces.MOST_BYTES)):
        try:
            begin, end, *period_of_row = (round(float(cell) / float(MICRO)) for cell in cells)
            lasts = period_of_row[0] if period_ticks is None and period_of_row else period_ticks
            if (
                len(period_of_row) > 1
                or client.startswith("-")
                or not (client and 0 <= begin < end <= (math.inf if lasts is None else lasts))
            ):
                raise ValueError
        except (ValueError, OverflowError):
            raise ValueError(
                f"trace file {path}, line {line}: must be a client, the begin and the end of its "
                f"presence, and optionally a period, such as 'a7,12.5,80' or 'a7,12.5,80,86400', "
                f"not '{','.join([client, *cells])}'" + (f" with period {period}" if period_ticks else "")
            ) from None
        if seen[client] and seen[client][0][1] != lasts:
            raise ValueError(
                f"trace file {path}, line {line}: client {client} has two different periods: give "
                "the same in all rows"
            )
        seen[client].append(((begin, end), lasts))
    return {client: _schedule(rows) for client, rows in traces.numbered(seen).items()}


def _schedule(rows: Sequence[tuple[Spell, int | None]]) -> Schedule:
    """Return the schedule of a client's rows; touching and overlapping rows are merged."""
    spells: list[Spell] = []
    for begin, end in sorted(spell for spell, _ in rows):
        if spells and begin <= spells[-1][1]:
            spells[-1] = (spells[-1][0], max(end, spells[-1][1]))
        else:
            spells.append((begin, end))
    return Schedule(spells, rows[0][1])
