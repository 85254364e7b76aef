"""Server optimisers against torch's own, Yogi written out, and FADAS; whom they combine with."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from test_buffered_plainly import BUFFER, CONCURRENCY, buffers
from uneven import FIRST, Run, assert_same, delta, simulated

from fl_core.diagnostics.error_terms import refuses
from fl_core.experiment import Experiment
from fl_core.server.jobs import Update
from fl_core.server.optimizers import Adam, Nesterov
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy
from fl_core.testing import strategy_checks
from fl_core.testing.check_experiments import changed, experiment, scenario

RATE, BETA, BETA1, BETA2, TAU = 0.2, 0.6, 0.8, 0.7, 0.05
ADAPTIVE = {"beta1": BETA1, "beta2": BETA2, "epsilon": TAU}
SENSIBLE = [
    name for name, member in Strategy.members().items() if member.model_validate({}).refuses_optimizer is None
]
QUICK = ("asgd", "ace", "fedavg", "fedbuff", "malenia")  # one of each kind


def fedbuff(server: Any, **fields: Any) -> Run:
    """FedBuff without staleness weights, so that a direction is the mean of a buffer."""
    common = {"buffer": BUFFER, "concurrency": CONCURRENCY, "scaling": "none", "server_lr": RATE}
    return simulated("fedbuff", server=server, **common | fields)


class Follower:
    """torch's optimiser on the models that clients' updates, computed here, lead to."""

    def __init__(self, kind: type[torch.optim.Optimizer], **fields: Any) -> None:
        self.theta = torch.tensor(FIRST, requires_grad=True)
        self.optimizer = kind([self.theta], maximize=True, **fields)

    def follow(self, run: Run, bias_corrected: bool) -> list[np.ndarray]:
        """Return all models; of Adam without its corrections of bias, which Reddi et al. leave out."""
        models = [FIRST]
        for t, pack in enumerate(buffers(run), 1):
            mean = sum(delta(models[version], client) for client, version, _ in pack) / BUFFER
            if not bias_corrected:
                root = sqrt(1 - BETA2**t)
                self.optimizer.param_groups[0].update(lr=RATE * (1 - BETA1**t) / root, eps=TAU / root)
            self.theta.grad = torch.tensor(mean)
            self.optimizer.step()
            models.append(self.theta.detach().numpy().copy())
        return models


def test_momentum_is_that_of_torch() -> None:
    run = fedbuff({"name": "momentum", "beta": BETA})
    models = Follower(torch.optim.SGD, lr=RATE, momentum=BETA).follow(run, bias_corrected=True)
    assert_same(run, models, at_least=130)


def test_nesterov_is_that_of_torch() -> None:
    run = fedbuff({"name": "nesterov", "beta": BETA})
    models = Follower(torch.optim.SGD, lr=RATE, momentum=BETA, nesterov=True).follow(run, bias_corrected=True)
    assert_same(run, models, at_least=130)


def test_nesterov_of_diloco_by_hand() -> None:
    """Δ = 2 twice, η_g = .7 and β = .9: v = 1.4, 2.66, and the steps are 1.4 + .9 v = 2.66, 3.794."""
    moments: dict[str, torch.Tensor] = {}
    steps = [float(Nesterov().step(torch.tensor([0.7 * 2]), 0.7, moments)) for _ in range(2)]
    assert steps == pytest.approx([2.66, 3.794])
    assert Strategy.model_validate({"name": "fedavg", "server": "nesterov"}).server_lr == 0.7


def test_look_ahead_has_a_mean_as_velocity() -> None:
    """v_t = (1 − β) Σ_s β^(t − s) Δ_s, x ← x + η_g (β v_t + Δ_t), from the sum itself."""
    run = fedbuff({"name": "look_ahead", "beta": BETA})
    models, directions = [FIRST], []
    for pack in buffers(run):
        directions.append(sum(delta(models[version], client) for client, version, _ in pack) / BUFFER)
        v = (1 - BETA) * sum(BETA**age * past for age, past in enumerate(reversed(directions)))
        models.append(models[-1] + RATE * (BETA * v + directions[-1]))
    assert_same(run, models, at_least=130)


@pytest.mark.parametrize("name", ["adam", "amsgrad"])
def test_adam_and_amsgrad_are_those_of_torch(name: str) -> None:
    """Apart from the bias corrections, and the start of Adam's v, which is τ²."""
    run = fedbuff({"name": name, **ADAPTIVE})
    follower = Follower(torch.optim.Adam, betas=(BETA1, BETA2), amsgrad=name == "amsgrad")
    if name == "adam":
        zeros = torch.zeros(2, dtype=torch.float64)
        start = {"step": torch.tensor(0.0), "exp_avg": zeros, "exp_avg_sq": zeros + TAU**2}
        follower.optimizer.state[follower.theta] = start
    assert_same(run, follower.follow(run, bias_corrected=False), at_least=130)


def test_yogi_is_the_papers() -> None:
    """v ← v − (1 − β2) Δ² sign(v − Δ²) (Reddi et al., ICLR 2021, Algorithm 2)."""
    run = fedbuff({"name": "yogi", **ADAPTIVE})
    models, m, v = [FIRST], np.zeros(2), np.full(2, TAU**2)
    for pack in buffers(run):
        mean = sum(delta(models[version], client) for client, version, _ in pack) / BUFFER
        m = BETA1 * m + (1 - BETA1) * mean
        v = v - (1 - BETA2) * mean**2 * np.sign(v - mean**2)
        models.append(models[-1] + RATE * m / (np.sqrt(v) + TAU))
    assert_same(run, models, at_least=130)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SENSIBLE]
)
def test_every_strategy_that_steps_in_a_direction_takes_an_optimizer(name: str) -> None:
    """AMSGrad, which remembers most: the same in stacks, and resumed; another model than without."""
    strategy = changed(Strategy.model_validate({"name": name, "server": "amsgrad"}))
    assert strategy.server_lr == 0.01
    strategy_checks.is_the_same_in_stacks(experiment(scenario(), strategy))
    strategy_checks.is_the_same_when_resumed(strategy)
    assert refuses(experiment(scenario(), strategy))


@pytest.mark.parametrize("name", sorted(Strategy.members().keys() - SENSIBLE))
def test_others_refuse(name: str) -> None:
    with pytest.raises(ValidationError, match=f"server: {name} "):
        Strategy.model_validate({"name": name, "server": "yogi"})


def test_plain_steps_leave_keys_alone() -> None:
    keys = {
        Experiment(scenario=scenario(), strategy=Strategy.model_validate(described)).key
        for described in (
            "asgd",
            {"name": "asgd", "server": "sgd"},
            {"name": "asgd", "server": {"name": "sgd"}},
        )
    }
    assert len(keys) == 1
    other = experiment(scenario(), Strategy.model_validate({"name": "asgd", "server": "adam"}))
    assert other.key not in keys
    assert (Adam().beta1, Adam().beta2, Adam().epsilon) == (0.9, 0.99, 1e-3)  # Reddi et al., §5


class Sets(Strategy):
    """A strategy that sets the model itself, and does not say so."""

    def receive(self, server: Server, update: Update) -> None:
        server.step(model=update.model)


def test_a_model_that_is_set_has_no_direction() -> None:
    with pytest.raises(RuntimeError, match="the server optimizer adam no direction"):
        strategy_checks.run(experiment(scenario(), Sets(server=Adam())))
