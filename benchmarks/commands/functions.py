"""The commands as functions with pandas tables as results: `asyncfl.run`, `asyncfl.results` and others.

`asyncfl/__init__.py` exports them.

Fixed: names, parameters and columns of tables, which are public.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from math import nan
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from benchmarks.errors import UserError, users_mistake, warn
from benchmarks.mlflow_store.store import Store
from fl_core.recorded_names import Clock, Status
from fl_core.text import many, unknown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from fl_core.experiment import Experiment
    from fl_core.recording.recorder import Record
    from reports.figures.svg import Drawing
    from reports.records.records import RecordedSuite

SIMULATING = RLock()  # for torch's global generator and number of threads, which all threads share


def run(
    suite: str,
    *settings: str,
    scale: str | None = None,
    tuned: bool | str | Path = False,
    store: str | Path | None = None,
    tracking_uri: str | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Compute and record in MLflow the remaining runs of a suite, like `asyncfl run`; return the results.

    `suite` is the name of a shipped one, or a YAML file; `settings` are `KEY=VALUE`; `tuned` is True for the
    values that `tune` found for the suite, or the file that holds them. The table is that of `results`.
    Raises UserError for mistakes in the suite, and if MLflow cannot be reached.
    """
    from benchmarks import engine
    from benchmarks.runs.progress import display
    from benchmarks.runs.session import Session
    from benchmarks.suite.suite import load

    place = _store(store, tracking_uri)
    values = tuned if isinstance(tuned, bool) else Path(tuned)
    session = Session(load(suite, settings, scale, values or None), place)
    computes = engine.engine("local", None, workers)
    computes.warm_up("benchmarks.runs.run_jobs")
    with _alone(), _mistakes():
        session.run(computes, lambda tasks: display(tasks, quiet=not progress))
    if session.pending_records:
        waiting_reason = session.pending_reason
        raise UserError(
            f"the runs are not in MLflow: {waiting_reason}. They are kept in {place.outbox}: "
            "send them with asyncfl sync"
        )
    if session.statuses[Status.ERROR]:
        warn(f"{many(session.statuses[Status.ERROR], 'run')} ended in error; see the column 'reason'")
    return results(session.suite.name, store=store, tracking_uri=tracking_uri)


def results(suite: str, *, store: str | Path | None = None, tracking_uri: str | None = None) -> pd.DataFrame:
    """Return the recorded results of a suite: a row for each run, with labels, status and final metrics.

    Raises UserError if nothing is recorded.
    """
    from reports.records.records import run_table

    return run_table(_recorded(suite, store, tracking_uri, curves_only=True))


def curves(suite: str, *, store: str | Path | None = None, tracking_uri: str | None = None) -> pd.DataFrame:
    """Return the learning curves of all recorded runs: a row for each evaluation, with the clocks.

    Raises UserError if nothing is recorded.
    """
    from reports.records.records import curve_table

    return curve_table(_recorded(suite, store, tracking_uri, curves_only=True))


def clients(suite: str, *, store: str | Path | None = None, tracking_uri: str | None = None) -> pd.DataFrame:
    """Return the records of all clients: a row for each client and run.

    The column `device` has the ids of a trace with names. Raises UserError if nothing is recorded.
    """
    from reports.records.records import client_table

    return client_table(_recorded(suite, store, tracking_uri))


def figures(
    suite: str, *, store: str | Path | None = None, tracking_uri: str | None = None
) -> dict[str, Drawing]:
    """Return the learning curves as on the report page, by metric, clock and scenario.

    A notebook shows them; `save` writes one as .svg or .pdf. Raises UserError if nothing is recorded.
    """
    from reports.sections import curves as section
    from reports.sections.section import Results

    drawn = section.section(Results.of(_recorded(suite, store, tracking_uri)))
    return dict(drawn.figures) if drawn else {}


def compare(
    first: str,
    second: str,
    suite: str | None = None,
    *,
    metric: str | None = None,
    scenario: str | None = None,
    store: str | Path | None = None,
    tracking_uri: str | None = None,
) -> pd.DataFrame:
    """Compare two strategies of a recorded suite, paired over seeds: a row for each scenario, then the mean.

    `suite` may be left out where one alone is recorded; `metric` is by default the one that ranks the suite;
    `scenario` is a text in the names of scenarios. The columns: the value of each strategy, `ahead`, the mean
    difference by which the first is ahead, `low` and `high`, its interval of 95 % (for all scenarios
    together; NaN where none can be given), `p`, adjusted, `seeds`, and `answer`, all of it in words. Where a
    value is not finite, such as the time to a target that was not reached, values are medians, and there is
    no difference. Raises UserError if suite, strategies, scenario or metric is missing.
    """
    import pandas as pd

    from benchmarks.commands import compare as command
    from reports.comparison_text import answer

    recorded = command.load(_store(store, tracking_uri), suite, (first, second))
    pair, scenarios = command.choose(recorded, first, second, scenario)
    asked = metric or scenarios[0].columns[0].name
    rows = []
    for comparison in command.in_each(command.with_metric(scenarios, asked), pair, asked):
        effect = comparison.effect
        values = (nan, nan)
        if comparison.pairs:
            values = comparison.means if effect else comparison.medians
        rows.append(
            {
                "scenario": comparison.scenario,
                "metric": asked,
                **dict(zip(pair, values, strict=True)),
                "ahead": effect.mean if effect else nan,
                "low": effect.bounds[0] if effect else nan,
                "high": effect.bounds[1] if effect else nan,
                "p": comparison.p,
                "seeds": len(comparison.pairs),
                "answer": " ".join(answer(comparison, *pair)),
            }
        )
    return pd.DataFrame(rows)


def tune(
    suite: str,
    *settings: str,
    scale: str | None = None,
    out: str | Path | None = None,
    storage: str | None = None,
    store: str | Path | None = None,
    tracking_uri: str | None = None,
    workers: int | None = None,
) -> pd.DataFrame:
    """Search for learning rates and other tuned parameters, like `asyncfl tune`, and write the results.

    `settings` are `KEY=VALUE`, such as `tuning.trials=30`; `out` is the file of tuned values, by default
    where `run(suite, tuned=True)` looks for it, and with settings of the suite itself
    `STORE/tuned-SUITE.yaml`; `storage` keeps the trials, by default `STORE/tuning.journal`. One row a
    scenario and strategy: value and spread of the objective over seeds, `before`, its value with the suite's
    own rates, and the parameters. Raises UserError for mistakes in the suite.
    """
    import pandas as pd

    from benchmarks import engine
    from benchmarks.commands import tune as command

    campaign = command.planned(suite, settings, scale)
    computes = engine.engine("local", None, workers)
    driver = command.driver_of(campaign, computes, _store(store, tracking_uri), storage)
    with _alone(), _mistakes():
        driver.run(computes, lambda ended: None)
    columns_shown = ("scenario", "strategy", "value", "spread", "before")
    entries = command.keep(driver, Path(out) if out else None, settings)[0].tuned
    return pd.DataFrame(
        [{name: getattr(entry, name) for name in columns_shown} | entry.parameters for entry in entries],
        columns=None if entries else columns_shown,
    )


def report(
    suite: str,
    *,
    files: str | Path | None = None,
    store: str | Path | None = None,
    tracking_uri: str | None = None,
) -> Path:
    """Write the report page of a recorded suite and, into `files`, figures and tables for a paper.

    Returns the page's path; where an older page shows more runs than can be read now, that is kept and the
    new one lies beside it. Raises UserError if nothing is recorded, or a file cannot be written.
    """
    from benchmarks.commands import report as command

    recorded = _recorded(suite, store, tracking_uri)
    if files is not None:
        command.write_files(recorded, Path(files))
    return command.page_of(recorded, _store(store, tracking_uri))


@dataclass(frozen=True, slots=True, repr=False)
class Simulated:
    """A run computed in the calling process and not recorded."""

    experiment: Experiment
    record: Record

    def frame(self) -> pd.DataFrame:
        """Return the learning curve: a row for each evaluation, with the clocks."""
        import pandas as pd

        return pd.DataFrame(self.record.curve)

    def plot(self, metric: str = "", clock: str = "time", ax: Axes | None = None) -> Axes:
        """Plot a metric, by default the ranking metric, against `time`, `updates`, `iteration` or `bytes`.

        With `ax`, several runs share a figure. Raises UserError for another metric or clock.
        """
        name = metric or self.experiment.scenario.problem.metric
        metrics = {metric.name: metric for metric in self.experiment.scenario.problem.recorded()}
        curve = self.frame()
        for kind, value, allowed in (("metric", name, list(map(str, curve))), ("clock", clock, [*Clock])):
            if value not in allowed:
                raise UserError(unknown(kind, value, allowed))
        return curve.plot(
            x=clock,
            y=name,
            xlabel=Clock(clock).words,
            ylabel=metrics[name].title if name in metrics else name,
            label=self.experiment.strategy.label(),
            marker=".",
            ax=ax,
        )

    def __repr__(self) -> str:
        """Return the strategy and the end of the run, in words."""
        strategy, record = self.experiment.strategy.label(), self.record
        return f"{strategy}, seed {self.experiment.seed}: {record.status} ({record.reason})"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: strategy, end of the run, and last evaluation."""
        return f"<p>{escape(repr(self))}</p>{self.frame().tail(1).to_html(index=False)}"


def simulate(experiment: Experiment | Mapping[str, Any]) -> Simulated:
    """Run an experiment in the calling process; a mapping has the keys scenario, strategy and seed.

    It computes with one thread, as workers do; calls in several threads wait for each other, since first
    models are drawn from torch's global generator. Raises UserError for mistakes in it.
    """
    from pydantic import ValidationError

    from benchmarks.device import one_thread
    from benchmarks.suite.validation_errors import lines_of
    from fl_core.experiment import Experiment
    from fl_core.recording.recorder import run as record_run

    with SIMULATING:
        try:
            valid = Experiment.model_validate(experiment)
        except ValidationError as error:
            document = cast(dict[str, Any], experiment)
            raise UserError(*lines_of("experiment", error, Experiment, document)) from None
        with one_thread(), _mistakes():
            return Simulated(valid, record_run(valid))


@contextmanager
def _mistakes() -> Iterator[None]:
    """Convert errors fixable by the user, like an invalid problem, into UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if lines := users_mistake(error):
            raise UserError(*lines) from None
        raise


@contextmanager
def _alone() -> Iterator[None]:
    """Keep worker processes from importing the caller's script, and so from running the script again."""
    main = vars(sys.modules["__main__"])
    spec, file = main.get("__spec__"), main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main["__spec__"] = spec
        if file is not None:
            main["__file__"] = file


def _store(folder: str | Path | None, tracking_uri: str | None) -> Store:
    """Return the store in a folder, by default the store of the commands."""
    return Store(Path(folder or os.environ.get("ASYNCFL_STORE") or Store().folder), tracking_uri)


def _recorded(
    suite: str, folder: str | Path | None, tracking_uri: str | None, *, curves_only: bool = False
) -> RecordedSuite:
    from benchmarks.commands.report import load

    return load(_store(folder, tracking_uri), suite, curves_only=curves_only)
