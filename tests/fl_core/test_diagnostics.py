"""Diagnostics against closed forms on noisy quadratics, and that they change nothing of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor
from worlds import play, quick_for_one_of_each_kind, scenario

from fl_core.diagnostics.constants import constants, noise, smoothness
from fl_core.diagnostics.diagnosis import Diagnostics, summary
from fl_core.diagnostics.error_terms import ErrorTerms, Terms
from fl_core.diagnostics.overhead import overhead
from fl_core.diagnostics.staleness import by_client, one_job_each, queued
from fl_core.diagnostics.volatility import volatility
from fl_core.experiment import Experiment
from fl_core.local_work import SGD, Prox, Scaffold
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.problems.quadratic import Quadratic
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder, run
from fl_core.strategies.ace import ACE
from fl_core.strategies.aced import ACED
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.strategy import Strategy
from fl_core.testing.strategy_checks import resumed

TIMES = [1, "11/15", "7/15", "1/5", 2, 2]
CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [0.0, 2.0], [2.0, -2.0]]
ALL = {
    name: member.model_validate({"name": name, "local_lr": 0.05})
    for name, member in Strategy.members().items()
}
LINEAR = [
    name for name, strategy in ALL.items() if strategy.linear is True and strategy.server.linear is True
]


def experiment(strategy: Strategy, seed: int = 1, **where: Any) -> Experiment:
    where = {"times": TIMES, "centres": CENTRES, "noise": 0.3, "updates": 80} | where
    return Experiment(scenario=scenario(**where), strategy=strategy, seed=seed)


def with_steps(name: str, steps: int, **local: Any) -> Strategy:
    return ALL[name].model_copy(update={"local": SGD(steps=steps, **local)})


@dataclass
class Seen:
    """One server iteration: what was measured, and what an independent eye needs to check it."""

    terms: Terms
    event: Event
    before: Tensor  # w^t
    after: Tensor  # w^{t+1}


def follow(described: Experiment, every: int = 1) -> tuple[list[Seen], Simulation]:
    simulation = Simulation(described)
    terms, before, seen = ErrorTerms(simulation, every), simulation.server.model, []
    for event in simulate(simulation):
        found = terms.see(event)
        if found is not None:
            seen.append(Seen(found, event, before, simulation.server.model))
        before = simulation.server.model
    return seen, simulation


def close(a: Tensor, b: Tensor | float) -> None:
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype).expand_as(a), rtol=0, atol=1e-12)


def mean_gradient(w: Tensor) -> Tensor:
    """∇F of the quadratics with curvature 1."""
    return w - torch.tensor(CENTRES, dtype=torch.float64).mean(0)


# -- the error terms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", quick_for_one_of_each_kind(LINEAR))
@pytest.mark.parametrize("sigma", [0.3, 0.0])
def test_the_terms_add_up_to_the_error_of_the_update(name: str, sigma: float) -> None:
    """A + B + C = u − ∇F, with u from the models themselves and ∇F from the centres; A = 0 without noise."""
    seen, _ = follow(experiment(ALL[name], noise=sigma))
    assert len(seen) > 3
    strategy, lr = ALL[name], ALL[name].local_lr
    for one in seen:
        errors = one.terms
        if name == "mifa":
            lr = strategy.local_lr / max(one.event.version, 1)  # η_t = η/(t+1)
        update = (one.before - one.after) / (strategy.server_lr * lr)
        gradient = mean_gradient(one.before)
        # A step is a difference of two models: rounding of the models, seen through 1/(η_g η_l).
        close(one.terms.gradient, gradient)
        close(errors.noise + errors.bias + errors.delay, update - gradient)
        if not sigma:
            close(errors.noise, 0.0)


@pytest.mark.parametrize(
    "local", [SGD(steps=3), SGD(steps=2, momentum=0.5), Scaffold(steps=3), Prox(mu=0.5, steps=3)]
)
@pytest.mark.parametrize("name", ["fedbuff", "fedasync"])
def test_without_noise_several_steps_leave_only_drift(name: str, local: Any) -> None:
    """K > 1: the noise term is the drift exactly, and that is not nothing."""
    strategy = ALL[name].model_copy(update={"local": local})
    seen, _ = follow(experiment(strategy, noise=0.0))
    for one in seen:
        assert one.terms.drift is not None
        torch.testing.assert_close(one.terms.noise, one.terms.drift, rtol=0, atol=1e-11)
    assert max(float(one.terms.drift.norm()) for one in seen if one.terms.drift is not None) > 1e-3


def test_drift_of_two_steps_by_hand() -> None:
    """ASGD, K = 2: E[Δ]/(−η_l K) − ∇F_i = −η_l ∇F_i / 2 on a quadratic of curvature 1, noise or not."""
    seen, _ = follow(experiment(with_steps("asgd", 2)))
    for one in seen:
        assert one.terms.drift is not None
        gradient = one.terms.bias + one.terms.delay + one.terms.gradient  # E[u]: of the stale model
        close(one.terms.drift, -0.05 / 2 * gradient)


def test_asgd_by_hand() -> None:
    """B = ∇F_j(w^{t−τ_j}) − (1/n) Σ ∇F_i(w^{t−τ_i}), the others where they last contributed from."""
    described = experiment(ASGD(local_lr=0.05), updates=60)
    seen, simulation = follow(described)
    centres = torch.tensor(CENTRES, dtype=torch.float64)
    models = [seen[0].before, *(one.after for one in seen)]
    behind, jobs = [0] * 6, [0] * 6  # version behind each client's last update
    for t, one in enumerate(seen):
        client, staleness = one.event.client, one.event.staleness
        assert client is not None
        assert staleness is not None
        behind[client] = t - staleness
        stale = torch.stack([models[version] for version in behind]) - centres
        close(one.terms.bias, stale[client] - stale.mean(0))
        close(one.terms.delay, stale.mean(0) - mean_gradient(models[t]))
        close(one.terms.noise, simulation.world.samples(client, jobs[client], 1, 32)[0])
        jobs[client] += 1
        assert one.terms.participants == 1
        assert one.terms.weights[client] == pytest.approx(1)


def test_fedasync_by_hand() -> None:
    """w^{t+1} − w^t = α s (w_start − η_l (∇F_i + ξ) − w^t): A = s ξ, the pull to w_start is in B."""
    described = experiment(ALL["fedasync"], updates=60)
    seen, simulation = follow(described)
    jobs, models = [0] * 6, [seen[0].before, *(one.after for one in seen)]
    centres = torch.tensor(CENTRES, dtype=torch.float64)
    for t, one in enumerate(seen):
        client, staleness = one.event.client, one.event.staleness
        assert client is not None
        assert staleness is not None
        share, start = (1 + staleness) ** -0.5, models[t - staleness]
        close(one.terms.noise, share * simulation.world.samples(client, jobs[client], 1, 32)[0])
        expected = share * (start - centres[client] - (start - models[t]) / 0.05)
        errors = one.terms
        close(errors.bias + errors.delay + one.terms.gradient, expected)
        jobs[client] += 1


@pytest.mark.parametrize("name", ["asgd", "ace", "ca2fl", "fedavg", "afa_cd", "afa_cs", "mifa", "malenia"])
def test_several_steps_weigh_as_one(name: str) -> None:
    """With K = 3, u has the size of one gradient: once all were heard, the clients' weights sum to 1."""
    seen, _ = follow(experiment(with_steps(name, 3), times=[1] * 6))
    for one in seen[6:]:
        assert float(one.terms.weights.sum()) == pytest.approx(1)


@pytest.mark.parametrize("form", ["direct", "incremental"])
@pytest.mark.parametrize("cache", ["full", "int8"])
def test_ace_has_no_participation_bias(form: Any, cache: Any) -> None:
    """B = 0 from the first step on, which waits for everyone; what 8 bits round is noise."""
    seen, _ = follow(experiment(ACE(local_lr=0.05, form=form, cache=cache)))
    assert seen
    for one in seen:
        close(one.terms.bias, 0.0)
        close(one.terms.weights, 1 / 6)
    assert max(float(one.terms.delay.norm()) for one in seen) > 0.1


@pytest.mark.parametrize("start", ["first_pass", "when_all_heard"])
@pytest.mark.parametrize("drawn", [{"name": "iteration_delay"}, {"name": "rounds", "workers": 2}], ids=str)
def test_ace_has_no_participation_bias_where_clients_are_drawn(start: Any, drawn: Any) -> None:
    """B is zero from the first step on: whoever is drawn, the table holds every client."""
    seen, _ = follow(experiment(ACE(local_lr=0.05, start=start), arrangement=drawn))
    assert len(seen) > 40
    assert max(float(one.terms.bias.norm()) for one in seen) < 1e-12


def test_rounds_of_everyone_have_noise_only() -> None:
    seen, _ = follow(experiment(FedAvg(local_lr=0.05)))
    for one in seen:
        close(one.terms.bias, 0.0)
        close(one.terms.delay, 0.0)
        assert one.terms.participants == 6
    assert min(float(one.terms.noise.norm()) for one in seen) > 0


def test_noise_of_ace_is_that_of_asgd_over_n() -> None:
    """Σ ‖A‖² n/σ² (ACE) and Σ ‖A‖²/σ² (ASGD) are χ² distributed: within its 1 − 10⁻⁶ interval.

    All jobs take equally long, so that every sixth update of ACE averages six new gradients.
    """
    for strategy, every, share in ((ACE(local_lr=0.05), 6, 1 / 6), (ASGD(local_lr=0.05), 1, 1.0)):
        seen, _ = follow(experiment(strategy, times=[1] * 6, updates=300 * every), every)
        total = sum(float(one.terms.noise.square().sum()) for one in seen) / (0.3**2 * share)
        low, high = stats.chi2.interval(1 - 1e-6, 2 * len(seen))
        assert low < total < high
        assert high / low < 2


def test_participants_of_aced_are_its_active_clients() -> None:
    simulation = Simulation(experiment(ACED(local_lr=0.05, max_age=3)))
    terms, found, by_hand = ErrorTerms(simulation), [], []
    for event in simulate(simulation):
        if (measured := terms.see(event)) is not None:
            found.append(measured.participants)
            stamps = simulation.server.memory.stamp.values()
            active = [t for t in stamps if event.version - 1 - t <= 3]
            by_hand.append(len(active))
    assert found == by_hand
    assert len(set(found)) > 1


def test_importance_weighs_the_gradients() -> None:
    """Clients of importance p: FedAvg weighs by it, so that neither B nor C is left."""
    centres = [[0.0], [1.0], [5.0]]
    problem = Quadratic(centres=tuple(map(tuple, centres)), importance=(0.6, 0.3, 0.1), noise=0.2)
    where = scenario([1, 2, 3], centres=centres, updates=30).model_copy(update={"problem": problem})
    seen, _ = follow(Experiment(scenario=where, strategy=FedAvg(local_lr=0.1)))
    for one in seen:
        close(one.terms.bias, 0.0)
        close(one.terms.delay, 0.0)


@pytest.mark.parametrize(
    "strategy",
    [ALL["fadas"], ALL["asyncfeded"], ASGD(local=SGD(clip=1.0)), ASGD.model_validate({"local": "adamw"})],
    ids=lambda strategy: strategy.label(),
)
def test_what_is_not_linear_is_refused(strategy: Strategy) -> None:
    asked = Diagnostics(errors=1)
    reason = asked.refuses(experiment(strategy))
    assert reason
    with pytest.raises(ValueError, match=re.escape(reason)):
        Recorder(Simulation(experiment(strategy)), asked)
    assert Diagnostics(gradient=1).refuses(experiment(strategy)) is None


def test_a_strategy_that_sends_by_content_is_found_out() -> None:
    class Greedy(ASGD):
        """Sends to one client or the other by the sign of the model."""

        def next(self, server: Any) -> list[int]:
            return [] if server.in_flight else [int(server.model[0] > 0)]

    where = scenario([1, 2], centres=[[0.5], [-0.5]], noise=1.0, updates=60)
    described = Experiment(scenario=where, strategy=Greedy(local_lr=0.5))
    with pytest.raises(RuntimeError, match="values of updates"):
        follow(described)


# -- diagnostics beside a run ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ace", "fedbuff"])
def test_a_run_is_the_same_with_diagnostics(name: str) -> None:
    described = experiment(ALL[name])
    plain = run(described)
    diagnosed = run(described, diagnostics=Diagnostics(errors=3, gradient=2, constants=40))
    assert diagnosed.diagnostics
    assert replace(diagnosed, diagnostics=[]) == plain
    wanted = {t for t in range(int(plain.curve[-1]["iteration"])) if t % 3 == 0 or t % 2 == 0 or t % 40 == 0}
    assert [row["iteration"] for row in diagnosed.diagnostics] == sorted(wanted)


@pytest.mark.parametrize("name", ["ace", "fedbuff"])
def test_resume_with_diagnostics(name: str, tmp_path: Path) -> None:
    asked = Diagnostics(errors=2, gradient=1)
    described = experiment(with_steps(name, 2), updates=40)
    whole = run(described, diagnostics=asked)
    recorders = [Recorder(Simulation(described), asked) for _ in range(3)]
    assert resumed(recorders, [0, 30]) == whole
    checkpoint.save(Recorder(Simulation(described), asked), tmp_path / "run.pt")
    with pytest.raises(ValueError, match="other diagnostics"):
        checkpoint.load(Recorder(Simulation(described)), tmp_path / "run.pt")


def test_gradients_along_a_run() -> None:
    """Rows at every second version, with the time until the next; the time-weighted mean by hand."""
    described = experiment(FedBuff(local_lr=0.05, buffer=2, concurrency=3))
    record = run(described, diagnostics=Diagnostics(gradient=2))
    simulation = Simulation(described)
    models, times = [simulation.server.model], [0.0]
    for event in simulate(simulation):
        if event.stepped:
            models.append(simulation.server.model)
            times.append(simulation.time)
    rows = record.diagnostics
    squares = [float(mean_gradient(model).square().sum()) for model in models[:-1:2]]
    lengths = np.diff(times)[::2]
    assert [row["gradient_sq"] for row in rows] == pytest.approx(squares)
    assert [row["round_time"] for row in rows] == pytest.approx(lengths)
    weighted = summary(rows, 6)["gradient_sq_time_weighted"]
    assert weighted == pytest.approx(sum(squares * lengths) / len(squares))


def test_summary_by_hand() -> None:
    rows = [
        {"iteration": 0, "round_time": 2.0, "gradient_sq": 3.0, "participants": 4},
        {"iteration": 1, "round_time": 9.0, "smoothness": 5.0},
        {"iteration": 2, "round_time": 1.0, "gradient_sq": 1.0, "participants": 3},
    ]
    means = {"gradient_sq": 2, "participants": 3.5, "smoothness": 5}
    assert summary(rows, 4) == {**means, "gradient_sq_time_weighted": 3.5, "part_share": 0.5}


def test_no_prediction_without_a_formula() -> None:
    away = {"name": "dropouts", "share": 0.5, "at": 4}
    for described in (experiment(ALL["fedbuff"]), experiment(ALL["asgd"], availability=away)):
        assert "staleness_predicted" not in run(described).clients


def test_real_training_is_the_same_with_diagnostics() -> None:
    """A network in single precision, one module for all models; K = 2 steps of mini-batches."""
    pytest.importorskip("sklearn")
    where = scenario([1, 2, 3], updates=4).model_dump(mode="json")
    where["problem"] = {"name": "digits", "clients": 3, "model": "cnn"}
    strategy = {"name": "ca2fl", "buffer": 2, "local": {"name": "sgd", "steps": 2}}
    described = Experiment.model_validate({"scenario": where, "strategy": strategy})
    plain = run(described)
    diagnosed = run(described, diagnostics=Diagnostics(errors=1))
    assert replace(diagnosed, diagnostics=[]) == plain
    for row in diagnosed.diagnostics:
        parts = sum(row[f"{name}_sq"] for name in ("noise", "bias", "delay"))
        assert 0 < row["error_sq"] <= 3 * parts * (1 + 1e-5)
        assert row["drift_sq"] < row["noise_sq"]


# -- staleness, constants, volatility, overhead ------------------------------------------------------


def test_table_by_client() -> None:
    arrivals = {"client": [0, 2, 0, 0], "staleness": [0, 3, 1, 5]}
    table = by_client(arrivals, 3)
    assert table["updates"] == [3, 0, 1]
    assert table["share"] == [0.75, 0, 0.25]
    assert table["staleness_mean"] == pytest.approx([2, np.nan, 3], nan_ok=True)
    assert table["staleness_max"] == pytest.approx([5, np.nan, 3], nan_ok=True)
    assert table["relative_delay"] == [1.5, 0, 0.75]


def test_staleness_of_one_job_each() -> None:
    """Always busy, every arrival a step: each arrival of another falls into one job of mine.

    The clients' counts differ from t/τ_i by less than 1, which bounds the error of the ratio.
    """
    times = [Fraction(1), Fraction(7, 3), Fraction(5), Fraction(1, 2)]
    where = scenario(times, updates=3000)
    record = run(Experiment(scenario=where, strategy=ASGD(local_lr=0.01)))
    predicted = one_job_each(times)
    assert record.clients["staleness_predicted"] == predicted.tolist()
    table = by_client(record.arrivals, 4)
    for found, wanted, updates in zip(table["staleness_mean"], predicted, table["updates"], strict=True):
        assert found == pytest.approx(wanted, abs=(len(times) + wanted) / updates)
    assert sum(table["relative_delay"]) == pytest.approx(3, abs=0.01)


@pytest.mark.slow
def test_discrete_little_law_in_a_network_of_queues() -> None:
    """Generalized AsyncSGD with exponential services: E[D_i] = E[X_i], staleness E[X_i]/p_i."""
    p, times, tasks, updates = [0.5, 0.3, 0.2], [Fraction(1), Fraction(2), Fraction(4)], 5, 16_000
    where = scenario(times, updates=updates).model_dump(mode="json")
    where["timing"]["durations"] = {"name": "exponential", "times": [1, 2, 4]}
    strategy = {"name": "generalized_asyncsgd", "concurrency": tasks, "routing": p, "local_lr": 0.001}
    record = run(Experiment.model_validate({"scenario": where, "strategy": strategy}))
    predicted = queued(np.array(p), times, tasks)
    assert record.clients["staleness_predicted"] == predicted.tolist()
    client, staleness = (np.asarray(record.arrivals[key])[1000:] for key in ("client", "staleness"))
    for i in range(3):
        blocks = np.array_split(np.where(client == i, staleness, 0), 30)  # relative delays, in batches
        means = np.array([block.mean() for block in blocks])
        half = stats.t.ppf(1 - 1e-4, len(means) - 1) * means.std(ddof=1) / len(means) ** 0.5
        assert abs(means.mean() - p[i] * predicted[i]) < half
        assert half < 0.25 * means.mean()
    assert sum(by_client(record.arrivals, 3)["relative_delay"]) == pytest.approx(tasks - 1, abs=0.01)


def test_constants_of_quadratics() -> None:
    curvature, centres = (1.0, 4.0, 2.0), ((0.0, 1.0), (2.0, 0.0), (-1.0, 3.0))
    p = np.array([0.5, 0.3, 0.2])
    problem = Quadratic(centres=centres, curvature=curvature, importance=tuple(p), noise=0.4)
    world, model = problem.world(0), torch.tensor([1.0, -2.0], dtype=torch.float64)
    found = constants(world, model, 32, np.random.default_rng(0), draws=400)
    assert found.smoothness == pytest.approx(p @ curvature, rel=1e-8)
    assert found.client_smoothness == pytest.approx(4, rel=1e-8)
    slopes = np.array(curvature)[:, None] * (model.numpy() - np.array(centres))
    apart = ((slopes - p @ slopes) ** 2).sum(1)
    assert found.dissimilarity == pytest.approx(p @ apart, rel=1e-12)
    assert found.worst_dissimilarity == pytest.approx(apart.max(), rel=1e-12)
    low, high = stats.chi2.interval(1 - 1e-6, 2 * 400)
    for client in range(3):
        assert low < noise(world, model, client, 32, 400) * 400 / 0.4**2 < high
    quiet = problem.model_copy(update={"noise": 0.0}).world(0)
    assert constants(quiet, model, 32, np.random.default_rng(0)).noise_variance == 0


def test_smoothness_is_the_largest_eigenvalue() -> None:
    """Of a Hessian with a negative end, against the dense solver; it is approached from below."""
    root = torch.from_numpy(np.random.default_rng(1).normal(size=(12, 12)))
    hessian = (root + root.T) / 2 - 2 * torch.eye(12)
    largest = float(torch.linalg.eigvalsh(hessian).abs().max())
    start = torch.ones(12, dtype=torch.float64)
    found = smoothness(
        lambda w: hessian @ w, start, np.random.default_rng(0), tolerance=1e-10, max_steps=2000
    )
    assert found == pytest.approx(largest, rel=1e-6)
    rough = smoothness(lambda w: hessian @ w, start, np.random.default_rng(0))
    assert 0.9 * largest < rough <= largest * (1 + 1e-8)


def test_volatility_by_hand() -> None:
    """Steps 1, 1, 8, −6, 1, 1: their median size is 1, and the point at 10 is above both by 6 at least."""
    found = volatility([0, 1, 2, 10, 4, 5, 6])
    assert found.spikes == 1
    assert found.step_std == pytest.approx(np.std([1, 1, 8, -6, 1, 1]))
    fall = volatility([10, 9, 8, 1, 0, -1, -2])  # stays
    assert fall.spikes == 0
    assert volatility([1.0, 1.0, 1.0]).step_std == 0
    with pytest.raises(ValueError, match="at least three points, all finite"):
        volatility([1.0, float("nan"), 2.0])


def kept(strategy: Strategy) -> dict[str, int]:
    simulation, _ = play(strategy, scenario(TIMES, centres=CENTRES, updates=40))
    return overhead(simulation)


def test_overhead_in_bytes() -> None:
    """n = 6 clients, models of d = 2 numbers of 8 bytes."""
    model, table = 2 * 8, 6 * 2 * 8
    assert kept(ASGD(local_lr=0.01)) == {"server": 0, "clients": 0}
    assert kept(ACE(local_lr=0.01, form="direct")) == {"server": table + model, "clients": 0}
    assert kept(ACE(local_lr=0.01, form="incremental")) == {"server": model, "clients": table}
    rounded = kept(ACE(local_lr=0.01, form="direct", cache="int8"))
    assert rounded == {"server": table // 8 + 6 * 8 + model, "clients": 0}
    assert kept(ASGD(local_lr=0.01, local=Scaffold())) == {"server": model, "clients": table}
