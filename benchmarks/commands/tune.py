"""`asyncfl tune`: search for learning rates, fairly, and write a file of the results.

Fixed: the path and form of the file of tuned values, where suites look for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from benchmarks import signals_and_streams
from benchmarks.commands import options
from benchmarks.commands.ui import opening
from benchmarks.errors import must_be_ours, warn
from benchmarks.redaction import command_line
from benchmarks.terminal_output import print_headed
from fl_core.text import duration, many

if TYPE_CHECKING:
    from benchmarks.engine import Engine
    from benchmarks.mlflow_store.store import Store
    from benchmarks.suite.suite import Suite
    from benchmarks.suite.tuned import TunedFile
    from tuning.driver import Driver
    from tuning.results import StudyResult
    from tuning.study import Campaign


@click.command(short_help="Tune the strategies of SUITE, all with the same trials.")
@options.planned
@options.device
@click.option(
    "--trials", type=options.COUNT, metavar="N", help="Number of trials of each strategy in each scenario."
)
@click.option(
    "--seeds",
    type=options.COUNT,
    metavar="N",
    help="Number of seeds of each trial; they differ from the suite's seeds.",
)
@click.option(
    "--sampler", type=click.Choice(["tpe", "random", "grid", "sobol", "cmaes", "gp"]), help="Search method."
)
@click.option(
    "--objective",
    type=click.Choice(["final", "auc", "updates_to_target", "time_to_target"]),
    help="Value by which trials are compared.",
)
@options.storage
@options.computing
@click.option(
    "--out",
    type=options.FILE,
    help="File for the tuned values.  [default: the file that asyncfl run --tuned reads; with --set, "
    "DIR/tuned-SUITE.yaml]",
)
@options.dry_run
@options.verbose
@options.quiet
def command(
    *,
    suite: str,
    settings: tuple[str, ...],
    scale: str | None,
    store: Store,
    trials: int | None,
    seeds: int | None,
    sampler: str | None,
    objective: str | None,
    storage: str | None,
    engine: Engine,
    out: Path | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Tune the strategies of SUITE: the same trials, seeds and budget for each.

    Trials are judged on validation data and on seeds of their own. Finished trials are not repeated;
    interrupted ones continue.
    """
    began = monotonic()
    from benchmarks.suite.tuned import HEAD
    from tuning.progress import run_with_progress
    from tuning.results import caveats, pasteable

    asked = {"trials": trials, "seeds": seeds, "sampler": sampler, "objective": objective}
    options_ = [f"tuning.{name}={value}" for name, value in asked.items() if value is not None]
    campaign = planned(suite, [*settings, *options_], scale)
    if out:
        must_be_ours(out, HEAD)
    if dry_run:
        _show_plan(campaign)
        return

    driver = driver_of(campaign, engine, store, storage)

    def stopped() -> str:
        done = f"{driver.ended} of {many(campaign.trials, 'trial')} finished"
        return f"{done}; trials in progress will be retried."

    with signals_and_streams.resumable(stopped):
        run_with_progress(driver, engine, quiet=quiet)
    click.echo(_what_happened(driver, monotonic() - began))
    tuned, path = keep(driver, out, settings)
    if tuned.tuned:
        _show(tuned, path)
        for caveat in caveats(driver.studies):
            click.echo(f"Note: {caveat}")
        for line in pasteable(campaign, tuned):
            click.echo(line)
    if not driver.outage:
        _show_records(driver, store)
    if not tuned.tuned:
        sys.exit(1)
    out = None if path == campaign.suite.tuned_values else path
    next_command = _run_with_it(campaign.suite, suite, store, scale=scale, settings=settings, out=out)
    click.echo(f"Next: {next_command}")
    if driver.failing:
        sys.exit(1)


def planned(suite: str, settings: Sequence[str], scale: str | None) -> Campaign:
    """Return the campaign of a suite; UserError for mistakes in the suite."""
    from benchmarks.suite.suite import load
    from tuning.plan import plan

    campaign = plan(load(suite, settings, scale, tuned=False), pilot=bool(_suite_settings(settings)))
    campaign.check()
    return campaign


def driver_of(campaign: Campaign, computes: Engine, store: Store, storage: str | None) -> Driver:
    """Return the driver of a campaign, with trials in `storage` or, by default, in the store."""
    from tuning.driver import Driver
    from tuning.storage import open_storage

    computes.warm_up("benchmarks.runs.run_jobs")
    return Driver(campaign, open_storage(storage or str(store.folder / options.JOURNAL)), store)


def studies(campaign: Campaign, computes: Engine, store: Store, storage: str | None) -> list[StudyResult]:
    """Run the rest of a campaign, with size and progress shown, and return the results."""
    from tuning.progress import run_with_progress

    scenarios = len({study.scenario for study in campaign.studies})
    click.echo(f"{many(scenarios, 'scenario')}, {many(campaign.simulations, 'run')}")
    driver = driver_of(campaign, computes, store, storage)
    run_with_progress(driver, computes, quiet=False)
    return driver.studies


def keep(driver: Driver, out: Path | None, settings: Sequence[str]) -> tuple[TunedFile, Path]:
    """Write the results of a campaign and warn of missing results; return the results and the path.

    By default the file is the suite's. A pilot, on a suite changed by --set, has a file in the store: its
    values fit another scenario. `benchmarks/commands/functions.py` calls it, too.
    """
    from benchmarks.suite import tuned
    from tuning.results import to_tuned_file

    campaign = driver.campaign
    pilot_path = (
        driver.store.folder / f"tuned-{campaign.suite.name}.yaml" if _suite_settings(settings) else None
    )
    path = out or pilot_path or campaign.suite.tuned_values
    if driver.outage:
        warn(f"some trials are not in MLflow ({driver.outage}). Rerun the same command to send them")
    tuned_values = to_tuned_file(campaign, driver.studies)
    if tuned_values.tuned:  # else what an earlier campaign found stays
        tuned.write(path, tuned_values)
    if missing := len(campaign.studies) + len(campaign.reused) - len(tuned_values.tuned):
        warn(
            f"no trial finished for {many(missing, 'strategy')}, which have no tuned values. See the "
            "errors above, then run the same command again"
        )
    return tuned_values, path


def _what_happened(driver: Driver, seconds: float) -> str:
    """Return a sentence with the size of the campaign and the time taken."""
    campaign = driver.campaign
    size = f"{many(len(campaign.studies), 'study')}, {many(campaign.trials, 'trial')}"
    if driver.finished_earlier >= campaign.trials:
        return f"{campaign.suite.name}: {size}: all finished already; nothing to do."
    earlier = f", {many(driver.finished_earlier, 'trial')} finished before" if driver.finished_earlier else ""
    return f"{campaign.suite.name}: {size} in {duration(seconds)}{earlier}."


def _show_records(driver: Driver, store: Store) -> None:
    """Write the report page of a campaign, even without runs of the suite, and print MLflow's address."""
    from benchmarks.commands.report import write_page
    from reports.records.suite_reader import load

    name = driver.campaign.name
    write_page(load(store.tracking_uri, name), store)
    experiment = name if name == driver.campaign.suite.name else driver.experiment
    click.echo(f"Trials in MLflow: {opening(experiment, store)}")


def _run_with_it(
    loaded: Suite, suite: str, store: Store, *, scale: str | None, settings: tuple[str, ...], out: Path | None
) -> str:
    """Return the command to run the suite with the tuned values."""
    from benchmarks.suite.fields import TUNED

    words = ["asyncfl", "run", suite]
    words += ["--tuned-from", str(out)] if out else [] if loaded.spec.lr == TUNED else ["--tuned"]
    words += ["--scale", scale] if scale else []
    words += [word for setting in _suite_settings(settings) for word in ("--set", setting)]
    return command_line([*words, *store.options])


def _suite_settings(settings: Sequence[str]) -> list[str]:
    """Return the settings of the suite, without settings of tuning."""
    return [setting for setting in settings if not setting.startswith("tuning.")]


def _show(tuned_file: TunedFile, path: Path) -> None:
    """Print the tuned values as a table."""
    rows = []
    for entry in tuned_file.tuned:
        spread = f" ± {entry.spread:.2g}" if entry.spread is not None else ""
        value = f"as {entry.reused_from}" if entry.reused_from else f"{entry.value:.4g}{spread}"
        untuned = "" if entry.before is None or entry.reused_from else f"{entry.before:.4g}"
        parameters = (
            f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in entry.parameters.items()
        )
        rows.append((entry.scenario, entry.strategy, value, untuned, ", ".join(parameters)))
    heading = f"{tuned_file.objective}, {tuned_file.metric}"
    print_headed(("scenario", "strategy", heading, "untuned", "parameters"), rows)
    click.echo(f"Judged on {tuned_file.judged_on}, seeds {', '.join(map(str, tuned_file.seeds))}.")
    click.echo(f"Tuned values: {path}")


def _show_plan(campaign: Campaign) -> None:
    """Print the plan of a campaign for `--dry-run`: studies, spaces, seeds, number of simulations."""
    study, spec = campaign.studies[0], campaign.spec
    rows = [
        (
            study.scenario,
            study.strategy,
            many(study.trials, "trial"),
            "; ".join(
                f"{name} {_candidates(candidates)}" for name, candidates in study.space.described().items()
            ),
        )
        for study in campaign.studies
    ]
    print_headed(("scenario", "strategy", "trials", "space"), rows)
    for run, source in campaign.reused:
        click.echo(f"{run.scenario}: {run.strategy} reuses the values of {source}")
    seeds = ", ".join(map(str, study.seeds))
    if spec.again:
        more = ", ".join(map(str, study.seeds_again))
        seeds += f", and {more} for the best {100 * spec.again.share:g} % of each study"
    click.echo(f"\nObjective: {spec.objective} of {study.objective.metric.name}, {study.objective.direction}")
    click.echo(f"Judged on {study.judged_on}; seeds {seeds}; each simulation {study.budget}")
    click.echo(f"Sampler: {spec.sampler}, {many(spec.batch, 'trial')} at a time; pruner: {spec.pruner}")
    trials, repeated = (
        sum(study_plan.trials for study_plan in campaign.studies),
        sum(study_plan.repeated for study_plan in campaign.studies),
    )
    size = (
        f"{many(len(campaign.studies), 'study')}, {many(trials, 'trial')} × {many(len(study.seeds), 'seed')}"
    )
    if repeated:
        size += f" + {many(repeated, 'trial')} × {many(len(study.seeds_again), 'seed')}"
    click.echo(f"Simulations: {size} = {campaign.simulations}")


def _candidates(candidates: Mapping[str, Any]) -> str:
    if "choices" in candidates:
        return " | ".join(map(str, candidates["choices"]))
    return f"{candidates['low']:g} to {candidates['high']:g}" + (" (log)" if candidates["log"] else "")
