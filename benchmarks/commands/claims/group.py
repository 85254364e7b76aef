"""`asyncfl claims`: the papers' claims, and the verdicts on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import options
from benchmarks.commands.claims import cost, run
from benchmarks.commands.claims.chosen import files, paper, papers_of, results_of
from fl_core.words import many

if TYPE_CHECKING:
    from reports.claims.stored import Judged


@click.group(invoke_without_command=True)
@paper
@files
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page of all verdicts, with a forest plot for every block and filters.",
)
@click.option(
    "--markdown",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write claims.md there, and a page for each paper in claims/.",
)
@click.option("--readme", is_flag=True, help="Print the table of the README.")
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
    """Show how the claims of the papers stand, from the numbers kept with them; of one paper, all verdicts.

    Nothing runs. Only the papers' own statements, in the papers' own arrangement, are counted.
    """
    if ctx.invoked_subcommand is not None:
        _must_stand_behind(ctx)
        return
    from reports.claims import stored

    if wanted and (markdown or readme):
        raise click.UsageError("--markdown and --readme are of all papers, without --paper")
    chosen = papers_of(folder_of_claims, wanted)
    found = stored.all_of(chosen.values(), results_of(folder_of_claims))
    if readme:
        from reports.claims import markdown as pages

        click.echo(pages.readme(found), nl=False)
    elif markdown:
        _write_pages(found, markdown)
    elif html:
        _write_page(found, html)
    else:
        _print(found, detailed=wanted is not None)


def _print(found: list[Judged], detailed: bool) -> None:
    """How the papers stand; before that, in detail, all verdicts."""
    from benchmarks.tables import print_headed
    from reports.claims import stored, table

    for one in found if detailed else ():
        if one.ran:
            click.echo(f"\n{one.paper.title} · {one.scale}")
            print_headed(table.HEADER, table.lines(one))
            click.echo()
    standings = stored.standings(found)
    print_headed(table.SUMMARY, table.summary(standings))
    click.echo(f"\n{table.tested(standings)} Each: asyncfl claims --paper NAME, or show ID.")


def _write_pages(found: list[Judged], folder: Path) -> None:
    from benchmarks.errors import UserError
    from reports.claims import markdown

    try:
        for path in markdown.write(found, folder):
            click.echo(f"Written: {path}")
    except OSError as error:
        raise UserError(f"--markdown {folder} cannot be written: {error.strerror}") from None


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

    papers = papers_of(folder_of_claims, None)
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
    from benchmarks.tables import print_headed
    from reports.claims.show import of_row, told
    from reports.claims.table import HEADER

    papers, results = papers_of(folder_of_claims, None), results_of(folder_of_claims)
    known = {name: one for one in papers.values() for name in one.claims}
    rows = {claim.row: one for one in papers.values() for claim in one.claims.values()}
    if id_ in known:
        click.echo(told(known[id_], known[id_].claims[id_], results))
    elif id_ in rows:
        head = ("scale", *HEADER)
        print_headed(head, of_row(rows[id_], id_, results))
    else:
        raise UserError(f"no claim '{id_}'{nearest(id_, [*known, *rows])} `asyncfl claims` lists all")


def _must_stand_behind(ctx: click.Context) -> None:
    """A usage error if an option stands before `run`, `show` or `check`, which have their own."""
    for one in ctx.command.params:
        if one.name and ctx.get_parameter_source(one.name) is click.core.ParameterSource.COMMANDLINE:
            name = ctx.invoked_subcommand
            raise click.UsageError(
                f"{one.opts[0]} stands behind {name}: asyncfl claims {name} {one.opts[0]} …"
            )


command.add_command(run.command, "run")
command.add_command(cost.command, "cost")
