"""The schedule of a run, who works when, without its data and gradients: how many client updates it has."""

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic

ARRIVALS, STEPS = 400, 10  # that are looked at, after the server's first step


def schedule(experiment: Experiment) -> Experiment:
    """Return an experiment as far as it tells who works when: one number a client, and seed 0."""
    scenario = experiment.scenario
    problem = Quadratic(centres=((0.0,),) * scenario.problem.clients)
    scenario = scenario.model_copy(update={"problem": problem})
    return experiment.model_copy(update={"scenario": scenario, "seed": 0})


def updates(experiment: Experiment) -> float:
    """Return the client updates of a run, extrapolated from the beginning of its schedule."""
    simulation = Simulation(schedule(experiment))
    arrivals = steps = 0
    until_first = 0, 0.0  # arrivals and share of the budget at the first step, after ACE's first pass
    for event in simulate(simulation, ScheduleOnly()):
        arrivals += event.kind is EventKind.ARRIVAL
        steps += event.stepped
        if steps == 1 and event.stepped:
            until_first = arrivals, simulation.share
        before, used = until_first
        if steps > STEPS and arrivals > before + ARRIVALS:
            return before + (arrivals - before) * (1 - used) / (simulation.share - used)
    return arrivals
