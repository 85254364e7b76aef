"""Default hyper-parameters as the papers give them, and routing that is optimised, by a search of our own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fl_core.arrangements import Arrangement
from fl_core.experiment import Experiment
from fl_core.local_work import LocalWork, Prox
from fl_core.loop.simulation import Simulation
from fl_core.parts import Part
from fl_core.scenario import Scenario
from fl_core.strategies.strategy import Strategy
from fl_core.timing.durations import Durations

# Where a paper or its published code gives a number.
PRINTED: dict[str, dict[str, Any]] = {
    "aced": {"max_age": 10},  # arXiv 2511.19066, F.4: twice the mean delay
    "afa_cd": {"buffer": 5},  # Yang et al., ICML 2022, Table 2: 5 of 10 workers
    "afa_cs": {"buffer": 5},
    "ca2fl": {"buffer": 10, "concurrency": 20},  # arXiv 2511.19066, F.4
    "fedbuff": {"buffer": 10, "concurrency": 20},
    "fadas": {  # Wang et al., ICML 2024, §6
        "server_lr": 1e-3,
        "concurrency": 50,
        "buffer": 5,
        "beta1": 0.9,
        "beta2": 0.99,
        "epsilon": 1e-8,
    },
    "fedasync": {"server_lr": 0.6, "power": 0.5, "hinge_slope": 10.0, "hinge_start": 4.0},  # Xie et al., 2019
    "fedbuff_c": {"buffer": 10},  # Fraboni et al., JMLR 2023, §5.2.2
    "fedfix": {"period": 0.5, "growth": 0},
    "generalized_asyncsgd": {  # arXiv 2502.08206, §5: B = 2 · 10² + 3²
        "concurrency": 100,
        "smoothness": 1.0,
        "distance": 15.0,
        "noise": 2 * 10.0**2 + 3.0**2,
    },
}

# Where no paper gives one: a key without these fields stands for these numbers. Another number is another
# experiment, and needs a higher `version`.
OURS: dict[str, tuple[int, dict[str, Any]]] = {
    "asgrad": (1, {"buffer": 4}),
    "asyncfeded": (1, {"server_lr": 1.0, "epsilon": 1.0, "wanted": 1.0, "gain": 0.1}),
    "favas": (1, {"sample": 2, "period": 1}),
    "fedast": (1, {"buffer": 5, "concurrency": 20}),
    "cgad": (1, {"server_lr": 0.01, "decay": 0.1, "cutoff": 16}),
    "fedfa": (1, {"window": 5}),
    "heloco": (
        1,
        {"server_lr": 0.7, "momentum": 0.9, "aligned": 0.5}
        | dict.fromkeys(("confidence", "shrinkage", "most", "turn"), 1.0),
    ),
    "delayed_nesterov": (1, {"buffer": 4, "momentum": 0.9, "server_lr": 0.7}),
    "fedstale": (1, {"beta": 0.5}),
    "malenia": (1, {"batch": 5}),
    "mindflayer": (1, {"trials": 5, "allotted": 2}),
    "quafl": (1, {"sample": 2, "period": 1}),
    "rennala": (1, {"batch": 5}),
    "ringmaster": (1, {"max_delay": 10}),
}

SLOW, FAST = 4, 1  # mean service times


@pytest.mark.parametrize("name", PRINTED)
def test_defaults_are_those_of_the_papers(name: str) -> None:
    strategy = Strategy.model_validate(name)
    assert {field: getattr(strategy, field) for field in PRINTED[name]} == PRINTED[name]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("iteration_delay", {"mean": 5.0, "history": 500}),  # arXiv 2511.19066, §5: β = 5, 500 iterations
        # Yang et al., ICML 2022, §E: 5 of 10, each once, on the last five models
        ("rounds", {"workers": 5, "history": 5, "replacement": False}),
    ],
)
def test_arrangements_are_those_of_the_papers(name: str, fields: dict[str, Any]) -> None:
    arrangement = Arrangement.model_validate(name)
    assert {field: getattr(arrangement, field) for field in fields} == fields


def test_proximal_weight_is_that_of_the_paper() -> None:
    """μ = .1 in the comparison with FedProx (Yang et al., ICML 2022, §E)."""
    assert Prox().mu == 0.1


@pytest.mark.parametrize(
    ("family", "name", "field"),
    [(LocalWork, "sgd", "weight_decay"), (LocalWork, "adamw", "weight_decay"), (Durations, "fx", "spread")],
)
def test_numbers_below_zero_are_refused(family: type[Part], name: str, field: str) -> None:
    """A half, since whole numbers would not tell 0 from −1."""
    assert getattr(family.model_validate({"name": name, field: 0}), field) == 0
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        family.model_validate({"name": name, field: -0.5})


def test_two_speeds_may_be_equal() -> None:
    """A slowdown of 1 is the end of its range."""
    law = Durations.model_validate({"name": "two_speed", "slow": 1})
    assert law.means(4, 0) == (1, 1, 1, 1)
    with pytest.raises(ValueError, match="slow: must be at least"):
        Durations.model_validate({"name": "two_speed", "slow": 0.9})


@pytest.mark.parametrize("name", OURS)
def test_another_default_is_another_version(name: str) -> None:
    """Runs that are stored under the old key were made with the old number."""
    strategy, (version, defaults) = Strategy.model_validate(name), OURS[name]
    assert (strategy.version, {field: getattr(strategy, field) for field in defaults}) == (version, defaults)


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        (
            "generalized_asyncsgd",
            {"routing": [0.5, 0.3, 0.2]},
            "routing: 3 given for 2 clients; give one for each",
        ),
        ("async_fedavg", {"weights": [1.0]}, "weights: 1 given for 2 clients; give one for each"),
    ],
)
def test_a_number_for_each_client(name: str, fields: dict[str, Any], sentence: str) -> None:
    """Neither more nor fewer."""
    scenario = Scenario.model_validate(
        {"problem": {"name": "quadratic", "centres": [[0.0], [1.0]]}, "budget": {"updates": 1}}
    )
    assert Strategy.model_validate({"name": name, **fields}).refuses(scenario) == sentence
    ((field, _),) = fields.items()
    assert Strategy.model_validate({"name": name, field: [0.5, 0.5]}).refuses(scenario) is None


def in_queue(first: float, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """P(k of the tasks are at client 0), k = 0 … tasks, in the two-station network; and k."""
    load, other = first * SLOW, (1 - first) * FAST  # p_i / μ_i
    k = np.arange(tasks + 1)
    weight = load**k * other ** (tasks - k)
    return weight / weight.sum(), k


def bound(
    which: str, first: float, lr: float, tasks: int, *, distance: float, noise: float, smoothness: float
) -> float:
    """G without its first term, or H, of routing (first, 1 − first): formulas of §5.2 of the field guide."""
    p = np.array([first, 1 - first])
    here, k = in_queue(first, tasks - 1 if which == "G" else tasks)
    mean = np.array([here @ k, here @ (k.max() - k)])
    step = lr * smoothness
    terms = step * noise / 4 * (1 / p).sum() + step**2 * noise * tasks / 4 * (mean / p**2).sum()
    if which == "G":
        return terms
    rate = (1 - here[0]) / SLOW + (1 - here[-1]) / FAST  # completions in a unit of time
    return (distance / lr + terms) / rate


@pytest.mark.parametrize("which", ["G", "H"])
@pytest.mark.parametrize(("scale", "tasks"), [(1.0, 5), (5.0, 14)])
def test_the_optimised_routing_is_where_the_bound_is_least(which: str, scale: float, tasks: int) -> None:
    """Of two clients on a grid of 4,000 points; η = η_g η_l. Of 14 tasks both bounds have two valleys."""
    numbers = {"distance": 7.0, "noise": 30.0, "smoothness": 2.0}
    rates = {"local_lr": 0.02 * scale, "server_lr": 1.5}
    strategy = {"name": "generalized_asyncsgd", "routing": which, "concurrency": tasks, **numbers, **rates}
    scenario = {
        "problem": {"name": "quadratic", "centres": [[0.0], [1.0]]},
        "timing": {"durations": {"name": "exponential", "times": [SLOW, FAST]}},
        "budget": {"updates": 1},
    }
    server = Simulation(Experiment.model_validate({"scenario": scenario, "strategy": strategy})).server
    found = Strategy.model_validate(strategy).probabilities(server)
    grid = np.linspace(0, 1, 4001)[1:-1]
    values = [bound(which, first, 0.03 * scale, tasks, **numbers) for first in grid]
    assert found.sum() == pytest.approx(1)
    assert found[0] == pytest.approx(grid[int(np.argmin(values))], abs=2e-3)
