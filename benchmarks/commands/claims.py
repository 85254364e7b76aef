"""`asyncfl claims`: the papers' claims, the verdicts, and the runs and seeds still needed.

Fixed: the files written: stored numbers, and the pages that `tox run -e reproduce` compares.
"""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from benchmarks import signals_and_streams
from benchmarks.commands import options
from benchmarks.errors import UserError, writing
from fl_core.recorded_names import Status
from fl_core.text import many, nearest, unknown

if TYPE_CHECKING:
    from benchmarks.claims.claim import Claim
    from benchmarks.claims.files import Paper
    from benchmarks.claims.plan import ClaimPlan
    from benchmarks.engine import Engine
    from benchmarks.mlflow_store.store import Store
    from reports.claims.readings import Reading


paper = click.option("--paper", "wanted", metavar="NAME", help="Only this paper, such as fraboni or ace.")

files = click.option(
    "--claims",
    "folder_of_claims",
    metavar="DIR",
    type=options.EXISTING_DIR,
    help="Another folder of claims and their results.  [default: the package's own]",
)


def papers_of(folder: Path | None, wanted: str | None) -> dict[str, Paper]:
    """Return all papers of a folder of claims, or the wanted paper; UserError for an unknown name."""
    from benchmarks.claims.files import FOLDER, papers

    all_papers = papers(folder or FOLDER)
    if wanted is None:
        return all_papers
    if wanted not in all_papers:
        raise UserError(f"--paper {wanted}: {unknown('paper', wanted, all_papers)}")
    return {wanted: all_papers[wanted]}


def results_of(folder: Path | None) -> Path:
    """Return the folder of the claims' stored numbers.

    Raises:
        UserError: No folder is given, and an installed wheel has no numbers of the package's claims.
    """
    from benchmarks.claims.stored_numbers import RESULTS

    if folder is not None:
        return folder / RESULTS.name
    if not RESULTS.is_dir():
        raise UserError(
            "the stored numbers of the claims are not part of the installed package. Clone the repository "
            "and name its folder: --claims CLONE/benchmarks/claims. The verdicts are in its docs/claims.md."
        )
    return RESULTS


def plans_of(paper: Paper, scale: str | None, ids: tuple[str, ...]) -> Iterator[ClaimPlan]:
    """Yield the plans of a paper's claims with matching ids, scale by scale; without ids, of all claims."""
    from benchmarks.claims.plan import ClaimPlan

    by_scale: dict[str, list[Claim]] = {}
    for claim in paper.claims.values():
        if not any(fnmatch.fnmatchcase(claim.id, id_) for id_ in ids or ("*",)):
            continue
        possible = [
            at
            for at in paper.scales(claim)
            if scale in {None, at} and (not paper.needs(claim, at) or (ids and scale))
        ]
        if possible:
            by_scale.setdefault(possible[0], []).append(claim)
    for at, claims_there in by_scale.items():
        yield ClaimPlan(paper, at, tuple(claims_there))


@click.command()
@paper
@click.option(
    "--scale",
    type=click.Choice(["small", "paper"]),
    help="[default: the smallest that a claim has, if two cores are enough for it]",
)
@files
def cost(*, wanted: str | None, scale: str | None, folder_of_claims: Path | None) -> None:
    """Show the seeds and runs that would decide the open claims.

    With --paper also claim by claim, the fewest runs first. Nothing runs.
    """
    papers = papers_of(folder_of_claims, wanted).values()
    larger_ids = ("*",) if scale else ()  # claims that need more stand by their scale
    plans = [plan for paper in papers for plan in plans_of(paper, scale, larger_ids)]
    if larger := say_cost(plans, results_of(folder_of_claims), by_claim=wanted is not None):
        click.echo(
            "Claims that need more than two cores run only with --id; --device cuda runs them on a GPU:"
        )
    for plan in larger:
        chosen = f"--paper {plan.paper.name} --scale {plan.scale} --id '*'"
        click.echo(f"  asyncfl claims run {chosen} --until-decided")


def say_cost(plans: list[ClaimPlan], results: Path, *, by_claim: bool = False) -> list[ClaimPlan]:
    """Print open claims and missing runs; return plans with claims beyond an evening on two cores.

    Args:
        plans: Claims to consider.
        results: Folder of stored numbers.
        by_claim: Whether to print a second table with a row for each claim.
    """
    from benchmarks.terminal_output import print_headed
    from reports.claims.missing_seeds import still_open

    rows: list[tuple[str, ...]] = []
    claims: list[tuple[str, ...]] = []
    larger: list[ClaimPlan] = []
    for plan in plans:
        waiting_claims = still_open(plan, results)
        runs = {run for waiting in waiting_claims for run in waiting.under(waiting.seeds)}
        if any(plan.paper.needs(waiting.claim, plan.scale) for waiting in waiting_claims):
            larger.append(plan)
        undecided = f"{len(waiting_claims)} of {len(plan.claims)}"
        rows.append((plan.paper.title, plan.scale, undecided, f"{len(runs):,}"))
        if by_claim:
            claims += [
                (waiting.claim.id, plan.scale, str(len(waiting.seeds)), f"{waiting.missing:,}")
                for waiting in waiting_claims
            ]
    print_headed(("paper", "scale", "open claims", "runs"), rows)
    if claims:
        click.echo()
        print_headed(("claim, which may share runs", "scale", "seeds", "runs"), claims)
    return larger


def untraceable_plans(plans: list[ClaimPlan], results: Path) -> Iterator[ClaimPlan]:
    """Yield plans to rerun the seeds of untraceable stored numbers; claims with equal seeds share a plan."""
    from benchmarks.claims import stored_numbers
    from benchmarks.claims.plan import ClaimPlan

    for plan in plans:
        seeds: dict[str, set[int]] = {}
        for number in stored_numbers.read(stored_numbers.path(plan.paper.name, plan.scale, results)):
            if not stored_numbers.traceable(number.origin):
                seeds.setdefault(number.claim, set()).add(number.seed)
        claims: dict[tuple[int, ...], list[Claim]] = {}
        for claim in plan.claims:
            if claim.id in seeds:
                claims.setdefault(tuple(sorted(seeds[claim.id])), []).append(claim)
        for of_claims, mine in claims.items():
            yield ClaimPlan(plan.paper, plan.scale, tuple(mine), of_claims)


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
    "--until-decided", is_flag=True, help="Add seeds from look to look, claims with the fewest runs first."
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    help="With --until-decided: start no claims after this time.",
)
@click.option(
    "--untraceable",
    is_flag=True,
    help="Repeat seeds whose stored numbers do not come from a clean commit, and replace these numbers.",
)
@click.option("--dry-run", is_flag=True, help="Show the number of runs; run nothing.")
@options.verbose
@options.quiet
def run(
    *,
    wanted: str | None,
    ids: tuple[str, ...],
    scale: str | None,
    folder_of_claims: Path | None,
    store: Store,
    engine: Engine,
    until_decided: bool,
    hours: float | None,
    untraceable: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Run the missing runs of claims, and store their numbers.

    Runs that several claims need are made once. A claim runs at the smallest of its scales, or at --scale;
    claims that need more than two cores there are left out, unless --id and --scale name them. Theorems need
    no runs. With --until-decided open claims get fresh seeds, up to the next look of their plan at a time,
    until they are decided or the plan is at its end.
    """
    if hours is not None and not until_decided:
        raise click.UsageError("--hours needs --until-decided")
    if untraceable and until_decided:
        raise click.UsageError(
            "--untraceable repeats stored seeds only, so it cannot be combined with "
            "--until-decided. Leave out one of them"
        )

    papers = papers_of(folder_of_claims, wanted)
    plans = [plan for paper in papers.values() for plan in plans_of(paper, scale, ids)]
    if ids and not plans:
        raise UserError(
            f"--id {' '.join(ids)}: no claim of that name can run; `asyncfl claims show ID` says why"
        )
    results = results_of(folder_of_claims)
    if untraceable:
        plans = list(untraceable_plans(plans, results))
    if dry_run:
        if until_decided:
            say_cost(plans, results)
            return
        for plan in plans:
            size = f"{many(len(plan.claims), 'claim')}, {many(len(plan.runs()), 'run')}"
            click.echo(f"{plan.name}: {size}, finished ones included")
        return
    _must_be_traceable(results)
    failed: list[bool] = []
    with signals_and_streams.resumable(lambda: "runs in progress are saved."):
        if until_decided:
            _until_decided(plans, store, results, engine, hours, quiet=quiet)
        else:
            failed = [_run(plan, store, results, engine, quiet=quiet) for plan in plans]
    sys.exit(1 if any(failed) else 0)


def _must_be_traceable(results: Path) -> None:
    """Raise UserError for claims of the package if the repository has changes or no commit."""
    from benchmarks.claims.stored_numbers import RESULTS
    from benchmarks.mlflow_store.provenance import commit

    revision = commit()
    if results == RESULTS and (not revision or revision.endswith("+")):
        fault = "uncommitted changes" if revision else "no commit"
        raise UserError(
            f"claims run: the repository has {fault}, so numbers could not be traced to a commit. "
            "Commit first, or store your own numbers elsewhere with --claims DIR."
        )


def _run(plan: ClaimPlan, store: Store, results: Path, computes: Engine, *, quiet: bool) -> bool:
    """Run a plan and store the claims' numbers, also if interrupted; return whether any run failed."""
    from benchmarks.runs.progress import display
    from benchmarks.runs.session import Session

    session = Session(plan, store, baselines=False)
    computes.warm_up("benchmarks.runs.run_jobs")
    try:
        session.run(computes, lambda tasks: display(tasks, quiet=quiet))
    except KeyboardInterrupt:
        if session.finished:
            _keep(plan, store, results)
        raise
    session.warn_of_waiting()
    _keep(plan, store, results)
    click.echo(f"{plan.name}: {session.size}, {session.finished} of them finished.")
    return bool(session.statuses[Status.ERROR]) or session.failing


def _keep(plan: ClaimPlan, store: Store, results: Path) -> None:
    """Store the numbers of finished runs."""
    from benchmarks.claims import register, stored_numbers
    from reports.claims.measured import measured
    from reports.claims.missing_seeds import merged
    from reports.records.suite_reader import load

    suite = load(store.tracking_uri, plan.name, files_of={run.key for run in plan.runs()})
    recorded = {run.key: run for run in suite.runs}
    numbers = [number for claim in plan.claims for number in measured(plan, claim, recorded)]
    file = stored_numbers.path(plan.paper.name, plan.scale, results)
    if results == stored_numbers.RESULTS and (untraced := stored_numbers.untraceable(numbers)):
        raise UserError(
            *(
                f"not stored: numbers from {stored_numbers.commits(origin) or 'no commit'}, changed or "
                "unknown here. Run them again from a commit."
                for origin in untraced
            )
        )
    with stored_numbers.changing():
        stored_numbers.merge(file, list(plan.paper.claims), merged(plan.paper, plan.scale, file, numbers))
        register.record_first_numbers(plan.paper, results)


def _until_decided(
    plans: list[ClaimPlan],
    store: Store,
    results: Path,
    computes: Engine,
    hours: float | None,
    *,
    quiet: bool,
) -> None:
    """Run open claims look by look, fewest missing runs first, until all are decided or time is up."""
    from time import monotonic

    from benchmarks.claims.plan import ClaimPlan
    from reports.claims.missing_seeds import still_open

    end = monotonic() + 3600 * hours if hours is not None else inf
    given_up: set[tuple[str, tuple[int, ...]]] = set()  # seeds that were run and are still missing
    while monotonic() < end:
        open_plans = [
            (plan, waiting)
            for plan in plans
            for waiting in still_open(plan, results)
            if (waiting.claim.id, waiting.next_look) not in given_up
        ]
        if not open_plans:
            break
        plan, first = min(open_plans, key=lambda pair: pair[1].missing)
        # Claims waiting for the same seeds of the same paper join, unless time is short.
        batch = [
            waiting
            for open_plan, waiting in open_plans
            if waiting is first
            or (hours is None and open_plan is plan and waiting.next_look == first.next_look)
        ]
        given_up |= {(waiting.claim.id, waiting.next_look) for waiting in batch}
        look = ClaimPlan(plan.paper, plan.scale, tuple(waiting.claim for waiting in batch), first.next_look)
        runs = {run for waiting in batch for run in waiting.under(first.next_look)}
        click.echo(
            f"{plan.name}: {many(len(batch), 'claim')}, up to "
            f"{many(first.next_look[-1] + 1, 'seed')}, at most {many(len(runs), 'run')}."
        )
        _run(look, store, results, computes, quiet=quiet)
    say_cost(plans, results)


WORDS_WIDTH = 44  # of a main result's words, so that the table fits 120 columns


@click.group(invoke_without_command=True, short_help="Show which main results of the papers hold.")
@paper
@files
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page of all main results and verdicts, with forest plots and filters.",
)
@click.option(
    "--markdown",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write claims.md, its rules and changes to DIR, and a page for each paper to DIR/claims.",
)
@click.option("--readme", is_flag=True, help="Print the counts of main results for the README.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    wanted: str | None,
    folder_of_claims: Path | None,
    html: Path | None,
    markdown: Path | None,
    readme: bool,
) -> None:
    """Show the verdicts on the papers' main results, from stored numbers; of one paper, on all claims.

    Nothing runs. A cell tells how many of the decided readings hold with this arrangement and workload.
    """
    if ctx.invoked_subcommand is not None:
        _must_stand_behind(ctx)
        return
    from reports.claims.readings import all_of

    if wanted and (markdown or readme):
        raise click.UsageError("--markdown and --readme cover all papers. Leave out --paper")
    chosen, results = papers_of(folder_of_claims, wanted), results_of(folder_of_claims)
    readings = all_of(chosen.values(), results)
    if readme or markdown:
        from reports.claims import markdown as pages

        if readme:
            click.echo(pages.readme(readings), nl=False)
        if markdown:
            with writing(f"--markdown {markdown}"):
                for path in pages.write(readings, markdown, results):
                    click.echo(f"Written: {path}")
    if html:
        from reports.claims import html as page

        with writing(f"--html {html}"):
            click.echo(f"Claims: {page.write(readings, html)}")
    if not (readme or markdown or html):
        _print(readings, detailed=wanted is not None)


def _print(readings: list[Reading], detailed: bool) -> None:
    """Print the main results of the papers and, in detail, all verdicts."""
    from benchmarks.terminal_output import print_headed, print_text
    from reports.claims import matrix
    from reports.claims import verdict_text as table
    from reports.claims.main_results import outcomes
    from reports.claims.readings import by_scale

    results = outcomes(readings)
    print_text(matrix.summary(results))
    click.echo()
    for mine in matrix.by_paper(results):
        columns = matrix.columns(mine)
        rows: list[tuple[str, ...]] = []
        for outcome in mine:
            counts = [matrix.count(matrix.cell(outcome, column)) for column in columns]
            first, *rest = wrap(outcome.result.words, WORDS_WIDTH)
            rows.append((first, outcome.word, *counts, outcome.result.id))
            rows += [(line, *[""] * (len(columns) + 2)) for line in rest]
        print_text(mine[0].paper.title)
        print_headed(("main result", "outcome", *map(matrix.initials, columns), "show"), rows)
        for outcome in mine:
            if outcome.word == "not run":
                print_text(f"{outcome.result.words}: deciding this result would take {matrix.cost(outcome)}.")
        click.echo()
    for group in by_scale(readings) if detailed else ():
        if any(reading.ran for reading in group):
            click.echo(f"{group[0].paper.title} · {group[0].scale}")
            print_headed(table.HEADER, [table.line(reading) for reading in group])
            click.echo()
    print_text(f"{matrix.LEGEND} To see all readings of a result: asyncfl claims show ID")


@command.command()
@files
@options.allow_code
def check(folder_of_claims: Path | None) -> None:
    """Check that every entry is valid and selects runs that can be made; nothing runs."""
    from benchmarks.claims.plan import mistakes

    papers = papers_of(folder_of_claims, None)
    if wrong := mistakes(papers.values()):
        raise UserError(*wrong)
    claims = sum(len(paper.claims) for paper in papers.values())
    click.echo(f"Valid: {many(claims, 'claim')} of {many(len(papers), 'paper')}.")


@command.command()
@click.argument("id_", metavar="ID")
@files
def show(id_: str, folder_of_claims: Path | None) -> None:
    """Show one claim: statement, rule, verdict, and the numbers and runs of each seed.

    The id of a main result, such as ace-fedbuff, shows all of its readings; that of a row, such as A-best,
    the verdicts on all of its claims.
    """
    from benchmarks.terminal_output import print_headed, print_text
    from reports.claims.show import of_claim, of_result, of_row
    from reports.claims.verdict_text import HEADER

    papers, results = papers_of(folder_of_claims, None), results_of(folder_of_claims)
    main = {name: paper for paper in papers.values() for name in paper.main}
    paper_of = {name: paper for paper in papers.values() for name in paper.claims}
    rows = {claim.row: paper for paper in papers.values() for claim in paper.claims.values()}
    if id_ in paper_of:
        click.echo(of_claim(paper_of[id_], paper_of[id_].claims[id_], results))
    elif id_ in main:
        texts, lines = of_result(main[id_], id_, results)
        for text in texts:
            print_text(text)
        print_headed(("scale", *HEADER), lines)
    elif id_ in rows:
        print_headed(("scale", *HEADER), of_row(rows[id_], id_, results))
    else:
        raise UserError(
            f"no claim '{id_}'{nearest(id_, [*main, *paper_of, *rows])} `asyncfl claims` lists all"
        )


@command.command()
@files
@click.option(
    "--campaigns",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Number of campaigns for each row.",
)
def simulate(folder_of_claims: Path | None, campaigns: int) -> None:
    """Measure how often verdicts are false, on new seeds drawn from the stored numbers without their effects.

    Each row of claims goes through the whole procedure, and the rates are kept with the numbers. It takes
    about a second a campaign.
    """
    from reports.claims import false_verdicts

    chosen = papers_of(folder_of_claims, None).values()
    results = results_of(folder_of_claims)
    rates = [
        false_verdicts.rate(row, campaigns) for paper in chosen for row in false_verdicts.rows(paper, results)
    ]
    mean = sum(rate.share for rate in rates) / len(rates) if rates else 0.0
    path = false_verdicts.store(rates, results)
    click.echo(
        f"{many(len(rates), 'row')} simulated; {100 * mean:.1f} % of campaigns end with a false "
        f"verdict. Written: {path}"
    )


@command.command(name="register")
@files
def write_register(folder_of_claims: Path | None) -> None:
    """Store digests of entries with numbers, and of main results; a change must have a line in the register.

    The register is a file for each paper in decisions/, beside the claims: entries, change, the outcome known
    at the time, and reason.
    """
    from benchmarks.claims import register, stored_numbers

    results = results_of(folder_of_claims)
    papers = papers_of(folder_of_claims, None).values()
    with stored_numbers.changing():
        n = sum(register.record(paper, results) for paper in papers)
    click.echo(f"Registered: {many(n, 'new or changed entry')}.")


def _must_stand_behind(ctx: click.Context) -> None:
    """Raise UsageError for an option before a subcommand with own options, like `run`."""
    for parameter in ctx.command.params:
        if (
            parameter.name
            and ctx.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
        ):
            name, option = ctx.invoked_subcommand, parameter.opts[0]
            raise click.UsageError(f"{option} cannot precede {name}. See asyncfl claims {name} --help")


command.add_command(run)
command.add_command(cost)
