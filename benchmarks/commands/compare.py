"""`asyncfl compare`: comparison of two strategies of a recorded suite, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options, report
from benchmarks.errors import UserError
from benchmarks.terminal_output import print_text
from fl_core.recorded_names import CAMPAIGN, DEFAULT, STRATEGY_NAME, TO_TARGET, Clock, Name
from fl_core.text import nearest

if TYPE_CHECKING:
    from benchmarks.mlflow_store.run_result import RunResult
    from benchmarks.mlflow_store.store import Store
    from reports.comparisons import Comparison
    from reports.records.records import RecordedScenario, RecordedSuite


@click.command(short_help="Test two strategies against each other, paired over seeds.")
@click.argument("first", metavar="A", shell_complete=options.strategy_completions)
@click.argument("second", metavar="B", shell_complete=options.strategy_completions)
@click.option(
    "--suite",
    metavar="SUITE",
    shell_complete=options.suite_completions,
    help="Suite, by name or file.  [default: the only recorded one]",
)
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC",
    multiple=True,
    help="A recorded metric at the end of the runs, updates_to_target, time_to_target, bytes_to_target, "
    "energy_to_target, or auc, the mean over client updates. May be repeated.  [default: the "
    "suite's ranking metric and, if it has a target, time_to_target]",
)
@click.option("--scenario", metavar="TEXT", help="Only scenarios with TEXT in their name.")
@options.store
def command(
    *,
    first: str,
    second: str,
    suite: str | None,
    metrics: tuple[str, ...],
    scenario: str | None,
    store: Store,
) -> None:
    """Compare two strategies: which is ahead, by how much, and how certain this is.

    Everything is read from MLflow, paired over seeds. Of several scenarios
    the intervals hold at 95 % together (Bonferroni), and p is adjusted, too
    (Holm).
    """
    from reports.comparison_text import answer

    recorded = load(store, suite, (first, second))
    pair, scenarios = choose(recorded, first, second, scenario)
    for metric in metrics or _usual(scenarios):
        asked = with_metric(scenarios, metric)
        comparisons = in_each(asked, pair, metric)
        click.secho(f"{pair[0]} and {pair[1]}, {_title(asked[0], metric)}", bold=True)
        tests = max(comparison.tests for comparison in comparisons)
        adjusted = (
            f"; adjusted for {tests} scenarios: intervals hold at 95 % together (Bonferroni); "
            "p is Holm’s, which may show a difference where the interval does not"
        )
        print_text(f"Paired over seeds{adjusted if tests > 1 else ', interval of 95 %'}")
        print_text(
            "The p-value is valid for two strategies that were chosen before their results were "
            "seen; for a pair chosen by its results it overstates the evidence. The seeds that "
            "would decide are for a power of 80 %, if the true difference is the measured one."
        )
        for comparison in comparisons:
            click.secho(f"\n{comparison.scenario}", bold=True)
            for line in answer(comparison, *pair):
                print_text(line, "  ")
        if len(asked) < len(scenarios):
            click.echo("")
            print_text(
                f"Not compared in {', '.join(place.label for place in scenarios if place not in asked)}."
            )
        click.echo("")


def in_each(scenarios: Sequence[RecordedScenario], pair: tuple[str, str], metric: str) -> list[Comparison]:
    """Return a comparison for each scenario and, where meaningful, for the mean over all scenarios."""
    from reports.comparisons import compare, overall

    comparisons = compare(scenarios, *pair, metric)
    mean = overall(scenarios, comparisons)
    return [*comparisons, *([mean] if mean else [])]


def _usual(scenarios: Sequence[RecordedScenario]) -> list[str]:
    """Return the default metrics: the ranking metric and, with a target, the time to target."""
    ranked = scenarios[0].columns[0].name
    return [
        ranked,
        *([Clock.TIME.to_target] if any(scenario.target is not None for scenario in scenarios) else []),
    ]


def _title(scenario: RecordedScenario, metric: str) -> str:
    from reports.comparisons import AREA, measured

    if metric in TO_TARGET:
        return f"{measured(scenario, metric).title} until the target is met"
    return measured(scenario, metric).in_text + ("" if metric == AREA else " at the end")


def load(store: Store, suite: str | None, names: tuple[str, str]) -> RecordedSuite:
    """Return the runs of the given or only suite, with curves of the named strategies alone.

    Raises:
        UserError: There are no runs, or none can be read.
    """
    from benchmarks.mlflow_store.reader import reading

    folded = {name.casefold() for name in names}

    def may_be_meant(run: RunResult) -> bool:
        return bool(folded & {spelling.casefold() for spelling in _spellings(run)})

    if suite is None:
        store.must_exist()
        with reading(store.tracking_uri) as reader:
            recorded = [
                name for name in reader.experiments() if name != DEFAULT and not name.endswith(CAMPAIGN)
            ]
        if not recorded:
            raise UserError(
                f"no runs in {store.tracking or store.folder}. Run a suite with asyncfl run SUITE"
            )
        if len(recorded) > 1:
            raise UserError(f"choose a suite with --suite. Recorded: {', '.join(recorded)}")
        suite = recorded[0]
    return report.load(store, suite, files_of=may_be_meant, curves_only=True)


def _spellings(run: RunResult) -> tuple[str, str, str]:
    """Return the spellings of a run's strategy: label, title, and name in suite files."""
    return run.strategy, run.strategy.partition(" (")[0], run.params.get(STRATEGY_NAME, "")


def _strategy(suite: RecordedSuite, name: str) -> str:
    """Return the label of a strategy given by label, title or name; UserError if unknown or ambiguous."""
    labels = suite.strategies
    written = {run.strategy: _spellings(run) for run in suite.runs}
    spellings = {label: written[label] for label in labels}
    if name in labels:
        return name
    for way in zip(*spellings.values(), strict=True):  # all labels, then all titles, then all names
        alike = [
            label
            for label, spelling in zip(labels, way, strict=True)
            if spelling.casefold() == name.casefold()
        ]
        if len(alike) == 1:
            return alike[0]
        if alike:
            raise UserError(f"ambiguous strategy '{name}': give one of {', '.join(alike)}")
    raise _unknown("strategy", name, labels)


def choose(
    suite: RecordedSuite, first: str, second: str, text: str | None
) -> tuple[tuple[str, str], list[RecordedScenario]]:
    """Return the labels of both strategies, and the scenarios matching a text with runs of both.

    Raises UserError if no scenario matches, or none has runs of both.
    """
    pair = _strategy(suite, first), _strategy(suite, second)
    if pair[0] == pair[1]:
        raise UserError(f"cannot compare {pair[0]} with itself. Name two different strategies")
    everywhere = suite.scenarios()
    matching = [
        scenario for scenario in everywhere if text is None or text.casefold() in scenario.label.casefold()
    ]
    if not matching:
        raise _unknown("scenario", str(text), [scenario.label for scenario in everywhere])
    common = [scenario for scenario in matching if set(pair) <= {cell.strategy for cell in scenario.cells}]
    if not common:
        raise UserError(f"no scenario has runs of both {' and '.join(pair)}. Run both in one suite")
    return pair, common


def with_metric(scenarios: Sequence[RecordedScenario], metric: str) -> list[RecordedScenario]:
    """Return the scenarios with the metric available; UserError without any."""
    from reports.comparisons import AREA

    if metric in TO_TARGET:
        with_target = [scenario for scenario in scenarios if scenario.target is not None]
        clock = TO_TARGET[metric]
        if not with_target:
            raise UserError(
                f"--metric {metric}: the suite has no target. Set problem.target and run it again"
            )
        if not any(clock in run.files.curve for scenario in with_target for run in scenario.runs):
            raise UserError(
                f"--metric {metric}: the runs did not record {clock.words}. Choose another metric"
            )
        return with_target
    recorded = {name for scenario in scenarios for run in scenario.runs for name in run.ends}
    allowed = sorted(recorded - {*Clock, Name.UPLOADS, Name.DOWNLOADS, Name.TOKENS})
    if metric != AREA and metric not in allowed:
        raise _unknown("--metric", metric, [*allowed, *TO_TARGET, AREA])
    return [
        scenario
        for scenario in scenarios
        if metric == AREA or any(metric in run.ends for run in scenario.runs)
    ]


def _unknown(kind: str, name: str, allowed: Sequence[str]) -> UserError:
    available = ", ".join(allowed) or "none"
    return UserError(f"{kind} '{name}' is not recorded{nearest(name, allowed)} Available: {available}")
