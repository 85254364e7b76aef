"""`asyncfl claims cost`: what deciding the open claims would still take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl.claims.command.chosen import files, paper, papers_of, plans_of, results_of

if TYPE_CHECKING:
    from asyncfl.claims.cost import Open
    from asyncfl.claims.plan import ClaimPlan


@click.command()
@paper
@click.option(
    "--scale",
    type=click.Choice(["small", "paper"]),
    help="[default: the smallest that a claim has, if two cores are enough for it]",
)
@files
def command(*, wanted: str | None, scale: str | None, folder_of_claims: Path | None) -> None:
    """Show the seeds and runs that would decide the open claims.

    With --paper claim by claim, too, the fewest runs first. Nothing runs.
    """
    papers = papers_of(folder_of_claims, wanted).values()
    every = ("*",) if scale else ()  # claims that need more stand by their scale
    plans = [plan for paper in papers for plan in plans_of(paper, list(paper.claims.values()), scale, every)]
    if larger := say_cost(plans, results_of(folder_of_claims), by_claim=wanted is not None):
        click.echo("What needs more than two cores runs if it is named, on a GPU with --device cuda:")
    for plan in larger:
        chosen = f"--paper {plan.paper.name} --scale {plan.scale} --id '*'"
        click.echo(f"  asyncfl claims run {chosen} --until-decided")


def say_cost(plans: list[ClaimPlan], results: Path, *, by_claim: bool = False) -> list[ClaimPlan]:
    """Tell what is still open and what deciding it takes; return the plans that need more than two cores."""
    from benchmarks.tables import print_headed

    rows: list[tuple[str, ...]] = []
    claims: list[tuple[str, ...]] = []
    larger: list[ClaimPlan] = []
    for plan in plans:
        there = open_claims(plan, results)
        runs = {run for waiting in there for run in waiting.under(waiting.seeds)}
        if any(plan.paper.needs(waiting.claim, plan.scale) for waiting in there):
            larger.append(plan)
        undecided = f"{len(there)} of {len(plan.claims)}"
        rows.append((plan.paper.title, plan.scale, undecided, f"{len(runs):,}"))
        if by_claim:
            claims += [
                (waiting.claim.id, plan.scale, str(len(waiting.seeds)), f"{waiting.missing:,}")
                for waiting in there
            ]
    print_headed(("paper", "scale", "open claims", "runs"), rows)
    if claims:
        click.echo()
        print_headed(("claim, which may share runs", "scale", "seeds", "runs"), claims)
    return larger


def open_claims(plan: ClaimPlan, results: Path) -> list[Open]:
    """Return the open claims of a plan."""
    from asyncfl.claims.cost import still_open

    return still_open(plan.paper, plan.scale, plan.claims, results)
