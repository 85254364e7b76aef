"""How long a campaign will take: the first batch of some studies is begun here, and the rest extrapolated."""

from itertools import product

import torch

from benchmarks.runs.estimate import done, extrapolated, length
from fl_core.execution.auto import Auto
from fl_core.experiment import Experiment
from fl_core.recording.interleave import interleave
from tuning.study import Campaign, Study
from tuning.trials_job import AT_ONCE, SeedOfTrial, TrialsJob, TrialWorlds

MOST = 8  # so many studies are looked at, evenly spaced


def core_seconds(campaign: Campaign, patience: float = 6.0) -> float:
    """Seconds that all trials take on one core, batch by batch; measured for about `patience` seconds.

    Raises what building a problem raises: data may be missing.
    """
    torch.set_num_threads(1)  # as in the workers
    studies = campaign.studies
    tried = studies[:: -(-len(studies) // MOST)]
    _batch(tried[0], campaign.spec.batch, 0.0)  # what is loaded once a process does not count
    seconds = sum(_batch(study, campaign.spec.batch, patience / len(tried)) for study in tried)
    batches = (
        sum(study.simulations / len(study.seeds) for study in studies) / campaign.spec.batch / len(studies)
    )
    return seconds / len(tried) * len(studies) * batches


def _batch(study: Study, size: int, patience: float) -> float:
    """Seconds of one batch of trials, from what is done of it after `patience`, or as soon as anything is."""
    known = [study.strategy_with(values) for _, values in study.first[:size]]
    trials = dict(enumerate([*known, *[study.space.strategy] * (size - len(known))]))
    job = TrialsJob(study.name, study.tried_on, trials, study.seeds, study.objective.metric.name)
    worlds = TrialWorlds()
    for seed in study.seeds:
        worlds.of(study.tried_on.problem, seed)
    places = product(range(len(study.seeds)), trials)
    slots = [SeedOfTrial(job, trial, seed, worlds, set()) for seed, trial in places]
    whole = length(Experiment(scenario=study.tried_on, strategy=trials[0], seed=0))

    def share() -> float:
        """The share of all simulations that is done."""
        begun = [slot.recorder.simulation for slot in slots if slot.recorder]
        return sum(min(1.0, done(simulation, whole)) for simulation in begun) / len(slots)

    return extrapolated(interleave(slots, AT_ONCE, Auto()), share, patience)
