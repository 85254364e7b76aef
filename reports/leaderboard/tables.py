"""The kept tables of a version: design, points, final runs and held-out runs of each workload."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path

import pandas as pd

from benchmarks.errors import UserError, writing
from fl_core import reading
from fl_core.recording.atomic import whole
from reports.leaderboard.rules import FILE, SCENARIO, Frame, Rules, digest
from reports.tables import as_written, harmless

RUN = [*SCENARIO, "strategy", "seed", "status"]
MEASURES = [
    "time_easy",  # virtual time; inf if the target was never met
    "time_hard",
    "updates",  # of clients, until the hard target or the end
    "bytes",  # that these uploaded
    "accuracy",  # at the end, of the metric that ranks
]
DESIGN = [*RUN, "point", *MEASURES]
FINALS = [*RUN, "ruleset", *MEASURES, "worst_client"]
POINTS = ["problem", "strategy", "point", "values"]  # the last a JSON mapping of parameters
KINDS = {"design": DESIGN, "points": POINTS, "finals": FINALS, "held_out": FINALS}  # the last maybe empty
TEXTS = (*SCENARIO, "strategy", "status", "ruleset", "values")
ORDER = [*SCENARIO, "strategy", "ruleset", "point", "seed"]
DIGITS = 9

TUNED, ONE_SETTING = "tuned", "one_setting"
RULESETS = (TUNED, ONE_SETTING)


@dataclass(frozen=True, eq=False)
class Tables:
    """The results of a workload, or of several together, and the rules of the version."""

    rules: Rules
    design: pd.DataFrame
    points: pd.DataFrame
    finals: pd.DataFrame
    held_out: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=FINALS))

    @classmethod
    def load(cls, folder: Path) -> Tables:
        """Return all tables of a version's folder; UserError if tables are missing."""
        return cls(Rules.load(folder), **{name: _joined(folder, name) for name in KINDS})

    def save(self, folder: Path, workload: str) -> None:
        """Write the tables of a workload; the file of an empty table is removed."""
        for name, columns in KINDS.items():
            path = folder / f"{workload}-{name}.csv"
            if getattr(self, name).empty:
                path.unlink(missing_ok=True)
                continue
            table = getattr(self, name)[columns].sort_values([key for key in ORDER if key in columns])
            table = table.assign(**{name: table[name].map(harmless) for name in TEXTS if name in table})
            with writing(path), whole(path) as partial:
                table.to_csv(partial, index=False, float_format=f"%.{DIGITS}g")

    def of(self, *strategies: str) -> Tables:
        """Return the tables of some strategies alone."""
        return self._where("strategy", strategies)

    def on(self, *problems: str) -> Tables:
        """Return the tables of the workloads with the given problems alone."""
        return self._where("problem", problems)

    def _where(self, column: str, kept: Sequence[str]) -> Tables:
        tables = {name: getattr(self, name) for name in KINDS}
        return replace(
            self,
            **{
                name: table[table[column].isin(kept)].reset_index(drop=True) for name, table in tables.items()
            },
        )

    def beside(self, other: Tables, where: Path) -> Tables:
        """Return the tables joined with another folder's; UserError if rules or entries clash."""
        for name in ("version", "points", "design_seeds", "final_seeds"):
            if getattr(self.rules, name) != getattr(other.rules, name):
                raise UserError(f"{where}: its rules have another {name}: entries cannot be compared")
        ours = {*self.rules.scenarios, *self.rules.held_out}
        theirs = (*other.rules.scenarios, *other.rules.held_out)
        if unknown := [frame for frame in theirs if frame not in ours]:
            place = ", ".join(getattr(unknown[0], name) for name in SCENARIO)
            raise UserError(f"{where}: {place} has another budget or targets, or is not on the board")
        if both := sorted({*self.entries} & {*other.entries}):
            raise UserError(
                f"{where}: there is an entry '{both[0]}' already: give the strategy another label"
            )
        joined = {
            name: pd.concat([getattr(self, name), getattr(other, name)], ignore_index=True) for name in KINDS
        }
        return replace(self, **joined)

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The strategies, in the order of the alphabet."""
        return tuple(sorted(set(self.points["strategy"])))

    @cached_property
    def scenarios(self) -> pd.MultiIndex:
        """Scenarios of the rules with tables for the workload, in the order of the rules."""
        return self._scenarios(self.rules.scenarios)

    @cached_property
    def held_out_scenarios(self) -> pd.MultiIndex:
        """Held-out scenarios of the workloads with tables."""
        return self._scenarios(self.rules.held_out)

    def _scenarios(self, frames: Iterable[Frame]) -> pd.MultiIndex:
        known = set(self.design["problem"])
        places = [(own.problem, own.partition, own.timing) for own in frames if own.problem in known]
        return pd.MultiIndex.from_tuples(places, names=SCENARIO)


def values(points: pd.DataFrame, problem: str, strategy: str) -> pd.DataFrame:
    """Return the parameters of a strategy's points on a problem, a column each."""
    own = points[(points["problem"] == problem) & (points["strategy"] == strategy)]
    own = own.set_index("point").sort_index()
    return pd.DataFrame([json.loads(text) for text in own["values"]], index=own.index)


def altered(folder: Path, rules: Rules) -> list[str]:
    """Return a line for each table missing, or different from the rules' digest."""
    there = {path.name: digest(path) for path in folder.glob("*.csv")}
    wrong = sorted(name for name in rules.files | there if rules.files.get(name) != there.get(name))
    return [f"{folder / name}: missing, or not the table of the rules' digest" for name in wrong]


def _joined(folder: Path, name: str) -> pd.DataFrame:
    paths, columns = sorted(folder.glob(f"*-{name}.csv")), KINDS[name]
    if not paths and name == "held_out":
        return pd.DataFrame(columns=columns)
    if not paths:
        raise UserError(f"{folder}: beside {FILE} there is no WORKLOAD-{name}.csv")
    return pd.concat([_read(path, columns) for path in paths], ignore_index=True)


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    try:
        table = pd.read_csv(
            BytesIO(reading.content(path)),
            dtype=dict.fromkeys(TEXTS, str),  # as they stand: a text may be empty, NA or 007
            keep_default_na=False,
            na_values={name: [""] for name in columns if name not in TEXTS},
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: this is no table of the leaderboard: {error}") from None
    if missing := [name for name in columns if name not in table]:
        raise UserError(f"{path}: this is no table of the leaderboard: there is no column '{missing[0]}'")
    try:
        table = table[columns].astype(
            {name: str if name in TEXTS else int if name in ("seed", "point") else float for name in columns}
        )
    except ValueError as error:
        raise UserError(f"{path}: this is no table of the leaderboard: {error}") from None
    table = table.assign(**{name: table[name].map(as_written) for name in TEXTS if name in table})
    twice = table.duplicated([name for name in ORDER if name in columns])
    below = (table.select_dtypes("number") < 0).any(axis=1)
    for wrong, rows in (("is there twice", twice), ("has a number below 0", below)):
        if rows.any():
            raise UserError(f"{path}: row {int(rows.argmax()) + 1} {wrong}")
    return table
