"""`asyncfl leaderboard`: which strategies lead; how an entry is made, scored and verified."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl import options
from asyncfl.commands import leaderboard as show
from benchmarks.errors import UserError
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.tracking.store import Store
    from reports.leaderboard.tables import Tables

CURRENT = show.KEPT / "1.0"  # the tables of the newest version


class WithDefault(click.Group):
    """A group that takes its command to be `show` where none is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `show` before what is no command."""
        if not args or args[0] not in {*self.commands, *self.get_help_option_names(ctx)}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=WithDefault)
def command() -> None:
    """Say which strategies lead; make, score and verify entries of version 1.0.

    Without a command: show, the board by ranks that stands until version 1.0 has two workloads.
    """


command.add_command(show.command, "show")
folder = click.argument("folder", default=CURRENT, type=click.Path(file_okay=False, path_type=Path))


@command.command()
@options.planned
@options.storage
@options.computing
@options.verbose
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The entry's folder.",
)
def enter(
    *,
    suite: str,
    settings: tuple[str, ...],
    scale: str | None,
    store: Store,
    storage: str | None,
    engine: str,
    address: str | None,
    workers: int | None,
    out: Path,
) -> None:
    """Make an entry of what asyncfl tune SUITE has tuned: final runs, then tables in a folder.

    Scenarios of which a study is not finished are left out. Finished final runs are not repeated.
    """
    from dataclasses import replace

    from asyncfl.commands.tune import driver_of, planned
    from asyncfl.leaderboard import entry
    from benchmarks import engine as engines
    from benchmarks import interrupts
    from reports.leaderboard.rules import FILE, Rules

    computes = engines.engine(engine, address, workers)
    campaign = planned(suite, settings, scale)
    design = entry.Design(suite, campaign, driver_of(campaign, computes, store, storage).ledgers)
    if not design.places:
        raise UserError(f"no scenario of {campaign.suite.name} is tuned to its end: asyncfl tune {suite}")
    tables = design.tables(design.rules(Rules.load(out) if (out / FILE).is_file() else None))
    named = planned(suite, [*settings, f"name={campaign.suite.spec.name}{entry.FINAL}"], scale)
    driver = driver_of(entry.final_campaign(design, tables, named), computes, store, storage)
    click.echo(f"{many(len(design.places), 'scenario')}, {many(driver.campaign.simulations, 'final run')}")
    interrupts.are_raised()
    try:
        driver.run(computes, lambda _: None)
    except KeyboardInterrupt:
        click.echo("\nStopped; the same command goes on.")
        sys.exit(interrupts.EXIT)
    whole = replace(tables, finals=entry.final_table(tables, design.places, driver.ledgers))
    entry.write(whole, out, campaign.suite.scale or campaign.suite.spec.name, campaign.suite)
    click.echo(f"Written: {out}")


@command.command()
@folder
@click.argument("more", nargs=-1, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--ruleset",
    type=click.Choice(["tuned", "one_setting"]),
    default="tuned",
    show_default=True,
    help="Which points count.",
)
@click.option(
    "--markdown",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the page and its figures there.",
)
def score(*, folder: Path, more: tuple[Path, ...], ruleset: str, markdown: Path | None) -> None:
    """Score the entries of FOLDER, by default those kept with the package, and of MORE folders beside it."""
    from reports.leaderboard.page import summary, write
    from reports.leaderboard.standing import standing, standing_table

    tables = _joined(folder, more)
    if markdown:
        click.echo(f"Written: {write(tables, markdown)}")
        return
    from benchmarks.tables import print_headed

    print_headed(*summary(standing_table(standing(tables, ruleset), tables)))


def _joined(folder: Path, more: tuple[Path, ...]) -> Tables:
    from reports.leaderboard.tables import Tables

    tables = Tables.load(folder)
    for other in more:
        tables = tables.beside(Tables.load(other), other)
    return tables


@command.command()
@folder
@click.option(
    "--entry", "entries", multiple=True, metavar="STRATEGY", help="Of this entry alone. May be repeated."
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the choice of runs.  [default: a fresh one]")
@options.allow_code
@options.data_dir
def verify(*, folder: Path, entries: tuple[str, ...], seed: int | None) -> None:
    """Check the digests of FOLDER's tables, and make a random tenth of each entry's runs again.

    Exits with 1 where anything differs.
    """
    from secrets import randbelow

    from asyncfl.leaderboard.verify import checks
    from fl_core.text import nearest
    from reports.leaderboard.tables import Tables, altered

    tables = Tables.load(folder)
    for name in entries:
        if name not in tables.entries:
            hint = f"{nearest(name, tables.entries)} There are: {', '.join(tables.entries)}"
            raise UserError(f"--entry: no strategy '{name}'{hint}")
    wrong = 0
    for name in altered(folder, tables.rules):
        wrong += 1
        click.echo(f"{folder / name}: missing, or not the table of the rules' digest")
    seed = randbelow(10**6) if seed is None else seed
    made = 0
    for check in checks(folder, tables, entries or tables.entries, seed):
        made += 1
        if check.faults:
            wrong += 1
            click.echo(f"{check.name}: {'; '.join(check.faults)}")
    click.echo(f"{many(made, 'run')} made again (--seed {seed}); {many(wrong, 'fault')}")
    sys.exit(min(1, wrong))


@command.command()
@click.argument("suite")
@options.store
def goals(suite: str, store: Store) -> None:
    """Print budgets and targets from the recorded runs of a pilot, as the scenarios of a suite."""
    from reports.leaderboard.goals import from_runs
    from reports.records.store import load

    store.must_exist()
    for scenario, own in from_runs(load(store.tracking_uri, suite).runs).items():
        click.echo(
            f"{scenario}: {{budget: {{time: {own.budget:g}, target: {own.hard:g}}}, target: {own.easy:g}}}"
        )
