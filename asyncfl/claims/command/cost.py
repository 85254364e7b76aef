"""`asyncfl claims cost`: what deciding the open claims would still take."""

from __future__ import annotations

from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl import options
from asyncfl.claims.command.chosen import files, paper, papers_of, results_of
from fl_core.schema import JOINT
from fl_core.text import many

if TYPE_CHECKING:
    from asyncfl.claims.cost import Open
    from asyncfl.claims.plan import ClaimPlan
    from benchmarks.suite.suite import PlannedRun
    from benchmarks.tracking.store import Store


@click.command()
@paper
@click.option("--scale", type=click.Choice(["small", "paper"]), default="small", show_default=True)
@files
@options.store
@options.data_dir
@options.device
def command(*, wanted: str | None, scale: str, folder_of_claims: Path | None, store: Store) -> None:
    """Show what deciding the open claims would still cost, from recorded or else estimated run times."""
    from asyncfl.claims.plan import ClaimPlan

    papers = papers_of(folder_of_claims, wanted)
    plans = [
        ClaimPlan(
            paper, scale, tuple(claim for claim in paper.claims.values() if scale in paper.scales(claim))
        )
        for paper in papers.values()
    ]
    plans = [plan for plan in plans if plan.claims]
    say_cost(plans, store, results_of(folder_of_claims))


def say_cost(plans: list[ClaimPlan], store: Store, results: Path) -> None:
    """What is still open, what deciding it takes, and the command for what needs more than two cores."""
    from benchmarks import device
    from benchmarks.tables import print_headed
    from fl_core.text import duration

    rows: list[tuple[str, ...]] = []
    larger: list[str] = []
    for plan in plans:
        there = open_claims(plan, store, results)
        runs = {key: seconds for waiting in there for key, seconds in waiting.runs.items()}
        known = [seconds for seconds in runs.values() if isfinite(seconds)]
        time = duration(sum(known)) if known else "–"
        if len(known) < len(runs):
            time += f", {many(len(runs) - len(known), 'run')} unknown"
        if any(plan.paper.needs(waiting.claim, plan.scale) for waiting in there):
            larger.append(
                f"asyncfl claims run --paper {plan.paper.name} --scale {plan.scale} --id '*' --until-decided"
            )
        rows.append(
            (plan.paper.title, plan.scale, f"{len(there)} of {len(plan.claims)}", str(len(runs)), time)
        )
    on_cpu = device.chosen().type == "cpu"
    head = ("paper", "scale", "open claims", "runs", "time of one core" if on_cpu else "time on the GPU")
    print_headed(head, rows)
    if larger:
        click.echo("What needs more than two cores runs if it is named, on a GPU with --device cuda:")
        for line in larger:
            click.echo(f"  {line}")


def open_claims(plan: ClaimPlan, store: Store, results: Path) -> list[Open]:
    """The open claims of a plan, with what their runs take: as recorded, or as estimated."""
    from asyncfl.claims.cost import measured_seconds, still_open
    from benchmarks.errors import UserError
    from reports.records.store import load

    try:
        known = measured_seconds(load(store.tracking_uri, plan.name, files_of=()).runs)
    except UserError:  # nothing was recorded yet
        known = {}

    def seconds(run: PlannedRun) -> float:
        return known.get((run.scenario, run.strategy)) or _estimated(run)

    return still_open(plan.paper, plan.scale, plan.claims, seconds, results)


# By scenario, size of the problem, budget and strategy: runs of similar length are measured once.
ESTIMATES: dict[tuple[str, int, str, str], float] = {}


def _estimated(run: PlannedRun) -> float:
    """Seconds that a run takes on one core, from a second of it; ∞ where its data are missing."""
    from benchmarks.runs.estimate import core_seconds

    scenario = run.experiment.scenario
    name = run.scenario.partition(JOINT)[0]
    about = (name, scenario.problem.clients, repr(scenario.budget), run.strategy)
    if about not in ESTIMATES:
        try:
            ESTIMATES[about] = core_seconds([run])
        except Exception:  # noqa: BLE001 - data that are missing here, a network too large for this machine
            ESTIMATES[about] = inf
    return ESTIMATES[about]
