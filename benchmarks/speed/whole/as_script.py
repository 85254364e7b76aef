"""The same work as a run's, as a plain script in a process of its own: its parts.

When this module is imported, nothing of the simulator is: the script's start is Python, NumPy and torch.
"""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.speed import yardstick
from benchmarks.speed.whole import plain
from benchmarks.speed.whole.spent import DATA, EVALUATION, LOCAL, START, Spent

if TYPE_CHECKING:
    from benchmarks.speed.whole.case import Amount, RunCase
    from fl_core.problems.classification import Classification
    from fl_core.problems.problem import Problem

BORROWED = "borrowed"  # what a script would not do: the simulator's modules are imported to read its data

Work = tuple[nn.Module, plain.Loss, plain.Split, plain.Split]  # network, loss, training and test data


def start() -> float:
    """Seconds until a script has its libraries; to be called first in its process."""
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).step()  # imports what no other line does
    return process_time()


def in_parts(case: RunCase, amount: Amount, start: float) -> dict[str, float]:
    """Seconds of each part of a script that computes as much as the run did."""
    spent = Spent(BORROWED)
    problem = case.planned().experiment.scenario.problem
    with spent.on(DATA):
        network, loss, train, test = _work(problem)
        parts = np.array_split(np.arange(len(train.targets)), problem.clients)
        clients = [train.at(slice(int(part[0]), int(part[-1]) + 1)) for part in parts]
    curve = plain.Curve(network, loss, test, clients, tests=amount.tests, trainings=amount.trainings)
    with spent.on(LOCAL):
        plain.simulate(
            network,
            loss,
            train,
            parts,
            spent.timed(EVALUATION, curve),
            updates=amount.updates,
            steps=amount.steps,
            batch=amount.batch,
            marks=amount.tests - 1,
        )
    found = spent.seconds()
    del found[BORROWED]
    return {START: start, **found}


def _work(problem: Problem) -> Work:
    from fl_core.problems.classification import Classification
    from fl_core.problems.quadratic import Quadratic

    if isinstance(problem, Quadratic):
        centres = torch.tensor(problem.centres, dtype=torch.float64)
        whole = plain.Split(centres, torch.zeros(len(centres), dtype=torch.int64))
        return plain.Distance(centres.shape[1]), plain.half_square, whole, whole
    if not isinstance(problem, Classification):
        raise TypeError(f"no script for {problem.reference()}")
    data = problem.load()
    train, test = (
        plain.Split(_inputs(problem, inputs), targets)
        for inputs, targets in ((data.x_train, data.y_train), (data.x_test, data.y_test))
    )
    if problem.model.name == "lstm":
        return yardstick.CharLSTM(problem.classes), plain.CROSS_ENTROPY, train, test
    return problem.model.build(problem.shape, problem.classes), plain.CROSS_ENTROPY, train, test


def _inputs(problem: Classification, stored: Tensor) -> Tensor:
    """As the network takes them: symbols, or normalised numbers."""
    if problem.model.name == "lstm":
        return stored.long()
    data = problem.load()
    if not data.mean:
        return stored.float()
    mean, std = (torch.tensor(values)[:, None, None] for values in (data.mean, data.std))
    return (stored.float() - mean) / std
