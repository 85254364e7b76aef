"""Logs of clients' jobs, in any columns of a CSV or parquet file, as traces of job lengths and absences.

`asyncfl trace import` and `asyncfl advise --trace` read them; `JobLog.save` writes traces for suites.

Fixed: the numbers in written files, whose digests are in keys of runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import UserError
from fl_core import file_reading
from fl_core.text import listed, many, nearest
from fl_core.timing import traces

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES = 500_000_000
DONE = ("done", "ok", "success", "succeeded", "successful", "complete", "completed", "finished", "true")
DECIMALS = 6  # of a written length
MAX_LENGTH = 1e12  # of a job, in the unit of the log: 30,000 years in seconds
MAX_START = 1e19  # of numeric times: above all times since 1970 in nanoseconds
# A gap between two jobs of a client is an absence if it is longer than LONG_GAP_FACTOR times the client's
# median time from job to job. Exponential gaps alone, without absences, spend less than MIN_AWAY_SHARE of the
# time in such gaps: a law of availability is inferred only above.
LONG_GAP_FACTOR, MIN_AWAY_SHARE = 10, 0.01
ZONED = r"[T ]\d\d.*(?:Z|[+-]\d\d(?::?\d\d)?)$"  # of a date with a time zone
# Smallest number that is taken for a time since 1970, and units in a second: 1e8 seconds are in 1973.
SINCE_1970 = ((1e8, 1), (1e11, 10**3), (1e14, 10**6), (1e17, 10**9))


@dataclass(frozen=True)
class Columns:
    """Columns of a log for client, start, end or duration, and status."""

    client: str
    start: str | None = None
    end: str | None = None
    duration: str | None = None
    status: str | None = None
    done: tuple[str, ...] = ()  # values of `status` of finished jobs; none: those of DONE

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        names = (self.client, self.start, self.end, self.duration, self.status)
        return [name for name in names if name is not None]


@dataclass(frozen=True)
class GapSummary:
    """Gaps between a client's jobs, with the long gaps as absences."""

    gaps: int  # number
    long: int  # number of long gaps
    away: float  # share of long gaps in the time from a client's first job to its last, of all clients
    mean_on: float  # mean time present between long gaps; infinite without any
    mean_off: float  # mean length of long gaps; 0 without any
    # Columns client, from, to, period: times of presence; the log repeats after `period`
    presence: pd.DataFrame = field(compare=False)

    @property
    def law(self) -> dict[str, Any] | None:
        """Law of availability for a suite file; None if clients are hardly ever away."""
        if self.away <= MIN_AWAY_SHARE or self.mean_on <= 0:
            return None
        return {"name": "spells", "mean_on": _rounded(self.mean_on), "mean_off": _rounded(self.mean_off)}


@dataclass(frozen=True, eq=False)
class JobLog:
    """Jobs of a log; clients keep the ids of the log."""

    rows: int  # of the file
    left_out: Mapping[str, int]  # reason → number of rows
    jobs: pd.DataFrame  # columns client and length, a row for each job, ordered by start if the log has one
    absences: GapSummary | None  # None if the log has no start times
    seconds: bool  # whether lengths are in seconds, as they are if the log has dates; else in the log's unit

    @property
    def clients(self) -> int:
        """Number of clients with a job."""
        return int(self.jobs["client"].nunique())

    def save(self, trace: Path) -> dict[str, Any]:
        """Write the trace, and a file of presence where clients were away; return the timing of a suite file.

        Raises:
            UserError: Another file of such a name exists.
        """
        length = "seconds" if self.seconds else "length"
        _write_table(trace, self.jobs.rename(columns={"length": length}), [length])
        timing = {"durations": {"name": "trace", "path": str(trace), "clients": "random"}}
        if self.absences is not None and self.absences.law is not None:
            presence = trace.with_name(f"{trace.stem.removesuffix('-trace')}-presence.csv")
            _write_table(presence, self.absences.presence, ["from", "to", "period"])
            timing["availability"] = {"name": "trace", "path": str(presence), "clients": "random"}
        return timing


def _write_table(path: Path, table: pd.DataFrame, numbers: Sequence[str]) -> None:
    """Write a table as CSV, the columns of `numbers` with at most `DECIMALS` decimals."""
    texts = {name: table[name].map(_plain) for name in numbers}
    write_once(path, table.assign(**texts).to_csv(index=False))


def _plain(value: float) -> str:
    return f"{value:.{DECIMALS}f}".rstrip("0").rstrip(".")


def write_once(path: Path, text: str) -> None:
    """Write a file, unless already written; UserError instead of replacing another file."""
    if path.exists() and path.read_bytes() != text.encode():
        raise UserError(
            f"{path}: another file of this name exists. Delete it, or choose another with --out FILE"
        )
    path.write_text(text, encoding="utf-8", newline="\n")


def read(path: Path, columns: Columns, gap: float | None = None) -> JobLog:
    """Read the jobs of a log.

    Args:
        path: A CSV or parquet file with one row for each job.
        columns: Names of its columns.
        gap: Shortest absence, in the unit of the lengths: longer gaps between a client's jobs are absences.
            By default ten times the client's median time from the start of a job to the start of the next.

    Raises:
        UserError: If the file cannot be read, lacks a column, or has no job.
    """
    import pandas as pd

    table = _table(path, columns)
    timed = _times(path, table, columns)
    client = table[columns.client].astype("string").str.strip()
    reasons = pd.Series(pd.NA, table.index, dtype="string")

    def leave_out(rows: pd.Series[bool], reason: str) -> None:
        reasons[rows.fillna(False).astype(bool) & reasons.isna()] = reason

    leave_out(client.isna() | (client == ""), "without a client")
    leave_out(timed["length"].isna() | timed["length"].isin([inf]), "without a time that can be read")
    if columns.start:
        leave_out(
            timed["start"].isna() | (timed["start"].abs() > MAX_START), "without a time that can be read"
        )
    leave_out(timed["length"] > MAX_LENGTH, f"with a length above {MAX_LENGTH:g}")
    timed = timed.assign(client=client)[reasons.isna()]  # with failed jobs: they show presence, too
    if columns.status:
        leave_out(~_is_done(path, table[columns.status], columns.done), "that did not finish")
    leave_out((timed["length"] < 10**-DECIMALS).reindex(table.index), "with a length of 0 or less")
    jobs = timed.loc[reasons[reasons.isna()].index.intersection(timed.index)]
    if jobs.empty:
        raise UserError(f"{path}: has no usable job: {counts(_by_reason(reasons))}")
    if columns.start:
        jobs = jobs.sort_values("start", kind="stable")
    _check_ids(path, jobs["client"].unique())
    return JobLog(
        rows=len(table),
        left_out=_by_reason(reasons),
        jobs=pd.DataFrame(
            {"client": jobs["client"].to_numpy(), "length": jobs["length"].round(DECIMALS).to_numpy()}
        ),
        absences=_absences(timed, gap, set(jobs["client"])) if columns.start else None,
        seconds=bool(timed.attrs["seconds"]),
    )


def _check_ids(path: Path, clients: Iterable[str]) -> None:
    """Raise UserError for ids forbidden in a trace, and for equal numbers, for example 7 and 07."""
    seen: dict[str, str] = {}
    for client in clients:
        if client.startswith("-") or not client.isprintable():
            raise UserError(
                f"{path}: client {client!r}: ids must not begin with '-' or contain control characters"
            )
        if (earlier := seen.setdefault(traces.normal_id(client), client)) != client:
            raise UserError(
                f"{path}: clients '{earlier}' and '{client}' are the same number. Give one of them another id"
            )


def names(path: Path) -> str:
    """Return the names of the columns of a log, for a message; UserError if the log cannot be read."""
    return ", ".join(map(str, _all_columns(path).columns))


def _table(path: Path, columns: Columns) -> pd.DataFrame:
    """Return the named columns of the file, with texts unchanged; UserError for a missing column."""
    table = _all_columns(path)
    for name in columns.names:
        if name not in table.columns:
            available = ", ".join(map(str, table.columns))
            raise UserError(f"{path}: no column '{name}'{nearest(name, table.columns)} It has: {available}")
    return table[list(dict.fromkeys(columns.names))]


def _all_columns(path: Path) -> pd.DataFrame:
    """Return all columns of the file."""
    import pandas as pd

    try:
        content = file_reading.content(path, MAX_BYTES)
        if content[:4] == b"PAR1":
            return pd.read_parquet(BytesIO(content))
        header = content.partition(b"\n")[0]
        separator = max((b",", b";", b"\t", b"|"), key=header.count).decode()
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows longer than the header
            return pd.read_csv(
                BytesIO(content), sep=separator, dtype="string", encoding="utf-8-sig", index_col=False
            )
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, pd.errors.ParserWarning) as error:  # pyarrow's and UnicodeDecodeError are ValueErrors
        raise UserError(f"{path}: is neither CSV nor parquet: {str(error).strip().splitlines()[0]}") from None


def _times(path: Path, table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Return start and length of each row, NaN if unreadable; `attrs` says whether in seconds."""
    import pandas as pd

    values = {
        name: _moments(path, name, table[name])
        for name in (columns.start, columns.end, columns.duration)
        if name is not None
    }
    start = values[columns.start] if columns.start else None
    stamps = start is not None and pd.api.types.is_datetime64_any_dtype(start)
    if columns.duration:
        length = values[columns.duration]
        if pd.api.types.is_datetime64_any_dtype(length):
            raise UserError(
                f"{path}: column '{columns.duration}' holds dates, not lengths: name a column of lengths, or "
                "--start COL and --end COL"
            )
    else:
        assert columns.start and columns.end
        if stamps != pd.api.types.is_datetime64_any_dtype(values[columns.end]):
            values = {name: _since_1970(path, name, column) for name, column in values.items()}
            start, stamps = values[columns.start], True
        elif stamps:
            _check_zones(path, table[list(values)][pd.DataFrame(values).notna().all(axis=1)])
        length = values[columns.end] - values[columns.start]
    if pd.api.types.is_timedelta64_dtype(length):
        length = length.dt.total_seconds()
    timed = pd.DataFrame({"length": length.astype(float)})
    if start is not None:
        timed["start"] = (start - start.min()).dt.total_seconds() if stamps else start.astype(float)
    timed.attrs["seconds"] = stamps
    return timed


def _moments(path: Path, name: str, column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as numbers, dates or lengths of time; UserError for other contents."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return column
    if pd.api.types.is_bool_dtype(column):
        raise UserError(f"{path}: column '{name}' holds true and false, neither numbers nor dates")
    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except (TypeError, ValueError, ArithmeticError) as error:  # of lists, say, in a parquet file
        raise UserError(f"{path}: column '{name}' holds neither numbers nor dates: {error}") from None
    if numbers.notna().any() and 2 * numbers.notna().sum() >= column.notna().sum():  # not a 0 among dates
        return numbers
    moments = pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    if moments.isna().all():
        first = next(iter(column.dropna()), "")
        raise UserError(
            f"{path}: column '{name}' holds '{first}', neither numbers nor dates such as 2026-01-31 12:00:05"
        )
    return moments


def _check_zones(path: Path, ends: pd.DataFrame) -> None:
    """Raise UserError if either start or end lacks a time zone: the job's length would be unknown."""
    if ends.empty:
        return
    zoned = ends.astype("string").apply(lambda column: column.str.strip().str.contains(ZONED))
    for name, second in (ends.columns, ends.columns[::-1]):
        if (zoned[name] & ~zoned[second]).any():
            raise UserError(
                f"{path}: '{name}' has time zones where '{second}' has none; give both with or without"
            )


def _since_1970(path: Path, name: str, column: pd.Series[Any]) -> pd.Series[Any]:
    """Return dates, also from seconds, milliseconds, microseconds or nanoseconds since 1970."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        return column.dt.tz_localize("UTC") if column.dt.tz is None else column
    in_a_second = [count for lower, count in SINCE_1970 if column.median() >= lower]
    if not in_a_second:
        raise UserError(
            f"{path}: column '{name}' holds numbers that are not times since 1970, but the other "
            "column holds dates. Give dates in both, or numbers in both"
        )
    return pd.to_datetime((column * (1e6 / in_a_second[-1])).round().astype("Int64"), unit="us", utc=True)


def _is_done(path: Path, status: pd.Series[Any], done: Sequence[str]) -> pd.Series[bool]:
    """Return for each row whether the status means a finished job."""
    import pandas as pd

    text = status.astype("string").str.strip().str.casefold()
    if not done and pd.to_numeric(text.dropna(), errors="coerce").notna().any():
        values = ", ".join(f"'{value}'" for value in text.dropna().unique()[:6])
        raise UserError(
            f"{path}: column '{status.name}' holds numbers, {values}: give the value of finished jobs with "
            "--done, such as --done 0 for exit codes"
        )
    finished = text.isin([value.casefold() for value in done or DONE])
    if not finished.any():
        values = ", ".join(f"'{value}'" for value in text.dropna().unique()[:6])
        raise UserError(
            f"{path}: no job is marked as finished, but {values}. Give the value of finished jobs with --done"
        )
    return finished


def _absences(timed: pd.DataFrame, gap: float | None, clients: Collection[str]) -> GapSummary | None:
    """Return the gaps of all clients, and the presence of clients with finished jobs; None without a gap."""
    present = timed.assign(end=timed["start"] + timed["length"].clip(lower=0)).dropna().sort_values("start")
    by_client = present.groupby("client")
    last_end = by_client["end"].cummax()
    gaps = (present["start"] - last_end.groupby(present["client"]).shift()).dropna().clip(lower=0)
    if gaps.empty:
        return None
    cycles = by_client["start"].diff().groupby(present["client"]).median()
    thresholds = LONG_GAP_FACTOR * present.loc[gaps.index, "client"].map(cycles)
    long = gaps[gaps > (thresholds if gap is None else gap)]
    observed = float((by_client["end"].max() - by_client["start"].min()).sum())
    away = float(long.sum())
    finished = present[present["client"].isin(clients)]
    return GapSummary(
        gaps=len(gaps),
        long=len(long),
        away=away / observed if observed else 0.0,
        mean_on=(observed - away) / len(long) if len(long) else float("inf"),
        mean_off=away / len(long) if len(long) else 0.0,
        presence=_presence(finished, long.index),
    )


def _presence(jobs: pd.DataFrame, late: pd.Index[Any]) -> pd.DataFrame:
    """Return the presence of each client: from a job to the last job before the next long gap.

    Times count from the first start of the log, which repeats after its last end.

    Args:
        jobs: Columns client, start, end, in order of start.
        late: Index labels of jobs after an absence of their client.
    """
    first = jobs["start"].min()
    spell = jobs.index.isin(late).astype(int)
    number = jobs.assign(spell=spell).groupby("client")["spell"].cumsum()
    spells = jobs.groupby([jobs["client"], number], sort=False).agg(
        start=("start", "min"), end=("end", "max")
    )
    begin = (spells["start"] - first).round(DECIMALS)
    end = (spells["end"] - first).round(DECIMALS).clip(lower=begin + 10**-DECIMALS)
    table = spells.assign(**{"from": begin, "to": end, "period": end.max()}).reset_index()
    return table[["client", "from", "to", "period"]].sort_values(["client", "from"], ignore_index=True)


def _by_reason(reasons: pd.Series[str]) -> dict[str, int]:
    return {str(reason): int(rows) for reason, rows in reasons.value_counts().items()}


def counts(left_out: Mapping[str, int]) -> str:
    """Return the numbers of rows left out, in words."""
    return listed([f"{many(rows, 'row')} {reason}" for reason, rows in left_out.items()])


def _rounded(value: float) -> float:
    """Return a number with three significant digits: the inference is no more exact."""
    rounded = float(f"{value:.3g}")
    return int(rounded) if rounded.is_integer() else rounded
