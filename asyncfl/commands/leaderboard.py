"""`asyncfl leaderboard`: which strategies lead over many scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncfl import options
from benchmarks.errors import UserError
from benchmarks.tables import print_headed, print_text
from fl_core.schema import OF_STRATEGY, SEED, VARIANT
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.suite.tuned import TunedEntry
    from benchmarks.tracking.store import Store
    from reports.leaderboard.board import Leaderboard
    from reports.records.records import RecordedSuite

KEPT = (
    Path(__file__).parents[2] / "benchmarks" / "leaderboard"
)  # results kept in the repository, SUITE-SCALE-tuned.csv
CURRENT = KEPT / "1.0"  # the tables of the newest version
VERSION = "leaderboard"  # the suite of the versions
MAIN = "standard"  # the suite of the leaderboard; others have pages beside it


@click.command()
@click.argument("suite", required=False)
@options.store
@click.option("--keep", is_flag=True, help="Keep the results of SUITE with the package, for all to see.")
@click.option(
    "--with-kept", is_flag=True, help="Rank the strategies of SUITE among those whose results are kept."
)
@click.option(
    "--markdown",
    "folder_of_page",
    type=options.DIR,
    metavar="DIR",
    help="Write leaderboard.md and its figures there; of standard_X, leaderboard_X.md.",
)
def command(
    *,
    suite: str | None,
    store: Store,
    keep: bool,
    with_kept: bool,
    folder_of_page: Path | None,
) -> None:
    """Rank strategies over all scenarios of SUITE, as recorded in the store.

    Without SUITE: by the results that are kept with the package, those of the suites `standard` and
    `standard_…` with tuned rates.
    """
    from benchmarks.suite.suite import load
    from reports.leaderboard.board import Leaderboard

    if suite is None:
        if keep:
            raise UserError("--keep: name the suite whose results are to be kept")
        if with_kept:
            raise UserError("--with-kept: name the suite whose strategies are to be ranked among those kept")
        names = sorted({path.stem.partition("-")[0] for path in KEPT.glob(f"{MAIN}*.csv")} | {MAIN})
        boards = {
            name.replace(MAIN, "leaderboard"): Leaderboard.load(KEPT, name, load(name).description)
            for name in names
        }
    else:
        if keep and with_kept:
            raise UserError("--keep and --with-kept do not go together")
        boards = {"leaderboard": _recorded(suite, store, keep=keep, with_kept=with_kept)}
    for stem, board in boards.items():
        if folder_of_page:
            _write(board, folder_of_page, stem, suite, with_kept=with_kept)
        else:
            if len(boards) > 1:
                click.echo(f"{_title(stem)}\n")
            _print(board)


def _recorded(suite: str, store: Store, *, keep: bool, with_kept: bool) -> Leaderboard:
    """What the store has of a suite, maybe among what is kept of it."""
    from reports.leaderboard import results
    from reports.leaderboard.board import Leaderboard
    from reports.records.store import load

    store.must_exist()
    recorded = load(store.tracking_uri, suite)
    board = Leaderboard(results.results(recorded, _tuned(suite)), recorded.description)
    if board.runs.empty:
        raise UserError(f"no run of '{suite}' has ended in {recorded.uri}")
    path = KEPT / f"{suite}.csv"
    if with_kept:
        if not path.is_file():
            there = ", ".join(sorted(file.stem for file in KEPT.glob("*.csv")))
            raise UserError(f"--with-kept: no results of '{suite}' are kept, only those of {there}")
        must_be_those_kept(recorded)
        board = Leaderboard(results.among(results.load(path), board.runs), recorded.description)
    if keep:
        results.save(board.runs, path)
        click.echo(f"Kept: {path}")
    return board


def must_be_those_kept(recorded: RecordedSuite) -> None:
    """UserError if scenarios are not those of the shipped suite: a rank would mean nothing."""
    from benchmarks.suite.suite import load
    from benchmarks.tracking.entries import params_of

    name, _, scale = recorded.name.removesuffix(VARIANT).rpartition("-")
    shipped = {
        run.scenario: dict(params_of({"scenario": run.experiment.description()["scenario"]}))
        for run in load(name, scale=scale, tuned=False).runs()
    }
    for run in recorded.runs:
        if run.scenario not in shipped:
            raise UserError(f"--with-kept: {name} has no scenario '{run.scenario}'")
        kept = shipped[run.scenario]
        own = {
            key: value for key, value in run.params.items() if key != SEED and not key.startswith(OF_STRATEGY)
        }
        for key in kept | own:
            if own.get(key) != kept.get(key):
                raise UserError(
                    f"--with-kept: {run.strategy} · {run.scenario} ran with {key} {own.get(key)}, "
                    f"what is kept with {kept.get(key)}"
                )
    ran = {(run.strategy, run.scenario) for run in recorded.runs}
    for strategy in recorded.strategies:
        there = sum((strategy, scenario) in ran for scenario in shipped)
        if there < len(shipped):
            raise UserError(f"--with-kept: {strategy} has run in {there} of {many(len(shipped), 'scenario')}")


def _tuned(suite: str) -> Sequence[TunedEntry]:
    """What tuned a shipped suite; nothing for others."""
    from benchmarks.suite import tuned

    name = suite.removesuffix(VARIANT)
    path = tuned.FOLDER / f"{name}.yaml"
    return tuned.load(path, name).spec.tuned if name != suite and path.is_file() else ()


def _write(board: Leaderboard, folder: Path, stem: str, suite: str | None, *, with_kept: bool) -> None:
    from reports.leaderboard.figures import LEADERS, profile_figure, rank_figure
    from reports.leaderboard.markdown import page

    ranks, profiles = f"{stem}-ranks.svg", f"{stem}-profiles.svg"
    folder.mkdir(parents=True, exist_ok=True)
    rank_figure(board).save(folder / ranks)
    if len(board.ratios):
        leaders = board.overall.sort_values("score", ascending=False)["strategy"].head(LEADERS)
        profile_figure(board.ratios, leaders.tolist()).save(folder / profiles)
    among = "--with-kept" if with_kept else None
    command = " ".join(filter(None, ["asyncfl leaderboard", suite, among, "--markdown", str(folder)]))
    (folder / f"{stem}.md").write_text(page(board, _title(stem), command, ranks, profiles), encoding="utf-8")
    click.echo(f"Written: {folder / f'{stem}.md'}")


def _title(stem: str) -> str:
    """“Leaderboard: delay” of leaderboard_delay."""
    return stem.replace("_", ": ").capitalize()


def _print(board: Leaderboard) -> None:
    from reports import numbers

    overall = board.overall
    print_headed(
        ("strategy", "mean rank", "95 %", "score", "at the end (%)", "worst client (%)", "uploads to target"),
        [
            (
                row["strategy"],
                f"{row['rank']:.1f}",
                f"{row['low']:.1f} – {row['high']:.1f}",
                numbers.number(row["score"], 2),
                numbers.percent(row["value"]),
                numbers.percent(row["worst_client"]),
                f"{numbers.number(row['uploads'], 2)} ×",
            )
            for row in overall.to_dict("records")
        ],
    )
    first, *others = overall.loc[~overall["separated"], "strategy"]
    print_text(f"Not separated from {first}: {', '.join(others) or 'none'}.")
