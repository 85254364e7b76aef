"""`asyncfl leaderboard`: which strategies lead for which clients; runs, pages and verification.

Fixed: the files written: tables of the board, and the pages that `tox run -e reproduce` compares.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.commands import options
from benchmarks.errors import UserError
from fl_core.text import duration, many

if TYPE_CHECKING:
    from benchmarks.engine import Engine
    from benchmarks.leaderboard.board import StudyOfScale
    from benchmarks.mlflow_store.store import Store
    from reports.leaderboard.board_tables import BoardTables
    from reports.leaderboard.page import Board

SUITE = "populations"  # the board's suite


@click.group(invoke_without_command=True, short_help="Show which strategies lead; run and verify entries.")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show which strategies lead for which clients; run and verify entries of the leaderboard.

    Without a command: show the rank groups of the leaderboard in the package.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(page)


suite_option = click.option(
    "--suite",
    default=SUITE,
    show_default=True,
    metavar="SUITE",
    help="Suite with entries, scales and targets.",
)


def scale_option(default: str = "all but held-out ones") -> Callable[[Any], Any]:
    """Return the option for the scales, with a default in words."""
    text = f"A scenario. May be repeated.  [default: {default}]"
    return click.option("--scale", "scales", multiple=True, metavar="NAME", help=text)


entry_option = click.option(
    "--entry",
    "entries",
    multiple=True,
    metavar="STRATEGY",
    help="Label of an entry of SUITE, or a strategy of your own, such as mine.strategies:Mine. May be "
    "repeated.  [default: all entries]",
)


def study_option(default: str = "1 to 4") -> Callable[[Any], Any]:
    """Return the option for the numbers of studies, with a default in words."""
    text = f"Number of a study; 5 to 8 are studies of copies. May be repeated.  [default: {default}]"
    return click.option("--study", "numbers", multiple=True, type=click.IntRange(1, 8), help=text)


@command.command(name="run")
@suite_option
@scale_option()
@study_option()
@entry_option
@click.option("--copies", is_flag=True, help="Run copies of entries, which show the effect of chance alone.")
@click.option(
    "--out",
    metavar="DIR",
    type=options.DIR,
    default=options.LEADERBOARD,
    help="Folder of the tables.  [default: the package's tables]",
)
@options.dry_run
@options.allow_code
@options.store
@options.data_dir
@options.storage
@options.computing
@options.verbose
def run_studies(
    *,
    suite: str,
    scales: tuple[str, ...],
    numbers: tuple[int, ...],
    entries: tuple[str, ...],
    copies: bool,
    store: Store,
    storage: str | None,
    engine: Engine,
    out: Path,
    dry_run: bool,
) -> None:
    """Run the missing studies of entries, and the final runs of the best trials.

    Runs in the tables of DIR are not repeated. Tables are written after every few entries, so the command
    can be stopped at any time; the same command continues.
    """
    from benchmarks.device import processes
    from benchmarks.leaderboard import board
    from reports.leaderboard.board_tables import BoardTables

    if out == options.LEADERBOARD and any(":" in entry for entry in entries):
        raise UserError("--out is missing: name a folder for the tables of your own strategy")
    numbers = numbers or (board.COPY_STUDIES if copies else board.STUDIES)
    tables = BoardTables.load(out)
    studies = [
        board.StudyOfScale(suite, scale, number, entries)
        for scale in scales or board.scales(suite)
        for number in numbers
    ]
    parts = [part for study in studies for part in board.missing(study, tables)]
    click.echo(cost(parts, tables, engine.workers or processes()))
    if not dry_run:
        missing_rows = partial(rows, computes=engine, store=store, storage=storage)
        compute(parts, tables, out, missing_rows)
        click.echo(f"Written: {out}")


def cost(parts: Sequence[StudyOfScale], tables: BoardTables, processes: int) -> str:
    """Return a sentence with the number of runs and an upper limit of the duration.

    The limit is extrapolated from the first part's runs to their budget; most trials end earlier, at the
    target.
    """
    from benchmarks.runs import estimate

    count = sum(part.simulations(tables) for part in parts)
    size = f"{many(count, 'run')} in {many(len(parts), 'part')}"
    if not parts:
        return f"{size}: the tables have them all"
    runs = parts[0].loaded("estimate", parts[0].strategies).runs()
    seconds = estimate.seconds(runs, 1) / len(runs) * count / processes
    return f"{size}, at most about {duration(seconds)} (worker processes: {processes})"


def compute(
    parts: Sequence[StudyOfScale],
    tables: BoardTables,
    out: Path,
    rows: Callable[[StudyOfScale, BoardTables], Mapping[str, Any]],
) -> BoardTables:
    """Compute parts of studies and write tables after each; return all tables.

    Args:
        parts: Studies of a few entries each.
        tables: Tables so far.
        out: Folder of the tables.
        rows: Function that computes the missing rows of a part, by table.
    """
    from benchmarks import signals_and_streams

    out.mkdir(parents=True, exist_ok=True)
    with signals_and_streams.resumable(lambda: "finished studies are saved."):
        for at, part in enumerate(parts):
            click.echo(f"[{at + 1}/{len(parts)}] {part.place}, study {part.number}: {', '.join(part.labels)}")
            tables = tables.with_rows(**rows(part, tables))
            tables.save(out)
    return tables


def rows(
    study: StudyOfScale, tables: BoardTables, computes: Engine, store: Store, storage: str | None
) -> dict[str, list[dict[str, Any]]]:
    """Compute a study, and return rows of trials and final runs, by table.

    Entries whose trials the tables have are not tuned again: their final runs alone are computed.
    """
    from benchmarks.commands.tune import studies
    from benchmarks.leaderboard import board
    from benchmarks.runs.progress import display
    from benchmarks.runs.session import Session
    from reports.records.suite_reader import load

    trials, winners = [], study.winners(tables)
    if not study.held_out and (untuned := study.without(winners)):
        results = studies(untuned.campaign(), computes, store, storage)
        trials = [*untuned.rows_of_trials(results)]
        winners |= board.winners(results)
    if not winners:
        return {"trials": trials, "finals": []}
    finals = study.finals(winners)
    Session(finals, store, baselines=False).run(computes, partial(display, quiet=True))
    recorded = load(store.tracking_uri, finals.name, curves_only=True)
    return {"trials": trials, "finals": [*study.rows_of_finals(recorded)]}


@command.command()
@click.argument("folder", default=options.LEADERBOARD, type=options.EXISTING_DIR)
@suite_option
@scale_option("all")
@study_option("all")
@entry_option
@click.option(
    "--workers", type=click.IntRange(min=1), help="Number of processes.  [default: one for each core]"
)
@options.dry_run
@options.allow_code
@options.data_dir
def verify(
    *,
    folder: Path,
    suite: str,
    scales: tuple[str, ...],
    numbers: tuple[int, ...],
    entries: tuple[str, ...],
    workers: int | None,
    dry_run: bool,
) -> None:
    """Compute stored final runs of FOLDER again, by default the package's board, and compare them.

    Exit code 1 if a run differs.
    """
    from benchmarks.device import processes
    from benchmarks.leaderboard import board
    from benchmarks.leaderboard.verify import repeated, stored_runs
    from benchmarks.runs import estimate
    from reports.leaderboard.board_tables import BoardTables

    tables = BoardTables.load(folder)
    studies = [
        board.StudyOfScale(suite, scale, number, entries)
        for scale in scales or board.all_scales(suite)
        for number in numbers or (*board.STUDIES, *board.COPY_STUDIES)
    ]
    stored = stored_runs([study for study in studies if study.place in tables.scales], tables)
    if not stored:
        raise UserError(
            f"{folder}: no final run of these scales and studies. Choose others with --scale and --study"
        )
    count = workers or processes()
    seconds = estimate.seconds([run.planned for run in stored], count)
    click.echo(f"{many(len(stored), 'final run')}, about {duration(seconds)} (worker processes: {count})")
    if dry_run:
        return
    wrong = 0
    for at, (run, differences) in enumerate(repeated(stored, min(count, len(stored))), 1):
        wrong += bool(differences)
        click.echo(f"[{at}/{len(stored)}] {run.name}: {'; '.join(differences) or 'equal'}")
    click.echo(f"{many(len(stored), 'run')} repeated, {wrong} with differences")
    sys.exit(min(1, wrong))


@command.command()
@click.argument("scales", nargs=-1)
@suite_option
@click.option(
    "--workers", type=click.IntRange(min=1), help="Number of processes.  [default: one for each core]"
)
@options.data_dir
def pilot(*, scales: tuple[str, ...], suite: str, workers: int | None) -> None:
    """Tune FedAvg in each of SCALES, and print the target and budget that follow, as keys of the scale."""
    from benchmarks.device import processes
    from benchmarks.leaderboard import board
    from benchmarks.leaderboard.targets import run_pilot

    for scale in scales or board.scales(suite):
        result = run_pilot(suite, scale, workers or processes())
        click.echo(
            f"{scale}: {{problem.target: {result.target:g}, budget.time: {result.budget:g}, "
            f"tuning.budget: {{time: {result.budget:g}, target: {result.tuning_target:g}}}}}"
        )
        edges = f"; at an edge: {', '.join(result.at_edge)}" if result.at_edge else ""
        click.echo(
            f"  # FedAvg meets the target after {result.time:.4g}, in {result.share:.0%} of "
            f"its runs; best {result.best}, fastest {result.fastest}{edges}"
        )


@command.command()
@suite_option
@click.option(
    "--tables",
    "folders",
    metavar="DIR",
    multiple=True,
    type=options.EXISTING_DIR,
    help="Folder of tables, such as those of your own entry. May be repeated. With the default suite "
    "they are added to the package's tables.",
)
@click.option("--markdown", metavar="DIR", type=options.DIR, help="Write the page and its figures to DIR.")
def page(*, suite: str = SUITE, folders: tuple[Path, ...] = (), markdown: Path | None = None) -> None:
    """Show the rank groups of each population, or write the page of the board."""
    from benchmarks.terminal_output import print_headed, print_text
    from reports.leaderboard.page import certainty, limits, matrix, write

    board_shown = whole_board(suite, folders)
    if markdown:
        click.echo(f"Written: {write(board_shown, markdown)}")
        return
    print_text(limits(board_shown))
    head, rows = matrix(board_shown.scores)
    print_headed(head, [[cell.replace("**", "") for cell in row] for row in rows])
    print_headed(*certainty(board_shown.scores))


def whole_board(suite: str = SUITE, folders: Sequence[Path] = ()) -> Board:
    """Return the board of a suite, from tables in folders and, for the board's suite, the package's.

    Raises:
        UserError: There are no final runs, or no two entries that can be compared.
    """
    import pandas as pd

    from benchmarks import yaml_io
    from benchmarks.leaderboard import board
    from reports.leaderboard.page import Board

    tables = joined_tables(suite, folders)
    studies = [board.StudyOfScale(suite, scale, 1) for scale in board.scales(suite)]
    result = Board(
        tables,
        board.goals(suite, tables.scales),
        [study.place for study in studies],
        studies[0].labels,
    )
    if suite == SUITE and (rules := options.LEADERBOARD / "rules.yaml").is_file():
        samplers = pd.read_csv(options.LEADERBOARD / "samplers.csv")
        result = replace(result, samplers=samplers, data=yaml_io.read(rules)["data"])
    if not result.scores:
        raise UserError(
            f"{', '.join(map(str, folders)) or options.LEADERBOARD}: no population has two studies "
            f"of FedAvg and of another entry. Run them with asyncfl leaderboard run --suite {suite}"
        )
    return result


def joined_tables(suite: str = SUITE, folders: Sequence[Path] = ()) -> BoardTables:
    """Return the tables of folders and, for the board's suite, of the package, together."""
    from reports.leaderboard.board_tables import BoardTables

    shipped = [options.LEADERBOARD] if suite == SUITE else []
    return BoardTables.load(*shipped, *folders)
