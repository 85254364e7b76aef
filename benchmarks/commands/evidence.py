"""`asyncfl evidence`: evidence for a strategy as requested by reviewers, measured and written down."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import interrupts
from benchmarks.commands import options
from benchmarks.errors import warn
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.tracking.store import Store


@click.command(short_help="Compare a strategy of your own with the shipped ones.")
@click.argument("strategy")
@click.option(
    "--suite",
    default="leaderboard",
    metavar="SUITE",
    show_default=True,
    help="Scenarios, baselines and the design of tuning.",
)
@options.scale
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
    type=click.Path(file_okay=False, path_type=Path),
    help="Where page, appendix, tables and manifest are written.",
)
@options.dry_run
@options.verbose
def command(
    *,
    strategy: str,
    suite: str,
    scale: str | None,
    against: tuple[str, ...],
    store: Store,
    storage: str | None,
    workers: int | None,
    out: Path,
    dry_run: bool,
) -> None:
    """Compare STRATEGY, one of your own or shipped, with baselines as a careful reviewer asks for.

    The same design of tuning for all, fresh seeds, paired intervals, one setting beside tuned ones,
    a shorter horizon, an ablation of its own fields; then a page, a LaTeX appendix, a manifest and
    the paragraph that may be claimed. Finished runs are not repeated.
    """
    from benchmarks import engine as engines
    from benchmarks.commands.tune import studies
    from benchmarks.leaderboard import entry
    from benchmarks.leaderboard.evidence import Evidence
    from reports.leaderboard import appendix

    asked = Evidence(strategy, suite, scale, against)
    campaign = asked.campaign
    campaign.check()
    baselines, scenarios = (
        len(asked.loaded.spec.strategies) - 1,
        {study.scenario for study in campaign.studies},
    )
    click.echo(
        f"{asked.strategy} and {many(baselines, 'baseline')} in {many(len(scenarios), 'scenario')}; "
        f"ablation: {', '.join(asked.ablation.off) or 'no field turns a part off'}"
    )
    for scenario, reason in asked.loaded.left_out.items():
        click.echo(f"Left out: {scenario}: {reason}")
    click.echo(f"Simulations: {campaign.simulations:,} of tuning, {asked.final_simulations:,} final ones")
    if dry_run:
        return
    computes = engines.engine("local", None, workers)
    interrupts.are_raised()
    try:
        findings = asked.findings(partial(studies, computes=computes, store=store, storage=storage))
    except KeyboardInterrupt:
        click.echo("\nStopped. Rerun the same command to continue.")
        sys.exit(interrupts.EXIT)
    digests = entry.write(findings.tables, out, asked.loaded)
    appendix.write(findings, asked.manifest(findings, digests), out)
    click.echo(f"\n{findings.claim()}\n\nWritten: {out / appendix.PAGE}, {out / appendix.APPENDIX}")
    if failed := findings.ablation_failed:
        warn(f"the ablation is incomplete: {failed}. Fix the cause and rerun the same command")
        sys.exit(1)
