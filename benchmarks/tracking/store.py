"""The folder in which results are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.tracking import database


@dataclass(frozen=True, slots=True)
class Store:
    """Database, artifacts, outbox, reports; `tracking` puts another MLflow store in the database's place."""

    folder: Path = Path("asyncfl-results")
    tracking: str | None = None

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
    def reports(self) -> Path:
        """Report pages, one a suite."""
        return self.folder.absolute() / "reports"

    def must_exist(self) -> None:
        """UserError if nothing was ever recorded in the folder, or the other MLflow store cannot be one."""
        if self.tracking is not None:
            database.check(self.tracking)
            if database.is_new(self.tracking):
                raise UserError(f"nothing is recorded at {self.tracking}: there is no such file")
        elif not self.database.is_file():
            raise UserError(f"nothing is recorded in {self.folder}: it holds no mlflow.db (see --store)")
