"""`asyncfl claims cost`: what deciding the open claims would still take."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl import options
from asyncfl.claims.command.chosen import files, paper, papers_of, plans_of, results_of
from fl_core.text import many

if TYPE_CHECKING:
    from asyncfl.claims.cost import Open
    from asyncfl.claims.plan import ClaimPlan
    from asyncfl.claims.seconds import Time


@click.command()
@paper
@click.option(
    "--scale",
    type=click.Choice(["small", "paper"]),
    help="[default: the smallest that a claim has, if two cores are enough for it]",
)
@files
@options.data_dir
def command(*, wanted: str | None, scale: str | None, folder_of_claims: Path | None) -> None:
    """Show what deciding the open claims would still cost, from recorded times of their workloads.

    With --paper claim by claim, too, the quickest first. Nothing runs, but a second of each workload that is
    met for the first time.
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
    from asyncfl.claims.seconds import ASSUMED
    from benchmarks.tables import print_headed, print_text

    rows: list[tuple[str, ...]] = []
    claims: list[tuple[str, ...]] = []
    larger: list[ClaimPlan] = []
    for plan in plans:
        there = open_claims(plan, results)
        runs = {key: time for waiting in there for key, time in waiting.times(waiting.seeds).items()}
        if any(plan.paper.needs(waiting.claim, plan.scale) for waiting in there):
            larger.append(plan)
        undecided = f"{len(there)} of {len(plan.claims)}"
        rows.append((plan.paper.title, plan.scale, undecided, str(len(runs)), *total(runs.values())))
        for waiting in there if by_claim else ():
            times, seeds = waiting.times(waiting.seeds), len(waiting.seeds)
            claims.append((waiting.claim.id, plan.scale, str(seeds), str(len(times)), *total(times.values())))
    taken = ("runs", "time of one core", "of one GPU")
    print_headed(("paper", "scale", "open claims", *taken), rows)
    if claims:
        click.echo()
        print_headed(("claim, which may share runs", "scale", "seeds", *taken), claims)
    print_text(ASSUMED)
    return larger


def total(times: Collection[Time]) -> tuple[str, str]:
    """Return the time of runs in words, of one core and of one GPU."""
    from fl_core.text import duration

    known = [time for time in times if isfinite(time.core)]
    left = f", {many(len(times) - len(known), 'run')} unknown" if len(known) < len(times) else ""
    if not known:
        return f"–{left}", "–"
    return f"{duration(sum(time.core for time in known))}{left}", duration(sum(time.gpu for time in known))


def open_claims(plan: ClaimPlan, results: Path) -> list[Open]:
    """The open claims of a plan, with what their runs take."""
    from asyncfl.claims.cost import still_open
    from asyncfl.claims.seconds import Costs

    return still_open(plan.paper, plan.scale, plan.claims, Costs(results).of, results)
