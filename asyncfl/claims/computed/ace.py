"""ACE's exact statements: limits under dropouts (arXiv 2511.19066, 2025)."""

import numpy as np

from asyncfl.claims.theory.ace import dropout_limit
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.strategies.tables import caches

CENTRES = ((1.0, 0.0), (0.0, 2.0), (-1.0, 1.0), (2.0, -1.0), (0.5, 0.5))
SPEEDS = (1, "3/2", 2, "5/2", 3)  # time of a job


def after_dropouts(strategy: str) -> float:
    """Shift of `strategy` from the optimum of the other clients after two of five leave, in units of ACE's.

    ACE's shift is that of its fixed point Σ_active ∇F_i(w) + Σ_dropped U_i = 0, with U_i from its table.
    """
    ace = _played("ace")
    kept = caches.rows(ace.server.memory.cache, range(5), ace.server.model)
    gradients = -kept.numpy() / ace.server.local_lr  # U_i; the table holds updates
    dropped = ~np.array(ace.server.present)
    centres = np.array(CENTRES)
    pulled = dropout_limit(np.ones(5), centres, dropped, gradients)
    others = centres[~dropped].mean(0)
    end = ace if strategy == "ace" else _played(strategy)
    pull = end.server.model.numpy() - others
    return float(pull @ (pulled - others) / ((pulled - others) ** 2).sum())


def _played(strategy: str) -> Simulation:
    """Return a run in which two of five clients leave."""
    experiment = Experiment(
        scenario={
            "problem": {"name": "quadratic", "centres": CENTRES, "noise": 0.0},
            "timing": {
                "durations": {"name": "fixed", "times": SPEEDS},
                "availability": {"name": "dropouts", "share": 0.4, "at": 30},
            },
            "budget": {"updates": 4000},
            "evaluations": 1,
        },
        strategy={"name": strategy, "local_lr": 0.02, "server_lr": 1.0},
        seed=0,
    )
    simulation = Simulation(experiment)
    for _ in simulate(simulation, OneByOne()):
        pass
    return simulation
