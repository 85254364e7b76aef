"""Comparison of samplers on four strategies of the board, to choose a sampler for all studies.

Measured is the time to the target of the best trial on fresh data. It is run by hand, and the board's page
shows the table. Sobol's points are known beforehand; TPE and Gaussian processes propose `BATCH` trials at a
time, from the results of earlier ones. All search the same space, each parameter as a share of its range.

    python -m benchmarks.leaderboard.sampler_pilot > benchmarks/leaderboard/2.0/samplers.csv

Fixed: `COLUMNS`, in which the table is stored. Free: the rest, until the board needs another sampler.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from csv import DictWriter
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any

from benchmarks.device import processes
from benchmarks.leaderboard.board import STUDIES, StudyOfScale, goals
from benchmarks.leaderboard.targets import simulated_curve
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.recording.recorder import run
from fl_core.strategies.hyperparameters import Values
from fl_core.time_to_target import time_to_target
from tuning.objective import curve_of
from tuning.samplers import sampler
from tuning.study import Study

SUITE, SCALE = "populations", "features10-fixed"
STRATEGIES = ("FedAvg", "FedBuff", "ASGD", "ACE")
SAMPLERS = ("sobol", "tpe", "gp")
COLUMNS = ("sampler", "strategy", "study", "seed", "time")
BATCH = 6  # trials that TPE and Gaussian processes propose at a time

Case = tuple[str, str, int]  # sampler, strategy, number of the study
Row = dict[str, Any]  # of the table


def best_of_study(name: str, study: Study) -> Values:
    """Run a study with a sampler, and return the parameters of the best trial."""
    if name == "sobol":
        return min((values for _, values in study.first), key=partial(value_of, study))
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    search = optuna.create_study(direction=study.objective.direction)
    best: tuple[float, Values] = (float("inf"), {})
    for done in range(0, study.trials, BATCH):
        search.sampler = sampler(name, f"{study.suite} {study.strategy}", done)
        trials = [search.ask() for _ in range(BATCH)]
        points = [
            {parameter: trial.suggest_float(parameter, 0, 1 - 1e-9) for parameter in study.space.candidates}
            for trial in trials
        ]
        for trial, shares in zip(trials, points, strict=True):
            values = study.space.at(shares)
            value = value_of(study, values)
            search.tell(trial, value)
            best = min(best, (value, values), key=lambda pair: pair[0])
    return best[1]


def value_of(study: Study, values: Values) -> float:
    """Return the objective of a trial: the mean over the seeds of the study."""
    strategy = study.space.apply(values, study.tried_on)
    experiments = [Experiment(scenario=study.tried_on, strategy=strategy, seed=seed) for seed in study.seeds]
    records = [run(experiment, execution=AllInFlight(), evaluate="test") for experiment in experiments]
    return study.objective.mean([curve_of(record, study.objective.metric.name) for record in records])


def rows(case: Case) -> list[Row]:
    """Return the times of the final runs of a study's best trial, a row for each seed."""
    name, label, number = case
    study_of_scale = StudyOfScale(SUITE, SCALE, number, (label,))
    (study,) = study_of_scale.campaign().studies
    finals = study_of_scale.finals({label: best_of_study(name, study)})
    goal = goals(SUITE, [SCALE])[SCALE]
    table_rows = []
    for planned in finals.runs():
        time = time_to_target(*simulated_curve(planned.experiment), goal.target, True, goal.marks)
        values = (name, label, number, planned.experiment.seed, time)
        table_rows.append(dict(zip(COLUMNS, values, strict=True)))
    return table_rows


if __name__ == "__main__":
    table = DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    table.writeheader()
    with ProcessPoolExecutor(processes(), get_context("forkserver")) as pool:
        for table_rows in pool.map(rows, [*product(SAMPLERS, STRATEGIES, STUDIES)]):
            table.writerows(table_rows)
            sys.stdout.flush()
