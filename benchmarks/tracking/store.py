"""The folder in which results are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.errors import UserError
from benchmarks.redaction import remember
from benchmarks.tracking import database
from benchmarks.tracking.artifact_locations import fetched
from benchmarks.tracking.queries import INFO, RunColumns
from benchmarks.tracking.reader import frame, reading
from fl_core.schema import CURVE, TAGS

if TYPE_CHECKING:
    import pandas as pd

ADDRESS_MARKS = re.compile(r"[?#]|%[0-9A-Fa-f]{2}")  # what MLflow would not read as part of a path


@dataclass(frozen=True, slots=True)
class Store:
    """Database, artifacts, outbox, reports; `tracking` puts another MLflow store in the database's place."""

    folder: Path = Path("asyncfl-results")
    tracking: str | None = None

    def __post_init__(self) -> None:
        if self.tracking is not None:
            remember(self.tracking)
        elif mark := ADDRESS_MARKS.search(str(self.folder.absolute())):
            raise UserError(
                f"--store {self.folder.absolute()}: '{mark[0]}' ends the address of a database and cannot "
                "stand in the path of a store: choose another folder"
            )

    @property
    def database(self) -> Path:
        """MLflow's SQLite file."""
        return self.folder.absolute() / "mlflow.db"

    @property
    def tracking_uri(self) -> str:
        """The MLflow store: the given one, or the database in the folder."""
        return self.tracking or f"sqlite:///{self.database}"

    @property
    def is_server(self) -> bool:
        """Whether an MLflow server stands there, which keeps files by itself."""
        return self.tracking_uri.startswith(("http://", "https://"))

    @property
    def artifacts(self) -> Path:
        """Where MLflow keeps files, unless a server does."""
        return self.folder.absolute() / "artifacts"

    @property
    def outbox(self) -> Path:
        """Checkpoints, and records that wait until they are sent."""
        return self.folder.absolute() / "outbox"

    @property
    def log(self) -> Path:
        """What libraries print in worker processes."""
        return self.folder.absolute() / "workers.log"

    @property
    def session_log(self) -> Path:
        """What sessions did: see `benchmarks/logs.py`."""
        return self.folder.absolute() / "asyncfl.log"

    @property
    def reports(self) -> Path:
        """Report pages, one a suite."""
        return self.folder.absolute() / "reports"

    @property
    def options(self) -> list[str]:
        """The words that name the store on a command line."""
        named = [] if self.folder == Store().folder else ["--store", str(self.folder)]
        return [*named, *(["--tracking-uri", self.tracking] if self.tracking else [])]

    @property
    def lost_its_database(self) -> bool:
        """Whether there is no database beside its artifacts."""
        return self.tracking is None and self.artifacts.is_dir() and database.is_new(self.tracking_uri)

    def make(self) -> None:
        """Make the folder and the outbox for their owner alone; what is there keeps its rights.

        They hold unpublished results, tracebacks and the user's own data.
        """
        for folder in (self.folder, self.outbox):
            folder.mkdir(0o700, parents=True, exist_ok=True)

    def must_exist(self) -> None:
        """UserError if nothing was ever recorded here, or the MLflow store cannot be one."""
        if self.tracking is None and database.is_new(self.tracking_uri):
            if self.lost_its_database:
                raise UserError(
                    f"{self.folder} holds artifacts, but no mlflow.db that lists them: restore a copy of it, "
                    "or asyncfl run starts anew"
                )
            raise UserError(f"nothing is recorded in {self.folder}: it holds no mlflow.db (see --store)")
        database.must_exist(self.tracking_uri)

    def table(self, suite: str, **filters: object) -> pd.DataFrame:
        """Return what MLflow holds of a suite: one row a run, with the columns of `mlflow.search_runs`.

        Args:
            suite: The name under which the suite is recorded.
            filters: Values of tags of this package, such as `kind="run"`, `strategy="FedBuff"` or `seed=3`.
        """
        with reading(self.tracking_uri) as reader:
            experiment = reader.experiments().get(suite)
            runs = frame(
                reader.runs(experiment.id) if experiment else RunColumns({name: [] for name in INFO})
            )
        for name, value in filters.items():
            tag = f"tags.{TAGS}{name}"
            runs = runs[runs[tag] == str(value)] if tag in runs else runs[:0]
        return runs.reset_index(drop=True)

    def curves(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return one row an evaluation of the runs of a `table`: `run_id`, clocks, evaluated metrics.

        Raises:
            UnreadableTableError: The file of a curve is missing or damaged.
        """
        import pandas as pd

        from benchmarks.tracking import parquet

        parts = []
        for run, address in zip(runs["run_id"], runs["artifact_uri"], strict=True):
            with fetched(address, self.tracking_uri, [CURVE.file]) as folder:
                parts.append(parquet.read(folder, CURVE).assign(run_id=run))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["run_id"])
