"""`asyncfl replay`: check of the simulator against recorded runs in real time.

Fixed: exit code 1 for any difference. Free: tables and wording.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options
from benchmarks.errors import UserError, summarised
from benchmarks.terminal_output import print_headed
from fl_core.recorded_names import (
    EVENTS,
    JOBS,
    MODEL,
    SLIPS,
    TIME,
    WALL,
    Clock,
    Kind,
    Name,
    Status,
    Tag,
    Total,
)

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.mlflow_store.run_result import RunResult
    from benchmarks.mlflow_store.store import Store
    from fl_core.live.replay import ReplayComparison

DESCRIPTION = "description.json"
COLUMNS = (  # of a comparison with runs in virtual time
    "scenario",
    "strategy",
    "runs",
    "time, real / virtual",
    "to target, real / virtual",
    "staleness, virtual",
    "staleness, real",
    "participation moved",
    "final, virtual",
    "final, real",
    "server busy",
)


@click.command(short_help="Simulate a run in real time from its log, and compare.")
@click.argument("run", metavar="RUN")
@click.option(
    "--beside", metavar="SUITE", help="Replay nothing; compare with SUITE, which ran in virtual time."
)
@options.allow_code
@options.store
@options.data_dir
def command(run: str, store: Store, beside: str | None) -> None:
    """Simulate RUN, a run in real time, from its log, and compare all events and the model.

    RUN is the key or MLflow's id of a run, the name of a suite of them, such as quickstart-live-100ms, or
    the file run.live of a run in Flower. Exit code 1 if anything differs, or a run cannot be replayed.
    """
    if beside is not None:
        print_headed(COLUMNS, differences(run, beside, store))
        return
    import torch

    torch.set_num_threads(1)  # as the clients' processes
    if Path(run).is_file():
        compared = of_file(Path(run))
        click.echo(f"{run}: {compared}")
        sys.exit(0 if compared.equal else 1)
    equal = True
    for entry in runs(run, store):
        same, outcome = _outcome(entry, store)
        equal &= same
        name = " · ".join(entry.tags.get(tag, "") for tag in (Tag.STRATEGY, Tag.SCENARIO))
        click.echo(f"{name} · seed {entry.tags.get(Tag.SEED, '')}: {outcome}")
    sys.exit(0 if equal else 1)


def _outcome(entry: RunResult, store: Store) -> tuple[bool, str]:
    """Return whether a run equals the replay, with the comparison or the error in words."""
    if entry.tags.get(Tag.STATUS) == Status.ERROR:
        return False, "ended in error, it left no log"
    try:
        compared = replayed(entry, store)
    except UserError as error:
        return False, str(error)
    return compared.equal, str(compared)


def of_file(path: Path) -> ReplayComparison:
    """Replay the run saved in a file; UserError if the run cannot be read or replayed."""
    from fl_core.import_guard import guarded, not_own
    from fl_core.live.run import SavedRun

    with _errors_of(str(path), " as a run.live of Flower"), guarded(not_own(path)):
        return SavedRun.unpack(path.read_bytes()).replay()


@contextmanager
def _errors_of(run: str, kind: str = "") -> Iterator[None]:
    """Raise any error as UserError about the run: a damaged log may lead the simulation anywhere."""
    from pydantic import ValidationError

    from benchmarks.suite.validation_errors import reason

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(f"{run} cannot be replayed: {place}: {reason(first)}") from None
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{run} cannot be replayed{kind}: {summarised(error)}") from error


def runs(name: str, store: Store) -> list[RunResult]:
    """Return runs in real time by key, id or suite, the oldest first; UserError without any."""
    from benchmarks.mlflow_store.reader import reading

    store.must_exist()
    with reading(store.tracking_uri) as reader:
        suites = reader.experiments()
        chosen = [suites[name]] if name in suites else suites.values()
        entries = [entry for suite in chosen for entry in reader.results(suite.id)]
    entries = [entry for entry in entries if entry.tags.get(Tag.KIND) == Kind.RUN]
    if name not in suites:
        entries = [entry for entry in entries if name in (entry.run_id, entry.tags.get(Tag.KEY))]
    if not entries:
        raise UserError(
            f"no run or suite '{name}' is recorded in {store.tracking or store.folder}. Name another --store"
        )
    live = [entry for entry in entries if entry.tags.get(Tag.CLOCK) == WALL]
    if not live:
        raise UserError(f"{name} ran in virtual time, so it has no log to replay. Name a run of asyncfl live")
    return sorted(live, key=lambda entry: entry.start_time)


def replayed(entry: RunResult, store: Store) -> ReplayComparison:
    """Replay a recorded run; UserError if the log cannot be read or replayed."""
    from benchmarks.mlflow_store import parquet
    from benchmarks.mlflow_store.artifact_locations import fetched, place
    from fl_core.experiment import Experiment
    from fl_core.import_guard import guarded, not_own
    from fl_core.live.replay import replay

    tables = (JOBS, EVENTS, SLIPS, MODEL)
    names = [DESCRIPTION, *(table.file for table in tables)]
    local = place(entry.artifact_uri, store.tracking_uri)
    refusal = not_own(local / DESCRIPTION) if local else "MLflow's record names it"
    with _errors_of(f"run {entry.run_id}"):
        with fetched(entry.artifact_uri, store.tracking_uri, names) as folder:
            description = json.loads((folder / DESCRIPTION).read_bytes())
            with guarded(refusal):
                experiment = Experiment.model_validate(description)
            frames = [parquet.read(folder, table).astype(object) for table in tables]
        jobs, events, slips, model = (
            {str(name): column.tolist() for name, column in frame.where(frame.notna(), None).items()}
            for frame in frames
        )
        return replay(experiment, jobs, events, slips, model.get(Name.MODEL, []))


def differences(real: str, virtual: str, store: Store) -> list[Sequence[str]]:
    """Return a row for each strategy of each scenario, from seeds with updates in both times.

    Ratios and values are means over runs with standard deviations. "Participation moved" is half the sum of
    differences between the clients' shares of all updates, from 0 to 1.

    Raises:
        UserError: The first suite ran in virtual time, or no run with updates ended in both.
    """
    from benchmarks.commands.report import load

    lived, simulated = (
        {
            place_of(run): run
            for run in load(store, name).runs
            if run.whole and Total.STALENESS_MEAN in run.metrics
        }
        for name in (real, virtual)
    )
    if not all(Total.SERVER_BUSY in run.metrics for run in lived.values()):
        raise UserError(f"{real} ran in virtual time: name a suite that asyncfl live recorded")
    if not lived.keys() & simulated.keys():
        raise UserError(f"{real} and {virtual} have no run of the same scenario, strategy and seed")
    pairs: dict[tuple[str, str], list[tuple[RunResult, RunResult]]] = {}
    for at in lived.keys() & simulated.keys():
        pairs.setdefault(at[:2], []).append((lived[at], simulated[at]))
    return [(*at, *_row(pairs[at])) for at in sorted(pairs)]


def place_of(run: RunResult) -> tuple[str, str, int]:
    """Return scenario, strategy and seed of a run, shared with the run in the other time."""
    return run.scenario, run.strategy, run.seed


def _row(pairs: Sequence[tuple[RunResult, RunResult]]) -> list[str]:
    """Return the texts of a strategy's row in `COLUMNS`, from pairs of runs in real and virtual time."""
    to_target = Clock.TIME.to_target
    reached = [pair for pair in pairs if all(to_target in run.metrics for run in pair)]
    reals, virtuals = zip(*pairs, strict=True)
    return [
        str(len(pairs)),
        _text(_ratios((real.final(TIME), virtual.final(TIME)) for real, virtual in pairs)),
        _text(_ratios((real.metrics[to_target], virtual.metrics[to_target]) for real, virtual in reached)),
        *(_text([run.metrics[Total.STALENESS_MEAN] for run in runs]) for runs in (virtuals, reals)),
        _text([_moved(*(run.files.participation for run in pair)) for pair in pairs]),
        *(_text([run.final(run.metric) for run in runs]) for runs in (virtuals, reals)),
        _text([real.metrics[Total.SERVER_BUSY] for real in reals]),
    ]


def _ratios(times: Iterable[tuple[float, float]]) -> list[float]:
    """Return ratios of real to virtual times, without virtual times of 0 (first model meets the target)."""
    return [real / virtual for real, virtual in times if virtual]


def _moved(real: np.ndarray, virtual: np.ndarray) -> float:
    import numpy as np

    size = max(len(real), len(virtual))
    shares = [np.pad(counts, (0, size - len(counts))) / counts.sum() for counts in (real, virtual)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _text(values: Sequence[float]) -> str:
    """Return a mean with the standard deviation as text; empty without values."""
    if not values:
        return ""
    spread = f" ± {stdev(values):.2g}" if len(values) > 1 else ""
    return f"{mean(values):.3g}{spread}"
