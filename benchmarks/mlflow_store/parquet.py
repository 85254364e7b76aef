"""Tables of runs as Parquet files, checked against `fl_core.recorded_names` on reading.

The outbox writes them; reports, summaries of groups and `asyncfl replay` read them.

Fixed: tables of earlier records can be read, and damaged ones are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fl_core.recorded_names import AMOUNT, COUNT, Table

if TYPE_CHECKING:
    import pandas as pd
    from pyarrow import Schema

NUMBERS = {COUNT: "whole numbers, 0 or more", AMOUNT: "finite numbers, 0 or more"}
MAX_NUMBERS = 2**28  # read at once: 2 GiB


class UnreadableTableError(Exception):
    """Error for a missing or damaged table; the message names the file and the fault."""


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write a table, with checksums."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {name: pa.array(column) for name, column in columns.items()}
    for name, column in arrays.items():
        if pa.types.is_null(column.type):  # no values, and so no type: numbers, as in all other tables
            arrays[name] = column.cast(pa.int64())
    table = pa.table(arrays)
    pq.write_table(table, path, write_page_checksum=True)


def read(folder: Path, table: Table, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Return a table from the folder of a run: all columns, or the named columns.

    Raises:
        UnreadableTableError: The file is missing, damaged, or not as its schema says.
    """
    import pandas as pd

    return pd.DataFrame(arrays(folder, table, columns), copy=False)


def arrays(folder: Path, table: Table, columns: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return the columns of a table by name, in a third of the time of a frame; raises errors like `read`."""
    from pyarrow import ArrowException, OSFile
    from pyarrow.parquet import ParquetFile

    options = {"page_checksum_verification": True, "pre_buffer": False}  # for small files, threads cost time
    try:
        with OSFile(str(folder / table.file)) as opened, ParquetFile(opened, **options) as file:
            schema = file.schema_arrow
            names = list(columns or schema.names)
            fault = _fault_of_schema(schema, file.metadata.num_rows, table, names)
            rows = file.read(() if fault else columns or None, use_threads=False)
        read = {name: column.to_numpy() for name, column in zip(rows.column_names, rows.columns, strict=True)}
    except FileNotFoundError:
        raise UnreadableTableError(f"{table.file}: no such file") from None
    except (OSError, ArrowException) as error:
        raise UnreadableTableError(f"{table.file}: {type(error).__name__}") from None
    if fault := fault or _fault_of_values(read, table):
        raise UnreadableTableError(f"{table.file}: {fault}")
    return read


def _fault_of_schema(schema: Schema, rows: int, table: Table, names: Sequence[str]) -> str:
    """Return the fault in the number of rows or the types of columns; empty without any."""
    from pyarrow.types import is_floating, is_integer, is_string

    types = dict(zip(schema.names, schema.types, strict=True))
    for name in (*table.columns, *names):
        if name not in types:
            return f"no column {name}"
        if name in table.texts:
            if not is_string(types[name]):
                return f"column {name}: {types[name]}, must be text"
            continue
        kind = table.columns.get(name, "")
        if not (is_integer(types[name]) or (is_floating(types[name]) and kind != COUNT)):
            return f"column {name}: {types[name]}, must be {NUMBERS.get(kind, 'numbers')}"
    if rows < table.rows:
        return "no rows"
    return f"{rows:,} rows, too many to read" if rows * len(names) > MAX_NUMBERS else ""


def _fault_of_values(read: Mapping[str, np.ndarray], table: Table) -> str:
    """Return the fault in the values of the table's own columns; empty without any."""
    for name in [name for name in table.columns if name in read]:
        values = read[name]
        if len(values) and not 0 <= values.min() <= values.max() < inf:  # nor is NaN
            return f"column {name}: must be {NUMBERS[table.columns[name]]}"
        if name in table.ordered and (values[1:] < values[:-1]).any():
            return f"column {name}: must not decrease"
        if (bound := table.bounds.get(name, "")) in read and (values > read[bound]).any():
            return f"column {name}: must not exceed {bound}"
        if name == table.numbers and (values != np.arange(len(values))).any():
            return f"column {name}: must be 0, 1, … in order"
        if name == table.shares and not isclose(values.sum(), 1, rel_tol=1e-5):
            return f"column {name}: must sum to 1"
    return ""
