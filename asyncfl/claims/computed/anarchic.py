"""Anarchic FL on quadratics: the lower bound, the floor, delay and local steps (Yang et al., ICML 2022)."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import Record, run
from fl_core.server.server import Server
from fl_core.strategies.tables.afa_cs import AFACS
from fl_core.streams import stream
from fl_core.theory.jackson import Array

BIASED = (0.9, 0.04, 0.03, 0.02, 0.01)  # arrival probabilities of five workers
CENTRES = np.array([[1.0], [-2.0], [3.0], [-1.0], [0.5]])  # their optima


class FirstPassThenOne(AFACS):
    """AFA-CS after a first pass in which every worker arrives once; then only worker 0 arrives."""

    def next(self, server: Server) -> list[int]:
        return [client for client in server.idle if client == 0 or server.updates == 0]


def lower_bound(strategy: str, g: float, arrivals: Sequence[float]) -> dict[str, float]:
    """Final x from 0 for f₁ = (x+G)², f₂ = (x−G)², and ‖∇f‖² = 4x² there; `arrivals` are probabilities."""
    scenario = _pair(g) | {"budget": {"updates": 3000}}
    scenario["arrangement"] = {"name": "rounds", "workers": 1, "history": 1, "arrivals": tuple(arrivals)}
    rates = {"local_lr": 0.1, "server_lr": 0.1}
    x = _end(Experiment(scenario=scenario, strategy={"name": strategy, "buffer": 1, **rates}, seed=0))
    return {"x": x, "slope": 4 * x**2}


def lower_bound_slope(**how: Any) -> float:
    """‖∇f‖² there."""
    return lower_bound(**how)["slope"]


def first_pass(g: float, start: float) -> float:
    """Where AFA-CS ends when worker 2 arrives once, at the start x₀, and never again: −x₀."""
    scenario = _pair(g, start) | {"budget": {"updates": 4000}}
    strategy = FirstPassThenOne(buffer=1, local_lr=0.1, server_lr=0.1)
    return _end(Experiment(scenario=scenario, strategy=strategy, seed=0))


def floor(strategy: str, spread: float, lr: float, steps: int = 1, rounds: int = 6000) -> float:
    """Mean ‖∇f‖² over the last third, in units of σ_G²; five workers, biased arrivals, no noise."""
    centres = spread * CENTRES
    record = _run(strategy, centres, 2, rounds, lr=lr, arrivals=BIASED, steps=steps)
    late = record.curve[-len(record.curve) // 3 :]
    off = float(np.mean([row["excess_loss"] for row in late]))
    return 2 * off / float(((centres - centres.mean()) ** 2).max())


def floor_exponent(strategy: str, lr: float = 0.005) -> float:
    """Return d log floor / d log σ_G²."""
    spreads = np.array([1.0, 2.0, 4.0])
    floors = [floor(strategy, spread, lr) * spread**2 for spread in spreads]
    return float(np.polyfit(2 * np.log(spreads), np.log(floors), 1)[0])


def floor_ratio(strategy: str, one: dict[str, Any], other: dict[str, Any]) -> float:
    """Ratio of the floors at two choices of rate, K and T."""
    return floor(strategy, 1.0, **one) / floor(strategy, 1.0, **other)


def delay_ratio(strategy: str, rounds: int, history: int, steps: int) -> float:
    """Mean ‖∇f‖² with stale models or more local steps relative to without, at the corollaries' rates."""
    size = 4 if strategy == "afa_cd" else 16
    rates = {"server_lr": size**0.5, "lr": rounds**-0.5}
    late = _mean_slope(strategy, 16, 4, rounds, history=history, steps=steps, **rates)
    return late / _mean_slope(strategy, 16, 4, rounds, **rates)


def normal_optima(workers: int) -> Array:
    """Normal optima [workers, 10] around 0, which are as far from a start whatever M is."""
    centres = stream(0, "centres", workers).normal(size=(workers, 10)) / 10**0.5
    return centres - centres.mean(0)


def _pair(g: float, start: float = 0.0) -> dict[str, Any]:
    return {
        "problem": {"name": "quadratic", "centres": ((-g,), (g,)), "curvature": (2, 2), "start": (start,)},
        "evaluations": 1,
    }


def _end(experiment: Experiment) -> float:
    simulation = Simulation(experiment)
    for _ in simulate(simulation, OneByOne()):
        pass
    return float(simulation.server.model[0])


@cache
def _mean_slope(
    strategy: str, workers: int, arrivals: int, rounds: int, *, lr: float, server_lr: float, **how: int
) -> float:
    """(1/T) Σ E‖∇f(x_t)‖² over four seeds; optima and gradient noise are normal, in ten dimensions."""
    centres, means = normal_optima(workers), []
    for seed in range(4):
        record = _run(
            strategy, centres, arrivals, rounds, lr=lr, server_lr=server_lr, seed=seed, noise=1.0, **how
        )
        means.append(np.mean([2 * row["excess_loss"] for row in record.curve]))
    return float(np.mean(means))


def _run(
    strategy: str,
    centres: Array,
    workers: int,
    rounds: int,
    *,
    lr: float,
    server_lr: float = 1.0,
    arrivals: Any = "uniform",
    history: int = 1,
    steps: int = 1,
    noise: float = 0.0,
    seed: int = 0,
) -> Record:
    problem = {"name": "quadratic", "centres": centres.tolist(), "noise": noise}
    scenario = {
        "problem": problem | {"start": [2.0] * centres.shape[1]},
        "arrangement": {"name": "rounds", "workers": workers, "history": history, "arrivals": arrivals},
        "budget": {"updates": rounds * workers},
        "evaluations": min(rounds, 200),
    }
    local = {"name": "sgd", "steps": steps}
    rule = {"name": strategy, "buffer": workers, "local_lr": lr, "server_lr": server_lr, "local": local}
    return run(Experiment(scenario=scenario, strategy=rule, seed=seed))
