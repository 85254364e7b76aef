"""The rules of a version of the leaderboard as data: `rules.yaml` next to the tables, dated, with digests."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, ValidationError

from benchmarks.errors import UserError
from benchmarks.suite.complaints import lines_of
from benchmarks.yaml_io import content_of, mapping
from fl_core import keys
from fl_core.parts import Count, Frozen

FILE = "rules.yaml"
SCENARIO = ["problem", "partition", "timing"]  # the last with arrangement, and whatever else tells them apart
Seeds = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
Positive = Annotated[float, Field(gt=0)]


class Frame(Frozen):
    """The frozen budget and targets of a scenario."""

    problem: str  # labels, as the tables have them
    partition: str
    timing: str
    budget: Positive  # virtual time
    easy: float  # targets, of the metric that ranks
    hard: float


class Rules(Frozen):
    """Common rules of all entries of a version."""

    version: str
    date: date
    suite: str  # its name; workloads are its scales
    suite_digest: str  # of the suite's file
    reference: str = "FedAvg"  # label of the strategy over which speed-ups are stated
    points: Count = 32  # of the design, the same in every scenario
    design_seeds: Seeds  # the first for all points, the others for the best quarter
    final_seeds: Seeds
    scenarios: Annotated[tuple[Frame, ...], Field(min_length=1)]
    held_out: tuple[Frame, ...] = ()  # scenarios in which nothing was tuned
    files: dict[str, str] = Field(default_factory=dict)  # table → digest

    @classmethod
    def load(cls, folder: Path) -> Rules:
        """Return the rules of a folder; UserError if missing or invalid."""
        path = folder / FILE
        if not path.is_file():
            raise UserError(f"{path}: there are no rules: name a folder of a version, such as 1.0")
        document = mapping(path, content_of(path))
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise UserError(next(lines_of(path, error, cls, document))) from None

    @property
    def workloads(self) -> list[str]:
        """Workloads with tables: scales of the suite."""
        ending = "-design.csv"
        return sorted(name.removesuffix(ending) for name in self.files if name.endswith(ending))

    @property
    def frames(self) -> pd.DataFrame:
        """Budget, easy and hard by problem, partition, timing; of the held-out scenarios, too."""
        return pd.DataFrame([own.model_dump() for own in (*self.scenarios, *self.held_out)]).set_index(
            SCENARIO
        )

    def budgets(self, runs: pd.DataFrame) -> np.ndarray:
        """Return the budget of each run's scenario."""
        return self.frames["budget"].reindex(pd.MultiIndex.from_frame(runs[SCENARIO])).to_numpy()


def digest(path: Path) -> str:
    """Return the digest of a file, regardless of line ends."""
    return keys.digest(path.read_bytes().replace(b"\r\n", b"\n"))
