"""`asyncfl claims run`: the runs that claims still need, and the numbers that come of them."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl import options
from asyncfl.claims.command.chosen import chosen_of, files, paper, papers_of, plans_of, results_of
from asyncfl.claims.command.cost import open_claims, say_cost
from benchmarks import interrupts
from benchmarks.redaction import command_line
from fl_core.schema import Status
from fl_core.text import many

if TYPE_CHECKING:
    from asyncfl.claims.plan import ClaimPlan
    from benchmarks.engine import Engine
    from benchmarks.tracking.store import Store


@click.command()
@paper
@click.option(
    "--id", "ids", metavar="ID", multiple=True, help="One claim, or a pattern such as 'F-weights-*'."
)
@click.option(
    "--scale", type=click.Choice(["small", "paper"]), help="[default: the smallest that a claim has]"
)
@files
@options.allow_code
@options.store
@options.data_dir
@options.device
@options.computing
@click.option(
    "--until-decided", is_flag=True, help="Go on from look to look, claims of the fewest runs first."
)
@click.option(
    "--hours", type=click.FloatRange(min=0, min_open=True), help="With --until-decided: start nothing later."
)
@click.option("--dry-run", is_flag=True, help="Show how many runs it takes.")
@options.verbose
@click.option("--quiet", is_flag=True, help="No progress, only what went wrong.")
def command(
    *,
    wanted: str | None,
    ids: tuple[str, ...],
    scale: str | None,
    folder_of_claims: Path | None,
    store: Store,
    engine: str,
    address: str | None,
    workers: int | None,
    until_decided: bool,
    hours: float | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Run what the claims still need, and keep the resulting numbers.

    Runs that several claims need are made once. A claim runs at the smallest of its scales, or at --scale;
    claims that need more than two cores there are left out, unless --id and --scale name them. Theorems need
    no runs. With --until-decided open claims get fresh seeds, up to the next look of their plan at a time,
    until they are decided or the plan is at its end.
    """
    if hours is not None and not until_decided:
        raise click.UsageError("--hours goes with --until-decided")
    from benchmarks import engine as engines

    papers = papers_of(folder_of_claims, wanted)
    plans = [plan for paper in papers.values() for plan in plans_of(paper, chosen_of(paper, ids), scale, ids)]
    if ids and not plans:
        from benchmarks.errors import UserError

        raise UserError(
            f"--id {' '.join(ids)}: no claim of that name can run; `asyncfl claims show ID` says why"
        )
    results = results_of(folder_of_claims)
    if dry_run:
        say_cost(plans, results) if until_decided else _say_size(plans)
        return
    _must_be_traceable(results)
    computes = engines.engine(engine, address, workers)
    interrupts.are_raised()
    try:
        failed: list[bool] = []
        if until_decided:
            _until_decided(plans, store, results, computes, hours, quiet=quiet)
        else:
            failed = [_run(plan, store, results, computes, quiet=quiet) for plan in plans]
    except KeyboardInterrupt:
        click.echo("\nStopped: what was in progress is saved.")
        click.echo(f"Resume with: asyncfl {command_line(sys.argv[1:])}")
        sys.exit(interrupts.EXIT)
    sys.exit(1 if any(failed) else 0)


def _must_be_traceable(results: Path) -> None:
    """Refuse runs whose numbers could not be stored: of the package's claims, from a tree with changes."""
    from asyncfl.claims.kept import RESULTS
    from benchmarks.errors import UserError
    from benchmarks.tracking.provenance import commit

    here = commit()
    if results == RESULTS and (not here or here.endswith("+")):
        what = "uncommitted changes" if here else "no commit"
        raise UserError(
            f"claims run: the repository has {what}, so that numbers could not be traced. Commit first, or "
            "keep numbers of your own with --claims DIR."
        )


def _say_size(plans: list[ClaimPlan]) -> None:
    for plan in plans:
        what = f"{many(len(plan.claims), 'claim')}, {many(len(plan.runs()), 'run')}"
        click.echo(f"{plan.name}: {what}, finished ones included")


def _run(plan: ClaimPlan, store: Store, results: Path, computes: Engine, *, quiet: bool) -> bool:
    """Run what claims need and keep its numbers, even of a batch that is stopped; whether any run failed."""
    from benchmarks.runs.progress import display
    from benchmarks.runs.session import Session

    session = Session(plan, store, baselines=False)
    computes.warm_up("benchmarks.runs.jobs")
    try:
        session.run(computes, lambda tasks: display(tasks, quiet=quiet))
    except KeyboardInterrupt:
        if session.finished:
            _keep(plan, store, results)
        raise
    session.warn_of_waiting()
    _keep(plan, store, results)
    click.echo(f"{plan.name}: {session.size}, {session.finished} of them finished.")
    return bool(session.now[Status.ERROR]) or session.failing


def _keep(plan: ClaimPlan, store: Store, results: Path) -> None:
    """Keep the numbers of the runs that are finished."""
    from asyncfl.claims import kept, register
    from asyncfl.claims.cost import merged
    from asyncfl.claims.measure import measured
    from benchmarks.errors import UserError
    from reports.records.store import load

    there = load(store.tracking_uri, plan.name, files_of={run.key for run in plan.runs()})
    recorded = {run.key: run for run in there.runs}
    numbers = [number for claim in plan.claims for number in measured(plan, claim, recorded)]
    file = kept.path(plan.paper.name, plan.scale, results)
    if results == kept.RESULTS and (untraced := kept.untraceable(numbers)):
        raise UserError(
            *(
                f"not stored: numbers from {kept.commits(origin) or 'no commit'}, changed or unknown here. "
                "Run them again from a commit."
                for origin in untraced
            )
        )
    with kept.changing():
        kept.merge(file, list(plan.paper.claims), merged(plan.paper, plan.scale, file, numbers))
        register.begin(plan.paper, results)


def _until_decided(
    plans: list[ClaimPlan],
    store: Store,
    results: Path,
    computes: Engine,
    hours: float | None,
    *,
    quiet: bool,
) -> None:
    """Look after look, claims of the fewest runs first, until all are decided or no time is left."""
    from time import monotonic

    from asyncfl.claims.plan import ClaimPlan

    end = monotonic() + 3600 * hours if hours is not None else inf
    given_up: set[tuple[str, tuple[int, ...]]] = set()  # seeds that were run and are still missing
    while monotonic() < end:
        there = [(plan, waiting) for plan in plans for waiting in open_claims(plan, results)]
        there = [
            (plan, waiting)
            for plan, waiting in there
            if (waiting.claim.id, waiting.next_look) not in given_up
        ]
        if not there:
            break
        plan, first = min(there, key=lambda pair: pair[1].missing)
        # Claims waiting for the same seeds of the same paper join, unless time is short.
        batch = [
            waiting
            for other, waiting in there
            if waiting is first or (hours is None and other is plan and waiting.next_look == first.next_look)
        ]
        given_up |= {(waiting.claim.id, waiting.next_look) for waiting in batch}
        look = ClaimPlan(plan.paper, plan.scale, tuple(waiting.claim for waiting in batch), first.next_look)
        runs = {run for waiting in batch for run in waiting.under(first.next_look)}
        click.echo(
            f"{plan.name}: {many(len(batch), 'claim')} to {many(first.next_look[-1] + 1, 'seed')}, "
            f"at most {many(len(runs), 'run')}."
        )
        _run(look, store, results, computes, quiet=quiet)
    say_cost(plans, results)
