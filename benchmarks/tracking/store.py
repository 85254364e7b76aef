"""The folder in which results are kept."""

import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.redaction import remember
from benchmarks.tracking import database

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
                f"--store {self.folder}: '{mark[0]}' cannot stand in the name of a store's folder, since it "
                "ends the database's address: choose another name"
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
