"""`asyncfl check`: write a baseline of results, or report regressions against a baseline; for CI.

Fixed: exit codes, and the baseline file, which CI keeps.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options
from benchmarks.errors import UserError, must_be_ours, summarised, users_mistake, warn
from benchmarks.redaction import command_line, redacted
from benchmarks.terminal_output import print_rich, print_text
from fl_core.import_guard import place
from fl_core.text import many

if TYPE_CHECKING:
    from benchmarks.mlflow_store.store import Store
    from benchmarks.suite.suite import PlannedRun
    from reports.gate.baseline import Acceptance, Baseline


@click.command(short_help="Compare recorded runs of SUITE with a baseline, or write it.")
@options.planned
@click.option("--no-speed", is_flag=True, help="Do not measure how fast the strategies are simulated.")
@click.option("--quality-only", is_flag=True, help="Check only whether results are as good.")
@click.option(
    "--reproducibility-only",
    is_flag=True,
    help="Check only whether schedules and golden values are the same.",
)
@click.option(
    "--baseline",
    "file",
    type=options.FILE,
    help="The baseline.  [default: the shipped one; with --write or --update, DIR/baselines/SUITE.json]",
)
@click.option(
    "--write", is_flag=True, help="Write the recorded results as a new baseline; nothing is compared."
)
@click.option(
    "--update",
    is_flag=True,
    help="Accept the recorded results into the baseline, with an entry on improvements and other changes.",
)
@click.option(
    "--accept-worse", metavar="REASON", help="With --update: also accept regressions, and record the reason."
)
@click.option(
    "--tolerance",
    type=options.Finite(min=0),
    help="Relative difference of golden values that counts as rounding.  [default: 3e-06]",
)
@click.option("--junit", type=options.FILE, help="Write the checks as JUnit XML.")
@click.option("--summary", type=options.FILE, help="Write a summary as Markdown.")
def command(
    *,
    suite: str,
    settings: tuple[str, ...],
    scale: str | None,
    store: Store,
    no_speed: bool,
    quality_only: bool,
    reproducibility_only: bool,
    file: Path | None,
    write: bool,
    update: bool,
    accept_worse: str | None,
    tolerance: float | None,
    junit: Path | None,
    summary: Path | None,
) -> None:
    """Compare the recorded runs of SUITE with a baseline, or write it.

    Final metric, updates to the target, schedule and losses of every run are read from MLflow, and only speed
    is measured here: call asyncfl run SUITE first, with a new --store, since recorded runs are not repeated.

    Quality, exit code 1: final metric, final loss and updates to the target are compared seed by seed. A
    strategy is worse if all its seeds are worse by more than their spread, or if the interval of the
    differences excludes 0, or if it takes 1.5 times as long, relative to the yardstick.

    Reproducibility, exit code 3: schedules must equal the recorded ones, and losses up to rounding. Changed
    values of a strategy that improved pass; accept them with --update.
    """
    from benchmarks.suite.suite import load
    from reports.gate import baseline, gate
    from reports.gate import output as gate_output

    comparing = (quality_only, reproducibility_only, junit, summary, tolerance is not None)
    if (write or update) and (any(comparing) or (write and update)):
        raise click.UsageError(
            "--write and --update cannot be combined with each other, or with the options of a "
            "comparison: --quality-only, --reproducibility-only, --tolerance, --junit, --summary"
        )
    if accept_worse is not None and not (update and accept_worse.strip()):
        raise click.UsageError(
            "--accept-worse needs a reason and --update, such as --update --accept-worse 'new data'"
        )
    if quality_only and reproducibility_only:
        raise UserError(
            "--quality-only and --reproducibility-only exclude each other. Leave out both to check both"
        )
    if write or update:
        planned = load(suite, settings, scale).runs()
        path = file or store.folder / "baselines" / f"{planned[0].suite}.json"
        reason = (accept_worse or "").strip()
        _write(planned, store, path, update=update, reason=reason, no_speed=no_speed)
        return
    with _errors_in_reports(Path(suite).stem, junit, summary):
        planned = load(suite, settings, scale).runs()
        path = file or baseline.shipped(planned[0].suite)
        old = baseline.read(path)
        baseline.must_fit(old, planned, path)
        baseline.must_have_spread(old)
        store.must_exist()
        new = baseline.take(store.tracking_uri, planned)
        _warn_of_old_records(new)
        if old.speed and not (no_speed or reproducibility_only):
            new = new.model_copy(update={"speed": speeds(planned, old.speed)})
        asked = {
            gate.GateQuestion.QUALITY: not reproducibility_only,
            gate.GateQuestion.REPRODUCIBILITY: not quality_only,
        }
        limit = gate.GOLDEN_TOLERANCE if tolerance is None else tolerance
        checks = gate.compare(old, new, [question for question, wanted in asked.items() if wanted], limit)
        accept = ""
        if any(check.finding is not gate.Finding.SAME for check in checks):
            print_rich(gate_output.table(checks))
            words = [
                *(["--scale", scale] if scale else []),
                *chain(*(("--set", text) for text in settings)),
                *("--baseline", os.path.relpath(path)),
                *store.options,
            ]
            all_checks = gate.compare(old, new, tolerance=limit)  # whatever was asked here: --update asks all
            accept = gate_output.to_accept(all_checks, command_line(["asyncfl", "check", suite, *words]))
        print_text(gate_output.how_compared(old, new, limit))
        print_text(gate.verdict(checks, new.suite))
        if accept:
            print_text(accept.replace("`", ""))
        if junit:
            gate_output.write(gate_output.junit(checks, new), junit)
        if summary:
            gate_output.write(gate_output.markdown(checks, old, new, accept, limit), summary)
    sys.exit(gate.exit_code(checks))


@contextmanager
def _errors_in_reports(suite: str, junit: Path | None, summary: Path | None) -> Iterator[None]:
    """Write an error of the context also into the reports, to be shown by CI; refuse foreign files."""
    from reports.gate import output as gate_output

    reports = [
        (report, mark, text)
        for report, mark, text in (
            (junit, gate_output.JUNIT, gate_output.junit_of_error),
            (summary, gate_output.SUMMARY, gate_output.markdown_of_error),
        )
        if report
    ]
    try:
        for report, mark, _ in reports:
            must_be_ours(report, mark)
        yield
    except (Exception, SystemExit) as error:  # SystemExit of the user's code
        lines = users_mistake(error)
        cause: BaseException = error
        while not place(cause) and (origin := cause.__cause__ or cause.__context__):
            cause = origin
        trace = "\n".join(getattr(error, "__notes__", ()))
        if lines is None or place(cause):  # a bug, or raised in a file of the user's own
            trace = redacted("".join(traceback.format_exception(cause if place(cause) else error)))
        texts = suite, lines or (summarised(error),), trace
        for report, mark, text in reports:
            with suppress(UserError):  # the error that is being raised matters more
                must_be_ours(report, mark)
                gate_output.write(text(*texts), report)
        raise


def _write(
    planned: Sequence[PlannedRun], store: Store, path: Path, *, update: bool, reason: str, no_speed: bool
) -> None:
    """Write the results of recorded runs as a baseline, and show how much worse later runs may be.

    Args:
        planned: Runs of the suite.
        store: Where they are recorded.
        path: Of the baseline.
        update: Whether to keep the old baseline's history; without it the file is overwritten.
        reason: Of the user for accepting worse results; empty if none may be worse.
        no_speed: Whether to leave out the speed.
    """
    from reports.gate import baseline, gate
    from reports.gate import output as gate_output

    must_be_ours(path, '"format": 1')
    old = baseline.read(path) if update else None
    if not update and path.is_file() and (history := baseline.read(path).accepted):
        entries = many(len(history), "entry")
        warn(f"{path}: --write drops its history of {entries} and its first baseline; --update keeps them")
    if old:
        baseline.must_fit(old, planned, path)
    store.must_exist()
    taken = baseline.take(store.tracking_uri, planned)
    baseline.must_have_spread(taken)
    if not no_speed:
        names = {run.strategy for run in planned}
        speed = speeds(planned, old.speed) if old and old.speed else measured(planned, names)
        taken = taken.model_copy(update={"speed": speed})
    if old:
        first = old.first_runs or old.runs
        since = gate.compare(old.model_copy(update={"runs": first, "reference_runs": ()}), taken)
        taken = gate.update(old, taken, gate.compare(old, taken), reason)
        new = taken.accepted[len(old.accepted) :]
        for line in new:
            _show(line)
        if not new:
            click.echo("No differences from the previous baseline.")
        if moved := [check for check in since if any(check.seeds)]:
            click.echo("Since the first baseline:")
            print_rich(gate_output.quality(moved))
    baseline.write(taken, path)
    click.echo(f"Baseline of {many(len(planned), 'run')}: {path}")
    click.echo(
        "Tolerances: the check fails if every seed is worse by more than this, or if the seeds "
        "agree on a smaller decline."
    )
    print_rich(gate_output.allowed(gate.compare(taken, taken)))


def _show(line: Acceptance) -> None:
    """Print the changes accepted into a baseline."""
    for word, texts in (("Better", line.better), ("Worse", line.worse), ("Other values", line.other)):
        for text in texts:
            click.echo(f"{word}: {text}")
    if line.reason:
        click.echo(f"Accepted as worse: {line.reason}")


def measured(planned: Sequence[PlannedRun], strategies: Collection[str]) -> dict[str, float]:
    """Measure the speed of the given strategies, as ratios to the yardstick."""
    from benchmarks.speed import ratios

    click.echo(
        f"measuring the speed of {many(len(strategies), 'strategy')} relative to the yardstick", err=True
    )
    return ratios(planned, strategies)


def speeds(planned: Sequence[PlannedRun], baseline_speeds: dict[str, float]) -> dict[str, float]:
    """Return current speeds: strategies measured as too slow are repeated, and the better speed counts."""
    from reports.gate.gate import too_slow

    ratios = measured(planned, baseline_speeds)
    slow = too_slow(baseline_speeds, ratios)
    repeated = measured(planned, slow) if slow else {}
    return {name: max(ratio, repeated.get(name, ratio)) for name, ratio in ratios.items()}


def _warn_of_old_records(recorded: Baseline) -> None:
    """Warn of runs recorded at another commit of the package or of the repository in the current folder."""
    from benchmarks.mlflow_store.provenance import commit

    for run, current in ((recorded.commit, commit()), (recorded.repository, commit(Path.cwd()))):
        if current and run and current.removesuffix("+") != run.removesuffix("+"):
            warn(
                f"the runs were computed at commit {run[:12]}, not at {current[:12]}. "
                "Run the suite in a new --store"
            )
            return
