"""`asyncfl show`: what a suite expands to, before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchmarks.commands import options
from benchmarks.errors import UserError, users_mistake
from benchmarks.tables import print_table, print_text
from fl_core.text import duration, many

if TYPE_CHECKING:
    from benchmarks.suite.suite import PlannedRun


@click.command(short_help="Show the runs of SUITE, and how long they will take.")
@options.suite
@options.allow_code
@options.scale
@options.settings
@options.data_dir
def command(suite: str, scale: str | None, settings: tuple[str, ...]) -> None:
    """Show the runs that SUITE expands to, and how long they will take."""
    from benchmarks.suite import labels, summary
    from benchmarks.suite.suite import load

    loaded = load(suite, settings, scale)
    runs = loaded.runs()
    scenarios = list(dict.fromkeys(run.scenario for run in runs))
    shared, strategies = summary.strategies(runs)
    print_text(": ".join(filter(None, [loaded.name, loaded.spec.description.strip()])))
    if loaded.scale:
        click.echo(f"Scale: {loaded.scale}")
    if loaded.spec.paper:
        click.echo(f"Paper: {loaded.spec.paper}")
    if loaded.grid:
        click.echo("\nGrid")
        rows = [(axis, " | ".join(map(labels.value, values))) for axis, values in loaded.grid.items()]
        print_table(("key", "values"), rows)
    click.echo("\nScenarios")
    for label in scenarios:
        print_text(label)
    click.echo()
    print_text(f"Strategies, all with {shared}" if shared else "Strategies")
    print_table(("strategy", "hyper-parameters"), strategies)
    click.echo()
    each = f"{loaded.spec.budget.label()}, {many(loaded.spec.evaluations, 'evaluation')}"
    print_text(f"Each run: {each}; seeds {', '.join(map(str, loaded.spec.seeds))}")
    per_scenario = f"{many(len(strategies), 'strategy')} × {many(len(loaded.spec.seeds), 'seed')}"
    click.echo(f"Runs: {many(len(scenarios), 'scenario')} × {per_scenario} = {len(runs):,}")
    print_text(_prospect(runs))


def _prospect(runs: list[PlannedRun]) -> str:
    """Return a line on how long the runs take.

    Raises:
        InvalidProblemError, UserError: The runs cannot run.
    """
    from benchmarks import device
    from benchmarks.runs import estimate
    from fl_core.problems.problem import InvalidProblemError

    try:
        for problem, seed in {run.experiment.scenario.problem: run.experiment.seed for run in runs}.items():
            problem.check(seed)
            for remark in problem.remarks(seed):
                print_text(remark)
        for strategy in {repr(run.experiment.strategy): run.experiment.strategy for run in runs}.values():
            for remark in strategy.remarks():
                print_text(remark)
        processes = device.processes()
        took = duration(estimate.seconds(runs, processes))
        return (
            f"Estimated time: about {took} (worker processes: {processes}), without start, MLflow and page."
        )
    except (InvalidProblemError, UserError):
        raise
    except Exception as error:
        reason = users_mistake(error)
        if reason is None:
            raise
        return f"Estimated time: unknown. {' '.join(reason)}"
