"""Store the results of the suite `frameworks`: `python -m tests.peers.readings STORE`.

First: asyncfl tune frameworks --store STORE; asyncfl run frameworks --tuned --store STORE
"""

import csv
from pathlib import Path

import click

from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.suite.suite import PlannedRun, load
from fl_core.recorded_names import Clock
from reports.records import suite_reader

FILE = Path(__file__).with_name("readings.csv")
COLUMNS = ("timing", "strategy", "options", "seed", "local_lr", "accuracy", "time_to_target")
COMMON_OPTIONS = {"buffer", "concurrency", "local_lr", "local"}  # of all strategies of the suite


@click.command()
@click.argument("folder", metavar="STORE", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Write a row for each run of the suite in STORE."""
    planned = load("frameworks", tuned=True).runs()
    suite = suite_reader.load(f"sqlite:///{folder / 'mlflow.db'}", planned[0].suite)
    recorded = {run.key: run for run in suite.runs}
    if missing := sum(run.key not in recorded for run in planned):
        raise click.ClickException(f"{missing} runs of the suite are missing: asyncfl run frameworks --tuned")
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(row(run, recorded[run.key]) for run in planned)


def row(planned: PlannedRun, recorded: RunResult) -> tuple[object, ...]:
    """Return the values of COLUMNS for a run."""
    strategy = planned.experiment.strategy
    options = {name: value for name, value in strategy.changed().items() if name not in COMMON_OPTIONS}
    return (
        recorded.timing,
        strategy.name,
        " ".join(f"{name}={value}" for name, value in options.items()),
        planned.experiment.seed,
        strategy.local_lr,
        recorded.final(recorded.metric),
        recorded.time_to_target(Clock.TIME, recorded.target),
    )


if __name__ == "__main__":
    main()
