"""`asyncfl evidence`: evidence for a strategy as requested by reviewers, measured and written down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.commands import options
from benchmarks.commands.leaderboard import SUITE, compute, cost, joined_tables, rows, scale_option
from benchmarks.errors import UserError

if TYPE_CHECKING:
    from benchmarks.leaderboard.board import StudyOfScale
    from benchmarks.mlflow_store.store import Store
    from reports.leaderboard.board_tables import BoardTables


@click.command(short_help="Compare a strategy of your own with the shipped ones.")
@click.argument("strategy")
@click.option(
    "--suite",
    default=SUITE,
    metavar="SUITE",
    show_default=True,
    help="Suite with scenarios, baselines and tuning.",
)
@scale_option()
@click.option(
    "--against", multiple=True, metavar="LABEL", help="A baseline of SUITE. May be repeated.  [default: all]"
)
@options.allow_code
@options.store
@options.data_dir
@options.storage
@options.workers
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=options.DIR,
    help="Folder for page, figures, tables and manifest.",
)
@options.dry_run
@options.verbose
def command(
    *,
    strategy: str,
    suite: str,
    scales: tuple[str, ...],
    against: tuple[str, ...],
    store: Store,
    storage: str | None,
    workers: int | None,
    out: Path,
    dry_run: bool,
) -> None:
    """Compare STRATEGY with baselines under the rules of the leaderboard.

    All get the same four studies of tuning, then final runs on fresh seeds and on the other half of the test
    data. The result is a page with one conclusion, from rank groups, and a manifest. The stored runs of the
    leaderboard are not repeated.
    """
    from benchmarks import engine as engines
    from benchmarks.device import processes
    from benchmarks.leaderboard import board
    from benchmarks.leaderboard.evidence import Evidence
    from reports.leaderboard import findings as findings_page
    from reports.leaderboard.scores import board_scores

    tables = joined_tables(suite, [out])
    asked = Evidence(strategy, suite, scales, against, joined_tables(suite))
    parts = [part for study in asked.studies for part in board.missing(study, tables)]
    click.echo(cost(parts, tables, workers or processes()))
    if dry_run:
        return
    computes = engines.engine("local", None, workers)

    def run(study: StudyOfScale, tables: BoardTables) -> dict[str, list[dict[str, Any]]]:
        result = rows(study, tables, computes, store, storage)
        if asked.label in study.labels and asked.label not in {row["strategy"] for row in result["finals"]}:
            raise UserError(
                f"{asked.label}: all trials of a study ended in error. Correct the strategy, and rerun the "
                "same command"
            )
        return result

    tables = asked.compared(compute(parts, asked.compared(tables), out, run))
    tables.save(out)
    scores = board_scores(tables, board.goals(suite, tables.scales))
    entered_boards = {name: own for name, own in scores.items() if asked.label in own.entries}
    if not entered_boards:
        raise UserError(
            f"{asked.label}: no population has all runs of this strategy, of FedAvg and of another "
            "baseline. Solve the problems in the warnings above, and rerun the same command"
        )
    findings = findings_page.Findings(asked.label, entered_boards)
    page = findings_page.write(findings, asked.manifest(findings, out), out)
    click.echo(f"\n{findings.conclusion()}\n\nWritten: {page}")
