"""Requirements of every problem: the world is a pure function of the seed, with true gradients.

`conformance.checks` runs `CHECKS` on a problem. A docstring says what holds for a problem that passes.
"""

import numpy as np
import torch

from fl_core.execution.stacked import AllInFlight
from fl_core.problems.problem import Problem
from fl_core.recorded_names import Status
from fl_core.recording.recorder import run
from fl_core.scenario import Budget, Scenario
from fl_core.testing.check_experiments import experiment, must

BATCH = 4
STEP = 1e-5  # of the difference quotient


def worlds_of_one_seed_are_equal(problem: Problem) -> None:
    """Importance sums to 1; first model and samples repeat, in whatever order drawn."""
    world, repeated = problem.world(3), problem.world(3)
    must(len(world.p) == world.n == problem.clients, "p does not have one entry for each client")
    must(bool(np.isclose(world.p.sum(), 1)) and world.p.min() >= 0, "p is not a distribution over clients")
    must(world.initial().shape == (world.d,), "the first model is not a vector of d parameters")
    must(torch.equal(world.initial(), repeated.initial()), "the same seed gave another first model")
    jobs = [(client, job) for client in range(world.n) for job in range(2)]
    drawn = {job: world.samples(*job, 2, BATCH) for job in jobs}
    same = [torch.equal(repeated.samples(*job, 2, BATCH), drawn[job]) for job in reversed(jobs)]
    must(all(same), "samples depend on what was drawn before")


def stacked_gradients_are_the_single_ones(problem: Problem) -> None:
    """`gradients` of a job per client equal `gradient` to 1e-10 in float64, to a 1e-4th in float32."""
    world = problem.world(3)
    model = world.initial()
    samples = torch.stack([world.samples(client, 0, 1, BATCH)[0] for client in range(world.n)])
    stacked = world.gradients(model.repeat(world.n, 1), torch.arange(world.n), samples)
    single = torch.stack([world.gradient(model, client, samples[client]) for client in range(world.n)])
    allowed = 1e-10 if model.dtype == torch.float64 else 1e-4 * float(single.norm(dim=1).max())
    apart = float((stacked - single).norm(dim=1).max())
    must(apart <= allowed, f"gradients and gradient differ by {apart:.2g}")


def full_gradients_are_those_of_the_losses(problem: Problem) -> None:
    """∇F_i · v is the difference quotient of the client's loss in a direction v; in float64 only."""
    world = problem.world(3)
    if world.initial().dtype != torch.float64:
        return
    direction = torch.from_numpy(np.random.default_rng(0).normal(size=world.d))
    direction /= direction.norm()
    model = world.initial() + 0.1 * direction
    ahead, behind = (world.losses(model + side * STEP * direction) for side in (1, -1))
    quotient = (ahead - behind) / (2 * STEP)
    slopes = np.array([float(world.full_gradient(model, client) @ direction) for client in range(world.n)])
    apart = np.abs(slopes - quotient).max()
    must(
        apart <= 1e-5 * (1 + np.abs(quotient).max()),
        f"full_gradient is off client_loss's by {apart:.2g}",
    )


def a_run_records_its_metric(problem: Problem) -> None:
    """A few updates of asynchronous SGD are done, repeatable, and arrive alike from stacked jobs."""
    setting = Scenario(problem=problem, budget=Budget(updates=2 * problem.clients), evaluations=2)
    described = experiment(setting)
    first = run(described)
    must(first.status is Status.DONE, f"a run ended as {first.status}: {first.reason}")
    must(
        problem.metric in first.curve[-1],
        f"evaluations have no '{problem.metric}', which ranks strategies",
    )
    must(run(described).curve == first.curve, "the same experiment gave another curve")
    stacked = run(described, execution=AllInFlight())
    must(stacked.arrivals == first.arrivals, "stacked jobs gave other arrivals")


CHECKS = (
    worlds_of_one_seed_are_equal,
    stacked_gradients_are_the_single_ones,
    full_gradients_are_those_of_the_losses,
    a_run_records_its_metric,
)
