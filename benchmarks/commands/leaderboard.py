"""`asyncfl leaderboard`: leading strategies, and the making, scoring and verification of entries."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options
from benchmarks.errors import UserError
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.engine import Engine
    from benchmarks.leaderboard.board import StudyOfScale
    from benchmarks.tracking.store import Store
    from reports.leaderboard.board_tables import BoardTables
    from reports.leaderboard.tables import Tables

POPULATIONS = "populations"  # the suite of version 2.0
BOARD = options.LEADERBOARD.with_name("2.0")


@click.group(invoke_without_command=True, short_help="Show which strategies lead; make and verify entries.")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Say which strategies lead; make, score and verify entries of the leaderboard.

    Without a command: score, of the entries kept with the package.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(score)


folder = click.argument("folder", default=options.LEADERBOARD, type=options.DIR)


@command.command()
@options.planned
@options.storage
@options.computing
@options.verbose
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=options.DIR,
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
    """Make an entry of what asyncfl tune SUITE has tuned: final and held-out runs, then tables in a folder.

    Scenarios of which a study is not finished are left out. Finished runs are not repeated. Where DIR has the
    tables of a workload of which nothing is tuned in the store, held-out runs alone are made.
    """
    from benchmarks import engine as engines
    from benchmarks import interrupts
    from benchmarks.commands.tune import driver_of, studies
    from benchmarks.leaderboard import entry
    from reports.leaderboard.rules import FILE, Rules
    from reports.leaderboard.workloads import Asked
    from tuning.plan import plan

    computes = engines.engine(engine, address, workers)
    asked = Asked(suite, settings, scale)
    campaign = plan(asked.loaded)
    campaign.check()
    entry.check(campaign)
    driver = driver_of(campaign, computes, store, storage)
    driver.read()
    design = entry.Design(asked, campaign, driver.studies)
    run = partial(studies, computes=computes, store=store, storage=storage)
    interrupts.are_raised()
    keep = partial(entry.write, folder=out, suite=campaign.suite)
    try:
        if design.places:
            earlier = Rules.load(out) if (out / FILE).is_file() else None
            tables = entry.with_finals(design, design.rules(earlier), run)
            keep(tables)  # held-out runs may take as long again
        else:
            tables = entry.kept(out, asked)
        keep(entry.with_held_out(asked, tables, run))
    except KeyboardInterrupt:
        click.echo("\nStopped. Rerun the same command to continue.")
        sys.exit(interrupts.EXIT)
    click.echo(f"Written: {out}")


@command.command()
@folder
@click.argument("more", nargs=-1, type=options.DIR)
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
    type=options.DIR,
    help="Write the page and its figures there.",
)
def score(*, folder: Path, more: tuple[Path, ...], ruleset: str, markdown: Path | None) -> None:
    """Score the entries of FOLDER, by default those kept with the package, and of MORE folders beside it."""
    from reports.leaderboard.page import write
    from reports.leaderboard.printed import summary
    from reports.leaderboard.standing import standing, standing_table

    tables = _joined(folder, more)
    if markdown:
        click.echo(f"Written: {write(tables, markdown)}")
        return
    from benchmarks.tables import print_headed, print_text
    from reports.leaderboard.page import what_is_scored

    print_text(what_is_scored(tables))
    head, rows = summary(standing_table(standing(tables, ruleset), tables))
    print_headed(head, [(name.strip("*"), *row) for name, *row in rows])


def _joined(folder: Path, more: tuple[Path, ...]) -> Tables:
    joined = _unaltered(folder)
    for tables in more:
        joined = joined.beside(_unaltered(tables), tables)
    return joined


def _unaltered(folder: Path) -> Tables:
    from reports.leaderboard.tables import Tables, altered

    tables = Tables.load(folder)
    if wrong := altered(folder, tables.rules):
        raise UserError(wrong[0])
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
    """Check digests, budgets and targets of FOLDER, and make a random tenth of each entry's runs again.

    Exits with 1 where anything differs.
    """
    from secrets import randbelow

    from benchmarks.leaderboard.verify import checks, other_goals, strategies
    from fl_core.import_guard import guarded, not_own
    from fl_core.text import nearest
    from reports.leaderboard.tables import Tables, altered
    from reports.leaderboard.workloads import suites

    tables = Tables.load(folder)
    for name in entries:
        if name not in tables.entries:
            hint = f"{nearest(name, tables.entries)} Available: {', '.join(tables.entries)}"
            raise UserError(f"--entry: no strategy '{name}'{hint}")
    other_tables = altered(folder, tables.rules)
    wrong = len(other_tables)
    for line in other_tables:
        click.echo(line)
    seed = randbelow(10**6) if seed is None else seed
    reruns = 0
    with guarded(next(filter(None, map(not_own, sorted(folder.iterdir()))), "")):
        known_suites = suites(tables.rules, strategies(folder))
        for name in other_goals(known_suites, tables.rules):
            wrong += 1
            click.echo(f"{name}: the rules have another budget or targets than the suite")
        for check in checks(known_suites, tables, entries or tables.entries, seed):
            reruns += 1
            if check.faults:
                wrong += 1
                click.echo(f"{check.name}: {'; '.join(check.faults)}")
    click.echo(f"{many(reruns, 'run')} made again (--seed {seed}); {many(wrong, 'fault')}")
    sys.exit(min(1, wrong))


@command.command(name="run")
@options.store
@options.storage
@options.computing
@options.verbose
@click.option("--suite", default=POPULATIONS, show_default=True, metavar="SUITE", help="With the entries.")
@click.option("--scale", "scales", multiple=True, metavar="NAME", help="A scenario.  [default: all]")
@click.option(
    "--study", "numbers", multiple=True, type=click.IntRange(1, 8), help="By number.  [default: 1 to 4]"
)
@click.option("--entry", "entries", multiple=True, metavar="STRATEGY", help="By label.  [default: all]")
@click.option(
    "--with",
    "own",
    multiple=True,
    metavar="STRATEGY",
    help="Your own strategy in place of the suite's, such as mine.strategies:Mine. May be repeated.",
)
@click.option("--copies", is_flag=True, help="Run the copies, which show what luck alone does.")
@click.option("--out", metavar="DIR", type=options.DIR, default=BOARD, help="Folder of the tables.")
@click.option("--dry-run", is_flag=True, help="Show how many runs are missing.")
def run_studies(
    *,
    suite: str,
    scales: tuple[str, ...],
    numbers: tuple[int, ...],
    entries: tuple[str, ...],
    own: tuple[str, ...],
    copies: bool,
    store: Store,
    storage: str | None,
    engine: str,
    address: str | None,
    workers: int | None,
    out: Path,
    dry_run: bool,
) -> None:
    """Run the missing studies of the board, and the final runs of the best trials.

    What the tables of DIR have is not run again. Tables are written after every few entries, so the command
    can be stopped at any time; the same command goes on.
    """
    from benchmarks import engine as engines
    from benchmarks import interrupts
    from benchmarks.leaderboard import board
    from reports.leaderboard.board_tables import BoardTables

    numbers = numbers or (board.COPY_STUDIES if copies else board.STUDIES)
    tables = BoardTables.load(out)
    parts = [
        part
        for number in numbers
        for scale in scales or board.scales(suite)
        for part in board.missing(board.StudyOfScale(suite, scale, number, entries, own), tables)
    ]
    if dry_run:
        counts = [part.simulations for part in parts]
        click.echo(f"{many(sum(counts), 'run')} in {many(len(parts), 'part')}")
        return
    computes = engines.engine(engine, address, workers)
    interrupts.are_raised()
    out.mkdir(parents=True, exist_ok=True)
    try:
        for at, part in enumerate(parts):
            click.echo(f"[{at + 1}/{len(parts)}] {part.scale}, study {part.number}: {', '.join(part.labels)}")
            tables = _with_study(part, tables, computes, store, storage)
            tables.save(out)
    except KeyboardInterrupt:
        click.echo("\nStopped; the same command goes on.")
        sys.exit(interrupts.EXIT)
    click.echo(f"Written: {out}")


def _with_study(
    study: StudyOfScale, tables: BoardTables, computes: Engine, store: Store, storage: str | None
) -> BoardTables:
    """Return tables with the trials and final runs of a study."""
    from benchmarks.commands.tune import studies
    from benchmarks.errors import warn
    from benchmarks.leaderboard import board
    from benchmarks.runs.progress import display
    from benchmarks.runs.session import Session
    from reports.records.store import load

    results = studies(study.campaign(), computes, store, storage)
    for line in board.failed(results):
        warn(line)
    finals = study.finals(board.winners(results))
    Session(finals, store, baselines=False).run(computes, partial(display, quiet=True))
    recorded = load(store.tracking_uri, finals.name, curves_only=True)
    return tables.with_rows(trials=study.rows_of_trials(results), finals=study.rows_of_finals(recorded))


@command.command()
@click.argument("suite")
@options.store
def goals(suite: str, store: Store) -> None:
    """Print budgets and targets from the recorded runs of a pilot, as the scenarios of a suite."""
    from benchmarks.commands.report import load
    from reports.leaderboard.goals import from_runs

    for scenario, scenario_goal in from_runs(load(store, suite).runs).items():
        click.echo(
            f"{scenario}: {{budget: {{time: {scenario_goal.budget:g}, target: {scenario_goal.hard:g}}}, "
            f"target: {scenario_goal.easy:g}}}"
        )


@command.command()
@click.argument("scales", nargs=-1)
@click.option("--suite", default=POPULATIONS, show_default=True, metavar="SUITE", help="With the scales.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: one a core]")
@options.data_dir
def pilot(*, scales: tuple[str, ...], suite: str, workers: int | None) -> None:
    """Tune FedAvg in each of SCALES, and print the target and budget that follow, as keys of the scale."""
    from benchmarks.device import processes
    from benchmarks.leaderboard import board
    from benchmarks.leaderboard.goals import goal

    for scale in scales or board.scales(suite):
        scale_goal = goal(suite, scale, workers or processes())
        click.echo(
            f"{scale}: {{problem.target: {scale_goal.target:g}, budget.time: {scale_goal.budget:g}, "
            f"tuning.budget: {{time: {scale_goal.budget:g}, target: {scale_goal.tuning_target:g}}}}}"
        )
        edges = f"; at an edge: {', '.join(scale_goal.at_edge)}" if scale_goal.at_edge else ""
        click.echo(
            f"  # FedAvg meets it after {scale_goal.time:.4g}, {scale_goal.share:.0%} of its runs do; "
            f"best {scale_goal.best}, fastest {scale_goal.fastest}{edges}"
        )


@command.command()
@click.option("--suite", default=POPULATIONS, show_default=True, metavar="SUITE", help="With the budgets.")
@click.option(
    "--tables",
    "folders",
    metavar="DIR",
    multiple=True,
    type=options.DIR,
    default=[BOARD],
    help="Folder of tables. May be repeated, such as for your own entries.",
)
@click.option("--markdown", metavar="DIR", type=options.DIR, required=True, help="Where the page is written.")
def page(*, suite: str, folders: tuple[Path, ...], markdown: Path) -> None:
    """Write the page of the board: leaders and rank groups of each population, and how sure they are."""
    from benchmarks.leaderboard import board
    from reports.leaderboard.board_tables import BoardTables
    from reports.leaderboard.populations_page import write

    rows = BoardTables.load(folders[0])
    for folder in folders[1:]:
        rows = rows.beside(BoardTables.load(folder))
    if rows.finals.empty:
        raise UserError(f"{folders[0]}: there are no final runs: asyncfl leaderboard run --out {folders[0]}")
    click.echo(f"Written: {write(rows, board.goals(suite, rows.scales), markdown)}")
