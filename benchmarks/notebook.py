"""The commands as functions, for notebooks and scripts; results are tables of pandas.

from benchmarks import notebook

runs = notebook.run("quickstart")        # computes what is left; one row a run
runs.groupby(["scenario", "strategy"])["test/accuracy"].mean()
runs.to_parquet("quickstart.parquet")
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import UserError, warn
from benchmarks.tracking.store import Store
from fl_core.experiment import Experiment
from fl_core.recording.recorder import Record
from fl_core.recording.recorder import run as record_run
from fl_core.words import many

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from reports.figures.svg import Drawing
    from reports.records.records import RecordedSuite


def run(
    suite: str,
    *settings: str,
    scale: str | None = None,
    tuned: bool = False,
    store: str | Path | None = None,
    tracking_uri: str | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Compute what is left of a suite, record it in MLflow, and return its results, as `asyncfl run` does.

    `suite` is the name of a shipped one, or a YAML file; `settings` are `KEY=VALUE`. The table is that of
    `results`. Raises UserError for mistakes in the suite, and if MLflow cannot be reached.
    """
    from benchmarks import engine
    from benchmarks.runs.progress import display
    from benchmarks.runs.session import Session
    from benchmarks.suite.suite import load

    place = _store(store, tracking_uri)
    session = Session(load(suite, settings, scale, tuned or None), place)
    computes = engine.engine("local", None, workers)
    computes.warm_up("benchmarks.runs.jobs")
    with _alone():
        session.run(computes, lambda tasks: display(tasks, quiet=not progress))
    if session.away:
        raise UserError(f"the runs are kept in {place.outbox}, but MLflow does not have them: {session.away}")
    if session.now["error"]:
        warn(f"{many(session.now['error'], 'run')} ended in error; see the column 'reason'")
    return results(session.suite.name, store=store, tracking_uri=tracking_uri)


def results(suite: str, *, store: str | Path | None = None, tracking_uri: str | None = None) -> pd.DataFrame:
    """What is recorded under a suite's name: one row a run, its labels, status and all metrics at its end.

    Raises UserError if nothing is.
    """
    from reports.records import frames

    return frames.runs(_recorded(suite, store, tracking_uri))


def curves(suite: str, *, store: str | Path | None = None, tracking_uri: str | None = None) -> pd.DataFrame:
    """The learning curves of all recorded runs: one row an evaluation, with the three clocks.

    Raises UserError if nothing is recorded.
    """
    from reports.records import frames

    return frames.curves(_recorded(suite, store, tracking_uri))


def figures(
    suite: str, *, store: str | Path | None = None, tracking_uri: str | None = None
) -> dict[str, Drawing]:
    """The learning curves as the report page draws them, by metric, clock and scenario.

    A notebook shows them; `save` writes one as .svg or .pdf. Raises UserError if nothing is recorded.
    """
    from reports.sections import curves as section
    from reports.sections.section import Results

    found = section.section(Results.of(_recorded(suite, store, tracking_uri)))
    return dict(found.figures) if found else {}


@dataclass(frozen=True, slots=True)
class Simulated:
    """One run that was computed here and recorded nowhere."""

    experiment: Experiment
    record: Record

    def frame(self) -> pd.DataFrame:
        """The learning curve: one row an evaluation, with the three clocks."""
        import pandas as pd

        return pd.DataFrame(self.record.curve)

    def plot(self, metric: str = "", clock: str = "time", ax: Axes | None = None) -> Axes:
        """A metric, if none is named the one that ranks, against `time`, `updates` or `iteration`.

        With `ax`, several runs share a figure.
        """
        from reports.records.records import CLOCKS

        name = metric or self.experiment.scenario.problem.metric
        known = {one.name: one for one in self.experiment.scenario.problem.recorded()}
        return self.frame().plot(
            x=clock,
            y=name,
            xlabel=CLOCKS[clock],
            ylabel=known[name].title if name in known else name,
            label=self.experiment.strategy.label(),
            marker=".",
            ax=ax,
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the strategy, how the run ended, and its last evaluation."""
        strategy, record = self.experiment.strategy.label(), self.record
        said = f"{strategy}, seed {self.experiment.seed}: {record.status} ({record.reason})"
        return f"<p>{escape(said)}</p>{self.frame().tail(1).to_html(index=False)}"


def simulate(experiment: Experiment | Mapping[str, Any]) -> Simulated:
    """Run one experiment in this process; a mapping has the keys scenario, strategy and seed.

    Raises pydantic's ValidationError for mistakes in it.
    """
    valid = Experiment.model_validate(experiment)
    return Simulated(valid, record_run(valid))


@contextmanager
def _alone() -> Iterator[None]:
    """Worker processes do not import the script or notebook that called: jobs carry all that they need."""
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
    """The same as that of the commands, unless a folder is named."""
    return Store(Path(folder or os.environ.get("ASYNCFL_STORE") or Store().folder), tracking_uri)


def _recorded(suite: str, folder: str | Path | None, tracking_uri: str | None) -> RecordedSuite:
    from benchmarks.suite.shipped import recorded_name
    from reports.records.store import load

    store = _store(folder, tracking_uri)
    store.must_exist()
    found = load(store.tracking_uri, recorded_name(suite))
    if not found.runs:
        raise UserError(f"no run of a suite '{found.name}' is recorded in {tracking_uri or store.folder}")
    return found
