"""`asyncfl show`: the expansion of a suite, shown before any run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchmarks.commands import options
from benchmarks.errors import UserError, users_mistake
from benchmarks.terminal_output import print_table, print_text
from fl_core.text import duration, many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.suite.suite import PlannedRun
    from fl_core.strategies.strategy import Strategy


@click.command(short_help="Show the runs of SUITE, and how long they will take.")
@options.suite
@options.allow_code
@options.scale
@options.settings
@options.data_dir
def command(suite: str, scale: str | None, settings: tuple[str, ...]) -> None:
    """Show the runs that SUITE expands to, and how long they will take."""
    from benchmarks.suite import labels
    from benchmarks.suite.suite import load

    loaded = load(suite, settings, scale)
    runs = loaded.runs()
    scenarios = list(dict.fromkeys(run.scenario for run in runs))
    shared, strategies = strategies_table(runs)
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
    budget = f"{loaded.spec.budget.label()}, {many(loaded.spec.evaluations, 'evaluation')}"
    print_text(f"Each run: {budget}; seeds {', '.join(map(str, loaded.spec.seeds))}")
    per_scenario = f"{many(len(strategies), 'strategy')} × {many(len(loaded.spec.seeds), 'seed')}"
    click.echo(f"Runs: {many(len(scenarios), 'scenario')} × {per_scenario} = {len(runs):,}")
    print_text(_prospect(runs))


def _prospect(runs: list[PlannedRun]) -> str:
    """Return a line with the estimated duration of the runs.

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


def strategies_table(runs: list[PlannedRun]) -> tuple[str, list[tuple[str, str]]]:
    """Return hyper-parameters shared by all strategies, and each label with the others, over the grid."""
    tables: dict[str, dict[str, dict[str, None]]] = {}
    for run in runs:
        table = tables.setdefault(run.strategy, {})
        for key, value in _hyper_parameters(run.experiment.strategy):
            table.setdefault(key, {})[value] = None
    fields = list(tables.values())
    shared = {k: v for k, v in fields[0].items() if all(table.get(k) == v for table in fields)}
    distinct = [
        (label, {k: v for k, v in table.items() if k not in shared}) for label, table in tables.items()
    ]
    return _listed(shared), [(label, _listed(table)) for label, table in distinct]


def _listed(table: dict[str, dict[str, None]]) -> str:
    return ", ".join(f"{key} {' | '.join(values)}" for key, values in table.items())


def _hyper_parameters(strategy: Strategy) -> Iterator[tuple[str, str]]:
    """Yield keys and values in readable order, local work first, without open or disabled settings."""
    from benchmarks.suite import labels
    from fl_core.parts import Part

    fields: dict[str, Any] = strategy.model_dump(mode="json")
    local: dict[str, Any] = fields.pop("local")
    parts = {key: part.label() for key, part in strategy if isinstance(part, Part) and key != "local"}
    work = {"local work": local.pop("name")}
    work |= {f"local {key}": value for key, value in local.items()}
    for key, value in {**work, **fields, **parts}.items():
        if key != "name" and value is not None and value is not False:
            yield key.replace("_", " "), labels.value(value)
