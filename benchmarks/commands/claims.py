"""`asyncfl claims`: the papers' claims, and the verdicts on them."""

from __future__ import annotations

import fnmatch
import shlex
import signal
import sys
from collections.abc import Iterator
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import options
from fl_core.words import many

if TYPE_CHECKING:
    from benchmarks.claims.claim import Claim
    from benchmarks.claims.files import Paper
    from benchmarks.claims.plan import ClaimPlan
    from benchmarks.engine import Engine
    from benchmarks.suite.suite import PlannedRun
    from benchmarks.tracking.store import Store
    from reports.claims.cost import Open
    from reports.claims.stored import Judged

BATCH = 600.0  # seconds of one core: claims that are cheaper are run together
INTERRUPTED = 130  # exit code, as shells have it after Ctrl-C

paper = click.option("--paper", "wanted", metavar="NAME", help="One paper alone: fraboni, ace, …")

files = click.option(
    "--claims",
    "folder_of_claims",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another folder of claims; its results are kept in it.  [default: the package's own]",
)


@click.group(invoke_without_command=True)
@paper
@files
@click.option(
    "--markdown", type=click.Choice(["readme", "docs"]), help="Print what README or docs/claims.md show."
)
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page of all verdicts, with a forest plot for every block and filters.",
)
@click.pass_context
def command(
    ctx: click.Context,
    wanted: str | None,
    folder_of_claims: Path | None,
    markdown: str | None,
    html: Path | None,
) -> None:
    """Show how the claims of the papers stand, from the numbers kept with them; of one paper, all verdicts.

    Nothing runs. Only the papers' own statements, in the papers' own arrangement, are counted.
    """
    if ctx.invoked_subcommand is not None:
        _must_stand_behind(ctx)
        return
    from benchmarks.tables import print_table
    from reports.claims import stored, table

    chosen = _papers(folder_of_claims, wanted)
    found = stored.all_of(chosen.values(), _results(folder_of_claims))
    if markdown:
        from reports.claims import markdown as pages

        click.echo(pages.readme(found) if markdown == "readme" else pages.docs(found), nl=False)
        return
    if html:
        _write_page(found, html)
        return
    for one in found if wanted else ():
        if one.ran:
            click.echo(f"\n{one.paper.title} · {one.scale}")
            print_table(table.HEADER, _headed(table.HEADER, table.lines(one)))
            click.echo()
    standings = stored.standings(found)
    print_table(table.SUMMARY, _headed(table.SUMMARY, table.summary(standings)))
    click.echo(f"\n{table.tested(standings)} Each: asyncfl claims --paper NAME, or show ID.")


def _write_page(found: list[Judged], path: Path) -> None:
    from benchmarks.errors import UserError
    from reports import claims_page

    try:
        click.echo(f"Claims: {claims_page.write(found, path)}")
    except OSError as error:
        raise UserError(f"--html {path} cannot be written: {error.strerror}") from None


@command.command()
@files
@options.allow_code
def check(folder_of_claims: Path | None) -> None:
    """Check that every entry is valid and selects runs that can be made; nothing runs."""
    from benchmarks.claims.plan import mistakes
    from benchmarks.errors import UserError

    papers = _papers(folder_of_claims, None)
    if wrong := mistakes(papers.values()):
        raise UserError(*wrong)
    claims = sum(len(one.claims) for one in papers.values())
    click.echo(f"In order: {many(claims, 'claim')} of {many(len(papers), 'paper')}.")


@command.command()
@click.argument("id_", metavar="ID")
@files
def show(id_: str, folder_of_claims: Path | None) -> None:
    """Show one claim: its statement, how it is judged, what was found, each seed's numbers and runs.

    The id of a row, such as A-best, shows the verdicts on all of its claims.
    """
    from benchmarks.errors import UserError
    from benchmarks.suite.document import nearest
    from benchmarks.tables import print_table
    from reports.claims.show import of_row, told
    from reports.claims.table import HEADER

    papers, results = _papers(folder_of_claims, None), _results(folder_of_claims)
    known = {name: one for one in papers.values() for name in one.claims}
    rows = {claim.row: one for one in papers.values() for claim in one.claims.values()}
    if id_ in known:
        click.echo(told(known[id_], known[id_].claims[id_], results))
    elif id_ in rows:
        head = ("scale", *HEADER)
        print_table(head, _headed(head, of_row(rows[id_], id_, results)))
    else:
        raise UserError(f"no claim '{id_}'{nearest(id_, [*known, *rows])} `asyncfl claims` lists all")


@command.command()
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
@options.tracking_uri
@options.data_dir
@options.device
@options.engine
@options.address
@options.workers
@click.option("--until-decided", is_flag=True, help="Go on from look to look, claims decided soonest first.")
@click.option(
    "--hours", type=click.FloatRange(min=0, min_open=True), help="With --until-decided: start nothing later."
)
@click.option("--dry-run", is_flag=True, help="Show how many runs it takes, and how long.")
@click.option("--quiet", is_flag=True, help="No progress, only what went wrong.")
def run(
    *,
    wanted: str | None,
    ids: tuple[str, ...],
    scale: str | None,
    folder_of_claims: Path | None,
    folder: Path,
    tracking_uri: str | None,
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
    claims that need more than two cores there are left out, unless --id and --scale name them. Claims without
    training are computed where no value is known yet, or if named by --id. With --until-decided open claims
    get fresh seeds, up to the next look of their plan at a time, until they are decided or the plan is at its
    end.
    """
    if hours is not None and not until_decided:
        raise click.UsageError("--hours goes with --until-decided")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # handled like Ctrl-C
    from benchmarks import engine as engines
    from benchmarks.tracking.store import Store

    papers = _papers(folder_of_claims, wanted)
    chosen = {name: _chosen(one, ids) for name, one in papers.items()}
    plans = [plan for name, one in papers.items() for plan in _plans(one, chosen[name], scale, ids)]
    if ids and not plans and not any(claim.computed for of in chosen.values() for claim in of):
        from benchmarks.errors import UserError

        raise UserError(
            f"--id {' '.join(ids)}: no claim of that name can run; `asyncfl claims show ID` says why"
        )
    if dry_run:
        _forecast(plans)
        return
    results, store = _results(folder_of_claims), Store(folder, tracking_uri)
    computes = engines.engine(engine, address, workers)
    try:
        failed = [_compute(papers[name], claims, results, again=bool(ids)) for name, claims in chosen.items()]
        if until_decided:
            _until_decided(plans, store, results, computes, hours, quiet=quiet)
        else:
            failed += [_run(plan, store, results, computes, quiet=quiet) for plan in plans]
    except KeyboardInterrupt:
        click.echo("\nStopped: what was in progress is saved.")
        click.echo(f"Go on with: asyncfl {shlex.join(sys.argv[1:])}")
        sys.exit(INTERRUPTED)
    sys.exit(1 if any(failed) else 0)


@command.command()
@paper
@click.option("--scale", type=click.Choice(["small", "paper"]), default="small", show_default=True)
@files
@options.store
@options.tracking_uri
@options.data_dir
@options.device
def cost(
    *, wanted: str | None, scale: str, folder_of_claims: Path | None, folder: Path, tracking_uri: str | None
) -> None:
    """Show what deciding the open claims would still cost, from recorded or else estimated run times."""
    from benchmarks.claims.plan import ClaimPlan
    from benchmarks.tracking.store import Store

    papers = _papers(folder_of_claims, wanted)
    plans = [
        ClaimPlan(one, scale, tuple(claim for claim in one.claims.values() if scale in one.scales(claim)))
        for one in papers.values()
    ]
    plans = [plan for plan in plans if plan.claims]
    _say_cost(plans, Store(folder, tracking_uri), _results(folder_of_claims))


def _must_stand_behind(ctx: click.Context) -> None:
    """A usage error if an option stands before `run`, `show` or `check`, which have their own."""
    for one in ctx.command.params:
        if one.name and ctx.get_parameter_source(one.name) is click.core.ParameterSource.COMMANDLINE:
            name = ctx.invoked_subcommand
            raise click.UsageError(
                f"{one.opts[0]} stands behind {name}: asyncfl claims {name} {one.opts[0]} …"
            )


def _papers(folder: Path | None, wanted: str | None) -> dict[str, Paper]:
    from benchmarks.claims.files import FOLDER, papers
    from benchmarks.errors import UserError
    from benchmarks.suite.document import nearest

    found = papers(folder or FOLDER)
    if wanted is None:
        return found
    if wanted not in found:
        raise UserError(
            f"--paper {wanted}: no paper '{wanted}'{nearest(wanted, found)} There are: {', '.join(found)}"
        )
    return {wanted: found[wanted]}


def _results(folder: Path | None) -> Path:
    from benchmarks.claims.kept import RESULTS

    return RESULTS if folder is None else folder / RESULTS.name


def _chosen(paper: Paper, ids: tuple[str, ...]) -> list[Claim]:
    """The selected claims."""
    meant = ids or ("*",)
    return [one for one in paper.claims.values() if any(fnmatch.fnmatchcase(one.id, id_) for id_ in meant)]


def _plans(paper: Paper, claims: list[Claim], scale: str | None, ids: tuple[str, ...]) -> Iterator[ClaimPlan]:
    """What is to run for a paper, scale by scale."""
    from benchmarks.claims.plan import ClaimPlan

    by_scale: dict[str, list[Claim]] = {}
    for claim in claims:
        possible = [
            at
            for at in paper.scales(claim)
            if scale in {None, at} and (not paper.needs(claim, at) or (ids and scale))
        ]
        if possible:
            by_scale.setdefault(possible[0], []).append(claim)
    for at, of in by_scale.items():
        yield ClaimPlan(paper, at, tuple(of))


def _forecast(plans: list[ClaimPlan]) -> None:
    from benchmarks.device import processes
    from benchmarks.runs.estimate import core_seconds
    from benchmarks.suite.summary import duration

    size, total = processes(), 0.0
    for plan in plans:
        runs = plan.runs()
        seconds = core_seconds(runs, patience=4.0)
        total += seconds
        what = f"{many(len(plan.claims), 'claim')}, {many(len(runs), 'run')}"
        click.echo(f"{plan.name}: {what}, {duration(seconds / size)}")
    where = "1 process" if size == 1 else f"{size} processes"
    click.echo(f"About {duration(total / size)} with {where}, what is finished included.")


def _compute(paper: Paper, claims: list[Claim], results: Path, *, again: bool) -> bool:
    """Compute what needs no runs; whether any of it failed."""
    from benchmarks.claims import kept
    from benchmarks.claims.kept import COMPUTED
    from benchmarks.errors import summarised
    from reports.claims.claims import computed, recipe

    file = kept.path(paper.name, COMPUTED, results)
    known = {(one.claim, one.runs) for one in kept.read(file)}
    failed = False
    for claim in claims:
        if claim.computed and (again or (claim.id, recipe(claim)) not in known):
            try:
                kept.merge(file, list(paper.claims), computed(claim))
            except Exception as error:  # noqa: BLE001 - one that fails must not hold up the others
                click.echo(f"Error: claims.{claim.id}: {summarised(error)}", err=True)
                failed = True
    return failed


def _run(plan: ClaimPlan, store: Store, results: Path, computes: Engine, *, quiet: bool) -> bool:
    """Run what claims need and keep its numbers; whether any run failed."""
    from benchmarks.claims import kept
    from benchmarks.runs.progress import display
    from benchmarks.runs.session import Session
    from reports.claims.claims import measured
    from reports.claims.cost import merged
    from reports.records.store import load

    session = Session(plan, store, baselines=False)
    computes.warm_up("benchmarks.runs.jobs", (task.problem for task in session.tasks))
    session.run(computes, lambda tasks: display(tasks, quiet=quiet))
    click.echo(f"{plan.name}: {session.size}, {session.finished} of them finished.")
    recorded = {one.key: one for one in load(store.tracking_uri, plan.name).runs}
    numbers = [one for claim in plan.claims for one in measured(plan, claim, recorded)]
    file = kept.path(plan.paper.name, plan.scale, results)
    kept.merge(file, list(plan.paper.claims), merged(plan.paper, plan.scale, file, numbers))
    return bool(session.now["error"])


def _until_decided(
    plans: list[ClaimPlan],
    store: Store,
    results: Path,
    computes: Engine,
    hours: float | None,
    *,
    quiet: bool,
) -> None:
    """Look after look, claims decided soonest first, until all are decided or no time is left."""
    from time import monotonic

    from benchmarks.claims.plan import ClaimPlan
    from benchmarks.suite.summary import duration

    end = monotonic() + 3600 * hours if hours is not None else inf
    given_up: set[tuple[str, tuple[int, ...]]] = set()  # seeds that were run and are still missing
    while monotonic() < end:
        there = [(plan, one) for plan in plans for one in _open(plan, store, results)]
        there = [(plan, one) for plan, one in there if (one.claim.id, one.next_look) not in given_up]
        if not there:
            break
        plan, first = min(there, key=lambda pair: pair[1].seconds)
        # Claims waiting for the same seeds of the same paper join if they are as cheap.
        batch = [
            one
            for other, one in there
            if other is plan and one.next_look == first.next_look and one.seconds <= max(BATCH, first.seconds)
        ]
        given_up |= {(one.claim.id, one.next_look) for one in batch}
        took = duration(sum(one.seconds for one in batch))
        click.echo(
            f"{plan.name}: {many(len(batch), 'claim')} to {first.next_look[-1] + 1} seeds, "
            f"at most {took} of a core."
        )
        claims = tuple(one.claim for one in batch)
        _run(
            ClaimPlan(plan.paper, plan.scale, claims, first.next_look), store, results, computes, quiet=quiet
        )
    _say_cost(plans, store, results)


def _open(plan: ClaimPlan, store: Store, results: Path) -> list[Open]:
    """The open claims of a plan, with what their runs take: as recorded, or as estimated."""
    from benchmarks.errors import UserError
    from reports.claims.cost import measured_seconds, still_open
    from reports.records.store import load

    try:
        known = measured_seconds(load(store.tracking_uri, plan.name).runs)
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
    name = run.scenario.partition(" · ")[0]
    about = (name, scenario.problem.clients, repr(scenario.budget), run.strategy)
    if about not in ESTIMATES:
        try:
            ESTIMATES[about] = core_seconds([run])
        except Exception:  # noqa: BLE001 - data that are missing here, a network too large for this machine
            ESTIMATES[about] = inf
    return ESTIMATES[about]


def _say_cost(plans: list[ClaimPlan], store: Store, results: Path) -> None:
    """What is still open, what deciding it takes, and the command for what needs more than two cores."""
    from benchmarks import device
    from benchmarks.suite.summary import duration
    from benchmarks.tables import print_table

    rows: list[tuple[str, ...]] = []
    larger: list[str] = []
    for plan in plans:
        there = _open(plan, store, results)
        runs = {run.key: run for one in there for run in one.runs}
        each = {run.key: one.seconds / len(one.runs) for one in there for run in one.runs}
        known = [seconds for seconds in each.values() if isfinite(seconds)]
        time = duration(sum(known)) if known else "–"
        if len(known) < len(each):
            time += f", {many(len(each) - len(known), 'run')} unknown"
        if any(plan.paper.needs(one.claim, plan.scale) for one in there):
            larger.append(
                f"asyncfl claims run --paper {plan.paper.name} --scale {plan.scale} --id '*' --until-decided"
            )
        rows.append(
            (plan.paper.title, plan.scale, f"{len(there)} of {len(plan.claims)}", str(len(runs)), time)
        )
    on_cpu = device.chosen().type == "cpu"
    head = ("paper", "scale", "open claims", "runs", "time of one core" if on_cpu else "time on the GPU")
    print_table(head, _headed(head, rows))
    if larger:
        click.echo("What needs more than two cores runs if it is named, on a GPU with --device cuda:")
        for line in larger:
            click.echo(f"  {line}")


def _headed(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows, under their header where the table is printed plainly, without one."""
    return rows if sys.stdout.isatty() else [head, *rows]
