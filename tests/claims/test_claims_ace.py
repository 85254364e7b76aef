"""The entries of ACE: every method is read at the iteration that is judged, at rates tuned for it."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.claims import stored_numbers
from benchmarks.claims.files import FOLDER, Paper
from benchmarks.claims.plan import ClaimPlan, expanded
from benchmarks.discrepancies import discrepancies
from benchmarks.suite import tuned as tuned_values
from benchmarks.suite.suite import PlannedRun, load
from benchmarks.suite.tuned import TunedEntry
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic


@pytest.fixture(scope="module")
def paper(all_papers: dict[str, Paper]) -> Paper:
    return all_papers["ace"]


def judged(paper: Paper, scale: str) -> list[tuple[str, float, PlannedRun]]:
    """Claim, iteration and run of every number that is read at a server iteration; of the first seed."""
    plan = ClaimPlan(paper, scale, (), (0,))
    return [
        (claim.id, sample.at, run)
        for claim in paper.claims.values()
        if claim.clock == "iterations" and scale in paper.scales(claim)
        for name, sample in claim.samples.items()
        if isinstance(sample.at, int | float)
        for run in plan.picked(claim)[name][0]
    ]


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_every_accuracy_is_read_off_an_evaluation_at_that_very_iteration(paper: Paper, scale: str) -> None:
    """Marks lie at k/E of the budget of iterations; at least one method of each kind of delay is judged."""
    found = judged(paper, scale)
    for id_, at, run in found:
        scenario = run.experiment.scenario
        assert scenario.budget.iterations is not None, id_
        mark = Fraction(at) * scenario.evaluations / scenario.budget.iterations
        assert mark.denominator == 1 and mark <= scenario.evaluations, id_
    laws = {id_.rpartition("-")[0][-2:] for id_, _, _ in found if id_.startswith("A-best/ace-fedbuff-a")}
    assert {"D1", "D2", "D3", "D4"} <= laws
    ids = {claim.id for claim in paper.claims.values() if claim.metrics and claim.clock == "iterations"}
    accuracies = {id_ for id_ in ids if paper.claims[id_].metric == "test/accuracy"}
    assert {id_ for id_ in accuracies if paper.claims[id_].reach is None} - {id_ for id_, _, _ in found} <= {
        id_ for id_ in ids if scale not in paper.scales(paper.claims[id_])
    }


@pytest.mark.slow
def test_every_method_reaches_the_iteration_that_is_judged(paper: Paper) -> None:
    """No other budget ends a run before; the order of arrivals does not depend on what clients learn."""
    seen = list[Experiment]()
    for id_, at, run in judged(paper, "small"):
        experiment = run.experiment
        if any(alike(experiment, other) for other in seen):
            continue
        seen.append(experiment)
        n = experiment.scenario.problem.clients
        easy = Quadratic(centres=tuple((float(client),) for client in range(n)))
        scenario = experiment.scenario.model_copy(update={"problem": easy})
        slow = experiment.strategy.model_copy(update={"local_lr": 1e-6})
        simulation = Simulation(Experiment(scenario=scenario, strategy=slow, seed=0))
        for _ in simulate(simulation):
            pass
        assert simulation.reason == "budget of server iterations", id_
        assert simulation.server.version >= at, id_


def alike(one: Experiment, other: Experiment) -> bool:
    """Whether two experiments differ in what clients learn alone, at most."""
    scenes = [
        x.scenario.model_dump(exclude={"problem"}) | {"n": x.scenario.problem.clients} for x in (one, other)
    ]
    return scenes[0] == scenes[1] and one.strategy == other.strategy


# Rates for a mean delay of 30. D4: as many as for the other delays, and lower; D3: optima lie further apart.
LOWER = (0.0003, 0.00045, 0.0007, 0.001, 0.0015, 0.002, 0.003, 0.0045, 0.007, 0.01, 0.015, 0.02, 0.03, 0.045)
WIDER = (0.0002, *LOWER, 0.07, 0.1, 0.15, 0.2, 0.3)
# A small CNN: its optima lie higher.
HIGHER = (0.007, 0.01, 0.015, 0.02, 0.03, 0.045, 0.07, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1)
GRIDS = {
    "ace_together_late": LOWER,
    "ace_iterations_late": WIDER,
    "ace_code": (*LOWER[6:], 0.07),
    "ace_code_aced": HIGHER[6:12],
    "ace_together_cnn": HIGHER,
    "ace_together_cnn_late": WIDER[2:],
    "ace_together_resnet": (0.1, 0.2, 0.4, 0.8, 1.6),
    "ace_together_resnet_late": (0.00625, 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8),
    "ace_resnet": (0.0015625, 0.003125, 0.00625, 0.0125, 0.025, 0.05, 0.1, 0.2),
    "ace_resnet_ca2fl": (0.1, 0.2, 0.4, 0.8, 1.6),
    "ace_resnet_fedbuff": (0.0125, 0.025, 0.05, 0.1, 0.2),
}
# FedBuff and CA²FL from campaigns of their own; their updates are as old whatever the mean delay is.
BUFFERED = {
    "residual_late": [("ace_together_resnet", "Exp(5)")],
    "code": [("ace_code", "exponential")],
    "residual_jobs": [("ace_resnet_ca2fl", "exponential"), ("ace_resnet_fedbuff", "exponential")],
}


@pytest.mark.parametrize(
    ("scenario", "tuned", "delay"),
    [
        ("together", "ace_together", "Exp(5)"),
        ("late", "ace_together_late", "Exp(30)"),
        ("corners", "ace_together", "Exp(1)"),
        ("corners_late", "ace_together_late", "Exp(30)"),
        ("dropouts", "ace_together", "Exp(5)"),
        ("jobs", "ace", "exponential"),
        ("code", "ace_code_aced", "exponential"),
        ("persistent", "ace", "persistent"),
        ("text", "ace_newsgroups", "Exp(5)"),
        ("iterations", "ace_iterations", "Exp(5)"),
        ("iterations_late", "ace_iterations_late", "Exp(30)"),
        ("network", "ace_together_cnn", "Exp(5)"),
        ("network_late", "ace_together_cnn_late", "Exp(30)"),
        ("residual", "ace_together_resnet", "Exp(5)"),
        ("residual_late", "ace_together_resnet_late", "Exp(30)"),
        ("residual_jobs", "ace_resnet", "exponential"),
    ],
)
def test_small_rates_are_those_that_were_tuned_for_500_iterations(
    paper: Paper, scenario: str, tuned: str, delay: str
) -> None:
    """Matched by delay and by what tells strategies of one name apart; no optimum at an end of its grid."""
    found = found_by(tuned, delay)
    for other in BUFFERED.get(scenario, ()):
        found += [one for one in found_by(*other) if one.strategy.startswith(("FedBuff", "CA²FL"))]
    for run in expanded(paper, scenario, "small").runs():
        strategy = run.experiment.strategy
        same = {
            one.parameters["local_lr"]
            for one in found
            if one.strategy.partition(" (")[0] == run.strategy.partition(" (")[0]
            and all(f"{key} {getattr(strategy, key, None)}" in one.strategy for key in told(one.strategy))
        }
        assert same == {strategy.local_lr}, (run.strategy, same)


def found_by(tuned: str, delay: str) -> list[TunedEntry]:
    """What a campaign found under a delay; its grid is wide and fine enough, of a ResNet in factors of 2."""
    suite = re.sub("(_cnn|_code.*|_resnet.*)?(_late)?$", "", tuned)
    file = tuned_values.load(FOLDER / "tuned" / f"{tuned}.yaml", suite)
    assert file.budget.startswith("500 server iterations or ")
    grid = np.array(GRIDS.get(tuned) or load(suite, scale="small").spec.tuning.space["local_lr"], float)
    assert len(grid) == file.trials
    assert all(grid.min() < one.parameters["local_lr"] < grid.max() for one in file.tuned)
    assert (grid[1:] / grid[:-1]).max() < (2.1 if "resnet" in tuned else 1.6)
    return [one for one in file.tuned if delay in one.scenario]


def told(label: str) -> list[str]:
    """The fields that a label names and that bear on the rate: `ASGD (concurrency 20)` → concurrency."""
    inside = label.partition(" (")[2].rstrip(")")
    return [word.split(" ")[0] for word in inside.split(", ") if word and word.split(" ")[0] != "cache"]


def test_errata_of_the_published_code_tell_the_means_that_are_stored() -> None:
    """X-21 and X-22, at α = 0.1: accuracies of each method without its defect, and with it."""
    stored = stored_numbers.values(stored_numbers.read(stored_numbers.path("ace", "small")))
    told = {entry.id: entry.reading for entry in discrepancies()}
    for number, pairs in {"X-21": ("fedbuff-starved", "ca2fl-starved"), "X-22": ("aced-trigger",)}.items():
        for pair in pairs:
            samples = stored[f"A-code-parts/{pair}-a0.1"]
            a, b = (np.mean(list(samples[name].values())) for name in ("a", "b"))
            without, with_it = (b, a) if number == "X-22" else (a, b)
            assert f"{without:.3f} without the defect, {with_it:.3f} with it" in told[number]
            assert f"{len(samples['a'])} seeds" in told[number]
