"""Runs for `asyncfl evidence`: the studies of a strategy and of baselines, and a manifest.

Fixed: which studies are run: rows of an earlier session are found by them. Free: fields of the manifest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.leaderboard.board import STUDIES, StudyOfScale, scales
from benchmarks.mlflow_store.provenance import provenance
from benchmarks.suite import labels
from fl_core import keys, user_code
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.findings import Findings
from reports.leaderboard.scores import COPY, REFERENCE


@dataclass(frozen=True)
class Evidence:
    """A strategy and baselines in the scenarios of a suite."""

    strategy: str  # as a suite writes it
    suite: str  # its name, or the path of its file
    scales: Sequence[str]  # none: all scales of the suite that the tables have
    against: Sequence[str]  # labels of the baselines; none: all entries of the tables, or of the suite
    tables: BoardTables  # stored runs of the board, which are not repeated

    @property
    def studies(self) -> list[StudyOfScale]:
        """Return all studies of strategy and baselines, scenario by scenario."""
        return [
            StudyOfScale(self.suite, scale, number, self._entries(scale))
            for scale in self._scales
            for number in STUDIES
        ]

    @property
    def _scales(self) -> list[str]:
        scales_of_suite = self.scales or scales(self.suite)
        if self.scales or self.tables.finals.empty:
            return [*scales_of_suite]
        return [scale for scale in scales_of_suite if scale in self.tables.scales]

    def _entries(self, scale: str) -> tuple[str, ...]:
        """Return the strategy, the reference (FedAvg) and the other baselines."""
        strategies = self.tables.finals[self.tables.finals["scale"] == scale]["strategy"]
        stored = [str(name) for name in dict.fromkeys(strategies) if not str(name).endswith(COPY)]
        baselines = self.against or stored or StudyOfScale(self.suite, scale, 1).labels
        return tuple(dict.fromkeys([self.strategy, REFERENCE, *baselines]))

    @property
    def label(self) -> str:
        """Return the label of the strategy."""
        return self.studies[0].labels[0]

    def compared(self, tables: BoardTables) -> BoardTables:
        """Return the rows of strategy and baselines, copies included, in the scenarios."""
        entries = {study.place: study.labels for study in self.studies}

        def rows(table: Any) -> Any:
            names = table["strategy"].str.removesuffix(COPY)
            is_compared = [
                name in entries.get(scale, ()) for name, scale in zip(names, table["scale"], strict=True)
            ]
            return table[np.array(is_compared, bool)].reset_index(drop=True)  # an empty list selects columns

        return BoardTables(rows(tables.trials), rows(tables.finals))

    def manifest(self, findings: Findings, folder: Path) -> dict[str, Any]:
        """Return digests of code, data and tables, versions, and the request, as JSON data."""
        loaded = [study.loaded("study", study.strategies) for study in self.studies[:: len(STUDIES)]]
        experiment = loaded[0].runs()[0].experiment
        problems = {labels.problem(suite.spec.problem): suite.spec.problem for suite in loaded}
        return {
            "strategy": experiment.description()["strategy"],
            "code": user_code.digests(user_code.named(experiment.description())),
            "suite": {"name": self.suite, "digest": keys.digest(loaded[0].source.read_bytes())},
            "scenarios": [study.place for study in self.studies[:: len(STUDIES)]],
            "data": {name: problem.world(0).fingerprint for name, problem in problems.items()},
            "tables": {path.name: keys.digest(path.read_bytes()) for path in sorted(folder.glob("*.csv"))},
            "versions": {str(tag): value for tag, value in provenance().items()},
            "conclusion": findings.conclusion(),
            "open": [point for met, point in findings.checklist() if not met],
        }
