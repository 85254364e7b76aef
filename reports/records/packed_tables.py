"""Copy of the tables of a suite's runs in a single file: opening three files a run would take minutes.

Reports make the copy beside the database, and read the tables of a run from it as long as size and times of
the run's own files stay the same. The copy is no record: it may be deleted at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.tracking import database
from benchmarks.tracking.run_result import Files
from fl_core.recording.atomic import whole

FOLDER = "packed"  # beside the database
MIN_RUNS = 300  # fewer are read about as fast from their own files
REPACKED_FRACTION = 0.1  # of the packed runs: with more changed or new runs, the copy is made anew
MAX_BYTES = 2**20  # of a run's files; larger files take longer to read than to open
TABLES = ("curve", "clients", "diagnostics")  # attributes of `Files` with columns
RUN, STATE, LAYOUT = "run_id", "state", "layout"  # columns beside those of the tables


class PackedRun(NamedTuple):
    """Tables of a run, and the state of the run's own files when the tables were read."""

    state: str
    files: Files


def path_of(tracking_uri: str, experiment: str) -> Path | None:
    """Return the path of the copy of an experiment's tables; None for stores other than an SQLite file."""
    file = database.file(tracking_uri)
    return file and file.absolute().parent / FOLDER / f"{file.stem}-{experiment}.parquet"


def state_of(folder: Path, names: Iterable[str]) -> str:
    """Return sizes and times of a run's files as text; empty for large files, or where a file is missing."""
    total, states = 0, []
    for name in names:
        try:
            status = (folder / name).stat()
        except OSError:
            return ""
        total += status.st_size
        states.append(f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}")
    return ", ".join(states) if total <= MAX_BYTES else ""


def load(path: Path) -> dict[str, PackedRun]:
    """Return the packed runs by MLflow's id; none if the copy is missing or damaged."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        table = read_table(path, page_checksum_verification=True, use_threads=False).combine_chunks()
        runs, states, layouts = (table[name].to_pylist() for name in (RUN, STATE, LAYOUT))
        columns = {}
        for name in table.column_names[3:]:
            lists = table[name].chunk(0)
            columns[name] = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False)
        return {
            run: PackedRun(state, _files(row, layout.split("\n"), columns))
            for row, (run, state, layout) in enumerate(zip(runs, states, layouts, strict=True))
        }
    except (OSError, ArrowException, LookupError, ValueError, TypeError):
        return {}


def save(path: Path, packed: Mapping[str, PackedRun]) -> None:
    """Write the copy, in the place of an older copy; without effect where the folder cannot be written to."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    rows = [_columns(run.files) for run in packed.values()]
    layouts = ["\n".join(row) for row in rows]
    table: dict[str, object] = {
        RUN: list(packed),
        STATE: [run.state for run in packed.values()],
        LAYOUT: layouts,
    }
    for name in [name for layout in dict.fromkeys(layouts) for name in layout.split("\n")]:
        if name not in table:
            values = np.concatenate([row[name] for row in rows if name in row])
            offsets = np.cumsum([0, *(len(row.get(name, ())) for row in rows)])
            table[name] = pa.LargeListArray.from_arrays(offsets, pa.array(values))
    with suppress(OSError), whole(path) as partial:
        write_table(pa.table(table), partial, write_page_checksum=True)


def _columns(files: Files) -> dict[str, np.ndarray]:
    """Return all arrays of a run by table, name and type of the values."""
    columns = {(table, name): column for table in TABLES for name, column in getattr(files, table).items()}
    columns |= {("staleness", str(row)): values for row, values in enumerate(files.staleness)}
    columns["participation", ""] = files.participation
    return {f"{table}:{name}:{values.dtype.str}": values for (table, name), values in columns.items()}


def _files(row: int, layout: Iterable[str], columns: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Files:
    """Return the arrays of a run as `Files`: the inverse of `_columns`."""
    tables: dict[str, dict[str, np.ndarray]] = {
        table: {} for table in (*TABLES, "staleness", "participation")
    }
    for column in layout:
        offsets, values = columns[column]
        table, _, name = column.rpartition(":")[0].partition(":")
        tables[table][name] = values[offsets[row] : offsets[row + 1]]
    staleness, participation = np.stack([*tables["staleness"].values()]), tables["participation"][""]
    return Files(tables["curve"], tables["clients"], staleness, participation, "", tables["diagnostics"])
