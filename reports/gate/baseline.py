"""Baseline of a suite: the results of all runs in a JSON file, for comparison with later runs.

`asyncfl check` takes one from the records (`take`), writes it, and reads it again.

Fixed: names of fields, digests of schedules, digits of golden values, and the checksum. They stand in stored
files, also in benchmarks/baselines/.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationError

from benchmarks import yaml_io
from benchmarks.errors import RUN_AGAIN, UserError, writing
from benchmarks.mlflow_store import parquet
from benchmarks.mlflow_store.artifact_locations import fetched
from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.suite import validation_errors
from benchmarks.suite.suite import PlannedRun
from fl_core import file_reading
from fl_core.metrics import FP_LOSS, LOSS
from fl_core.parts import Frozen
from fl_core.recorded_names import ARRIVALS, TRACEBACK, UPDATES, Status
from fl_core.recording.atomic import whole
from fl_core.text import many
from fl_core.user_code import digests, named
from reports.numbers import Measure, measure_of
from reports.records.suite_reader import load

SHIPPED = Path(__file__).parents[2] / "benchmarks" / "baselines"
ONE_BY_ONE = "one_by_one"  # the execution that repeats bit for bit
GOLDEN_AT = (0, 0.25, 0.5, 0.75, 1)  # fractions of a curve at which the loss is stored as a golden value
DIGITS = 9  # of a golden value, enough to tell any two float32 numbers apart


class GateGoal(Frozen):
    """The metric and target of a scenario."""

    metric: str
    higher: bool
    target: float | None
    title: str
    share: bool
    unit: str

    @property
    def measure(self) -> Measure:
        """Metric of the scenario, with title and unit."""
        return Measure(self.metric, self.title, self.higher, self.share, self.unit)


class BaselineRun(Frozen):
    """The result of a single run."""

    model_config = ConfigDict(allow_inf_nan=True)  # never is ∞; the loss of a diverged run may be NaN

    scenario: str
    strategy: str
    seed: int
    key: str  # the run's identity: a hash of its whole description
    status: Literal[Status.DONE, Status.DIVERGED, Status.STALLED]
    final: float  # of the goal's metric
    updates_to_target: float
    schedule: str  # digest of the arrivals
    evaluations: int  # without the evaluation of the initial model
    loss: tuple[tuple[int, float], ...]  # the golden values: number of updates, and the loss after them
    wall_seconds: float = Field(default=0.0, exclude=True)  # of computing; not in the file

    @property
    def finite(self) -> bool:
        """Whether the run ended with a finite metric."""
        return self.status.finite and isfinite(self.final)

    @property
    def end(self) -> int:
        """Updates at the last evaluation."""
        return self.loss[-1][0]

    def reached(self, longest: int = 0) -> float:
        """Return updates to the target; for a run that missed it, one evaluation more than the whole run.

        So means over seeds exist, restricted to the length of the runs (Royston & Parmar, 2013). A run that
        diverged or stalled would never have met the target: it counts up to `longest`, the longest run's end.
        """
        end = self.end if self.status is Status.DONE else max(self.end, longest)
        return min(max(self.updates_to_target, self.mark), end + self.mark)

    @property
    def mark(self) -> float:
        """Updates between evaluations: the precision of `updates_to_target`."""
        return max(1.0, self.end / max(1, self.evaluations))


class Acceptance(Frozen):
    """Changed results accepted into a baseline, with the commits of the code."""

    date: str
    commit: str  # of this package
    repository: str  # of the user's repository
    better: tuple[str, ...]  # improved quantities: by how much, and in how many seeds
    worse: tuple[str, ...] = ()  # quantities that got worse, in the same form
    reason: str = ""  # the user's reason for accepting worse results
    other: tuple[str, ...]  # strategies with other golden values or schedules, with seeds worse and better


class Baseline(Frozen):
    """All runs of a suite, with the simulation speed of strategies."""

    format: Literal[1] = 1
    suite: str
    commit: str  # of this package
    repository: str = ""  # commit of the repository in which the runs were started
    versions: dict[str, str]
    # Processor and device of all runs, computed one by one; empty if unknown or not the same for all: then
    # losses may differ by rounding when computed again.
    processor: str = ""
    goals: dict[str, GateGoal]  # by scenario
    # By strategy: updates a second over the yardstick's.
    speed: dict[str, float] = Field(default_factory=dict)
    accepted: tuple[Acceptance, ...] = ()  # the oldest first
    runs: tuple[BaselineRun, ...]
    first_runs: tuple[BaselineRun, ...] = ()  # of the first baseline; empty if equal to `runs`
    reference_runs: tuple[BaselineRun, ...] = ()  # accepted later as better or worse than the first
    settings: dict[str, str] = Field(default_factory=dict)  # non-default key → its values in all runs
    checksum: str = ""  # SHA-256 of all other fields; empty after the check

    def references(self) -> dict[str, BaselineRun]:
        """Return by key the reference runs for comparisons of quality."""
        return {run.key: run for run in (*self.runs, *self.first_runs, *self.reference_runs)}

    def repeats(self, baseline: Baseline) -> bool:
        """Return whether processor and libraries are equal: losses then agree to the last digit."""
        return bool(self.processor) and (self.processor, self.versions) == (
            baseline.processor,
            baseline.versions,
        )


def take(tracking_uri: str, planned: Sequence[PlannedRun]) -> Baseline:
    """Return the baseline of a suite's records, without speed; UserError if a run is incomplete.

    A note of the error is the traceback of a run that ended in error.
    """
    suite = planned[0].suite
    recorded = {run.key: run for run in load(tracking_uri, suite).runs}
    for state, missing in (
        ("finished", [run for run in planned if run.key not in recorded or not recorded[run.key].whole]),
        (
            "made by your code as it is now",
            [run for run in planned if _was_edited(recorded.get(run.key), run)],
        ),
    ):
        if missing:
            first = next((run for run in missing if _failed(recorded.get(run.key))), missing[0])
            record = recorded.get(first.key)
            error = UserError(
                f"suite '{suite}': {len(missing)} of {many(len(planned), 'run')} not recorded as {state}, "
                f"such as {first.strategy} · {first.scenario} · seed {first.experiment.seed}: "
                f"{_reason_missing(record)}"
            )
            error.add_note(_traceback(record, tracking_uri))
            raise error
    runs = [recorded[run.key] for run in planned]
    latest = max(runs, key=lambda run: run.started.timestamp() if run.started else 0.0)
    origins = {(run.processor, run.device, *sorted(run.versions.items())) for run in runs}
    alike = len(origins) == 1 and latest.processor and all(run.execution == ONE_BY_ONE for run in planned)
    return Baseline(
        suite=suite,
        commit=latest.commit,
        repository=latest.repository,
        versions=dict(latest.versions),
        processor=f"{latest.processor}, {latest.device}" if alike else "",
        goals={run.scenario: _goal(run) for run in runs},
        runs=tuple(_outcome(run, schedule(run, tracking_uri)) for run in runs),
        settings=settings(planned),
    )


def _failed(recorded: RunResult | None) -> bool:
    """Return whether a run is recorded as ended in error."""
    return recorded is not None and recorded.status is Status.ERROR


def _reason_missing(recorded: RunResult | None) -> str:
    """Return the reason why a run cannot be compared, and the remedy."""
    if recorded is not None and _failed(recorded):
        return f"{recorded.reason}. Correct this and run the suite again"
    if recorded is not None and recorded.files.unread:
        return f"{recorded.files.unread}; {RUN_AGAIN}"
    return "run it first with asyncfl run"


def _traceback(recorded: RunResult | None, tracking_uri: str) -> str:
    """Return the traceback of a run that ended in error; empty for other runs."""
    if recorded is not None and _failed(recorded):
        with fetched(recorded.artifact_uri, tracking_uri, [TRACEBACK]) as folder, suppress(OSError):
            return (folder / TRACEBACK).read_text(encoding="utf-8")
    return ""


def schedule(run: RunResult, tracking_uri: str) -> str:
    """Return a digest of a run's arrivals, equal on every machine; UserError if arrivals cannot be read."""
    try:
        with fetched(run.artifact_uri, tracking_uri, [ARRIVALS.file]) as folder:
            table = parquet.read(folder, ARRIVALS, list(ARRIVALS.columns))
    except parquet.UnreadableTableError as fault:
        raise UserError(f"run {run.run_id}: {fault}") from None
    text = hashlib.sha256()
    for name, kind in ARRIVALS.columns.items():
        text.update(np.ascontiguousarray(table[name].to_numpy(), f"<{kind}").tobytes())
    return text.hexdigest()[:16]


def _was_edited(recorded: RunResult | None, planned: PlannedRun) -> bool:
    """Return whether the user's code differs from the code of the recorded run."""
    current = named(planned.experiment.description())
    return recorded is not None and digests(recorded.code) != digests(current)


def _goal(run: RunResult) -> GateGoal:
    """Return metric and target of a run's scenario."""
    metric = measure_of(run, run.metric)
    return GateGoal(
        metric=metric.name,
        higher=bool(metric.higher),
        target=run.target,
        title=metric.title,
        share=metric.share,
        unit=metric.unit,
    )


def _losses(run: RunResult) -> Sequence[float]:
    """Return the curve of the federated loss, or of the closest recorded metric; lower is better."""
    curve = run.files.curve
    name = next((name for name in (FP_LOSS, LOSS.name) if name in curve), run.metric)
    sign = -1 if measure_of(run, name).higher else 1
    return [sign * value for value in curve[name]]


def _outcome(run: RunResult, schedule: str) -> BaselineRun:
    """Return the baseline's entry for a run."""
    updates, losses = run.files.curve[UPDATES], _losses(run)
    last = len(updates) - 1
    rows = sorted({round(part * last) for part in GOLDEN_AT})
    # With `evaluate: test` the training loss is NaN before the end
    golden = [at for at in rows if at == last or not isnan(losses[at])]
    return BaselineRun(
        scenario=run.scenario,
        strategy=run.strategy,
        seed=run.seed,
        key=run.key,
        status=run.status,
        final=run.final(run.metric),
        updates_to_target=run.time_to_target(UPDATES, run.target),
        schedule=schedule,
        evaluations=last,
        loss=tuple((int(updates[at]), float(f"{losses[at]:.{DIGITS}g}")) for at in golden),
        wall_seconds=run.seconds,
    )


def write(baseline: Baseline, path: Path) -> Path:
    """Write a baseline with each acceptance and each run on a line, for readable diffs."""
    complete = Baseline.model_validate(baseline.model_dump())  # sets every field, so all are in the checksum
    data = complete.model_dump(mode="json") | {"checksum": _checksum(complete)}
    lines = ",\n".join(f" {_json(key)}: {_lines(value)}" for key, value in data.items())
    with writing(path), whole(path) as partial:
        partial.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    return path


def read(path: Path) -> Baseline:
    """Read a baseline; UserError if the file is none."""
    try:
        text = file_reading.content(path)
        baseline = Baseline.model_validate_json(text)
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such baseline. Create it with asyncfl check SUITE --write --baseline {path}"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(map(str, first["loc"]))
        place = f"{path}{yaml_io.line_of(text, first['loc'])}"
        key = f"{location}: " if location else ""
        raise UserError(
            f"{place}: is not a baseline: {key}{validation_errors.reason(first)}. Name another"
        ) from None
    if baseline.checksum and baseline.checksum != _checksum(baseline):
        raise UserError(
            f"{path}: checksum mismatch: the file is corrupt or was edited. "
            "Write a new one with asyncfl check --write"
        )
    return baseline.model_copy(update={"checksum": ""})


def shipped(suite: str) -> Path:
    """Return the path of the suite's baseline in the package; UserError without a baseline."""
    path = SHIPPED / f"{suite}.json"
    if not path.is_file():
        raise UserError(
            f"asyncfl has no baseline of suite '{suite}'. Write one with asyncfl check SUITE --write "
            "--baseline FILE"
        )
    return path


def must_fit(baseline: Baseline, planned: Sequence[PlannedRun], path: Path) -> None:
    """Raise UserError unless the baseline consists of exactly the planned runs."""
    suite = planned[0].suite
    if baseline.suite != suite:
        raise UserError(f"{path}: is a baseline of suite '{baseline.suite}', not of '{suite}'. Name another")
    theirs = {run.key for run in baseline.runs}
    ours = {run.key for run in planned}
    if theirs != ours:
        new = next((run for run in planned if run.key not in theirs), None)
        such_as = f", such as {new.strategy} · {new.scenario} · seed {new.seed}" if new else ""
        raise UserError(
            f"{path}: is a baseline of other runs: suite '{suite}' lacks {len(theirs - ours)} of its "
            f"{len(theirs)} and has {len(ours - theirs)} more{such_as}. Write a new "
            "one with asyncfl check --write",
            *differences(baseline.settings, settings(planned)),
        )


def settings(planned: Sequence[PlannedRun]) -> dict[str, str]:
    """Return the settings of a suite other than defaults, with the values in all runs.

    Stored, to name changed settings in a message; with another form, all would count as changed.
    """
    values: dict[str, dict[str, None]] = {}  # in the order of the runs, each once
    for run in planned:
        for key, value in _flat(run.experiment.identity()):
            values.setdefault(key, {})[value if isinstance(value, str) else _json(value)] = None
    return {key: ", ".join(of_key) for key, of_key in values.items()}


def _flat(data: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and value of everything in nested mappings."""
    if isinstance(data, dict) and data:
        for name, value in data.items():
            yield from _flat(value, f"{key}.{name}" if key else str(name))
    else:
        yield key, data


def differences(earlier: dict[str, str], current: dict[str, str]) -> list[str]:
    """Return the changed settings, "lr: 0.2 → 0.1"; empty if the baseline has no recorded settings."""
    keys = dict.fromkeys((*earlier, *current)) if earlier else {}
    pairs = [(key, earlier.get(key, "default"), current.get(key, "default")) for key in keys]
    return [f"{key}: {then} → {today}" for key, then, today in pairs if then != today]


def must_have_spread(baseline: Baseline) -> None:
    """Raise UserError unless the baseline has at least two seeds, as needed for a spread over seeds."""
    if len({run.seed for run in baseline.runs}) < 2:
        raise UserError(
            f"suite '{baseline.suite}' has one seed, but a tolerance needs at least two. Set seeds: 2 or more"
        )


def _checksum(baseline: Baseline) -> str:
    """Return the SHA-256 of a baseline without its checksum."""
    optional = {"settings", "first_runs", "reference_runs"}  # files without them keep their checksum
    unset = {name for name in optional if not getattr(baseline, name)}
    rest = baseline.model_dump_json(exclude={"checksum"} | unset)
    return hashlib.sha256(rest.encode()).hexdigest()


def _lines(value: Any) -> str:
    """Return a value as JSON, with each element of a list on a line."""
    if not isinstance(value, list) or not value:
        return _json(value)
    return "[\n" + ",\n".join(f"  {_json(element)}" for element in value) + "\n ]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
