"""`asyncfl claims`: the papers' claims, and the verdicts on them."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from asyncfl import options
from asyncfl.claims.command import cost, run
from asyncfl.claims.command.chosen import files, paper, papers_of, results_of
from fl_core.text import many

if TYPE_CHECKING:
    from asyncfl.claims.verdicts.readings import Reading

WIDTH = 44  # of a main result's words, so that the table fits 120 columns


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
    help="Write claims.md there, and a page for each paper in claims/.",
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
    """Show what became of the papers' main results, from the numbers kept with them; of one, all verdicts.

    Nothing runs. A cell tells how many of the decided readings hold with this arrangement and workload.
    """
    if ctx.invoked_subcommand is not None:
        _must_stand_behind(ctx)
        return
    from asyncfl.claims.verdicts.readings import all_of

    if wanted and (markdown or readme):
        raise click.UsageError("--markdown and --readme are of all papers, without --paper")
    chosen = papers_of(folder_of_claims, wanted)
    readings = all_of(chosen.values(), results_of(folder_of_claims))
    if readme:
        from asyncfl.claims.pages import markdown as pages

        click.echo(pages.readme(readings), nl=False)
    if markdown:
        _write_pages(readings, markdown, results_of(folder_of_claims))
    if html:
        _write_page(readings, html)
    if not (readme or markdown or html):
        _print(readings, detailed=wanted is not None)


def _print(readings: list[Reading], detailed: bool) -> None:
    """The main results of the papers; after that, in detail, all verdicts."""
    from asyncfl.claims.pages import matrix, table
    from asyncfl.claims.verdicts.main import outcomes
    from asyncfl.claims.verdicts.readings import by_scale
    from benchmarks.tables import print_headed, print_text

    every = outcomes(readings)
    print_text(matrix.summary(every))
    click.echo()
    for mine in matrix.by_paper(every):
        columns = matrix.columns(mine)
        rows: list[tuple[str, ...]] = []
        for outcome in mine:
            counts = [matrix.count(matrix.cell(outcome, column)) for column in columns]
            first, *rest = wrap(outcome.result.words, WIDTH)
            rows.append((first, outcome.word, *counts, outcome.result.id))
            rows += [(line, *[""] * (len(columns) + 2)) for line in rest]
        print_text(mine[0].paper.title)
        print_headed(("main result", "outcome", *map(matrix.initials, columns), "show"), rows)
        for outcome in mine:
            if outcome.word == "not run":
                print_text(f"{outcome.result.words} would take {matrix.cost(outcome)}.")
        click.echo()
    for group in by_scale(readings) if detailed else ():
        if any(reading.ran for reading in group):
            click.echo(f"{group[0].paper.title} · {group[0].scale}")
            print_headed(table.HEADER, [table.line(reading) for reading in group])
            click.echo()
    print_text(f"{matrix.LEGEND} All readings of one: asyncfl claims show ID.")


def _write_pages(readings: list[Reading], folder: Path, results: Path) -> None:
    from asyncfl.claims.pages import markdown
    from benchmarks.errors import writing

    with writing(f"--markdown {folder}"):
        for path in markdown.write(readings, folder, results):
            click.echo(f"Written: {path}")


def _write_page(readings: list[Reading], path: Path) -> None:
    from asyncfl.claims.pages import html
    from benchmarks.errors import writing

    with writing(f"--html {path}"):
        click.echo(f"Claims: {html.write(readings, path)}")


@command.command()
@files
@options.allow_code
def check(folder_of_claims: Path | None) -> None:
    """Check that every entry is valid and selects runs that can be made; nothing runs."""
    from asyncfl.claims.plan import mistakes
    from benchmarks.errors import UserError

    papers = papers_of(folder_of_claims, None)
    if wrong := mistakes(papers.values()):
        raise UserError(*wrong)
    claims = sum(len(paper.claims) for paper in papers.values())
    click.echo(f"In order: {many(claims, 'claim')} of {many(len(papers), 'paper')}.")


@command.command()
@click.argument("id_", metavar="ID")
@files
def show(id_: str, folder_of_claims: Path | None) -> None:
    """Show one claim: its statement, how it is judged, what was found, each seed's numbers and runs.

    The id of a main result, such as ace-fedbuff, shows all of its readings; that of a row, such as A-best,
    the verdicts on all of its claims.
    """
    from asyncfl.claims.pages.show import of_claim, of_result, of_row
    from asyncfl.claims.pages.table import HEADER
    from benchmarks.errors import UserError
    from benchmarks.tables import print_headed, print_text
    from fl_core.text import nearest

    papers, results = papers_of(folder_of_claims, None), results_of(folder_of_claims)
    main = {name: paper for paper in papers.values() for name in paper.main}
    known = {name: paper for paper in papers.values() for name in paper.claims}
    rows = {claim.row: paper for paper in papers.values() for claim in paper.claims.values()}
    if id_ in known:
        click.echo(of_claim(known[id_], known[id_].claims[id_], results))
    elif id_ in main:
        texts, lines = of_result(main[id_], id_, results)
        for text in texts:
            print_text(text)
        print_headed(("scale", *HEADER), lines)
    elif id_ in rows:
        print_headed(("scale", *HEADER), of_row(rows[id_], id_, results))
    else:
        raise UserError(f"no claim '{id_}'{nearest(id_, [*main, *known, *rows])} `asyncfl claims` lists all")


@command.command()
@files
@click.option("--campaigns", type=click.IntRange(min=1), default=60, show_default=True, help="Of each row.")
def simulate(folder_of_claims: Path | None, campaigns: int) -> None:
    """Measure how often verdicts are false, on new seeds drawn from the stored numbers without their effects.

    Each row of claims goes through the whole procedure, and the rates are kept with the numbers. It takes
    about a second a campaign.
    """
    from asyncfl.claims.verdicts import simulated

    chosen = papers_of(folder_of_claims, None).values()
    results = results_of(folder_of_claims)
    rates = [simulated.rate(row, campaigns) for paper in chosen for row in simulated.rows(paper, results)]
    mean = sum(rate.share for rate in rates) / len(rates) if rates else 0.0
    path = simulated.store(rates, results)
    click.echo(f"{many(len(rates), 'row')}, of which {100 * mean:.1f} % end with a false verdict: {path}")


@command.command(name="register")
@files
def write_register(folder_of_claims: Path | None) -> None:
    """Store digests of entries with numbers, and of main results; a change must have a line in the register.

    The register is a file for each paper in decisions/, beside the claims: entries, change, the outcome known
    at the time, and reason.
    """
    from asyncfl.claims import kept, register

    results = results_of(folder_of_claims)
    papers = papers_of(folder_of_claims, None).values()
    with kept.changing():
        n = sum(register.record(paper, results) for paper in papers)
    click.echo(f"Registered: {many(n, 'new or changed entry')}.")


def _must_stand_behind(ctx: click.Context) -> None:
    """A usage error if an option stands before `run`, `show` or `check`, which have their own."""
    for parameter in ctx.command.params:
        if (
            parameter.name
            and ctx.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
        ):
            name = ctx.invoked_subcommand
            raise click.UsageError(
                f"{parameter.opts[0]} stands behind {name}: asyncfl claims {name} {parameter.opts[0]} …"
            )


command.add_command(run.command, "run")
command.add_command(cost.command, "cost")
