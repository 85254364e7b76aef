"""How long a campaign will take: the first batch of some studies is begun here, and the rest extrapolated."""

from __future__ import annotations

from time import perf_counter

import torch

from benchmarks import device
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.recording.recorder import Recorder
from fl_core.recording.together import Recorded, advance
from tuning.study import Campaign, Study
from tuning.trials_job import AT_ONCE

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
    batches = sum(study.trials for study in studies) / campaign.spec.batch / len(studies)
    return seconds / len(tried) * len(studies) * batches


def _batch(study: Study, size: int, patience: float) -> float:
    """Seconds of one batch of trials, from what is done of it after `patience`."""
    worlds = {seed: device.place(study.tried_on.problem.world(seed)) for seed in study.seeds}
    began = perf_counter()
    recorders = []
    for seed in study.seeds * size:
        experiment = Experiment(scenario=study.tried_on, strategy=study.space.strategy, seed=seed)
        recorders.append(Recorder(Simulation(experiment, worlds[seed])))
        recorders[-1].start()
    starting = perf_counter() - began
    began = perf_counter()
    for _ in advance(map(Recorded, recorders), AT_ONCE):
        if perf_counter() - began > patience:
            break
    done = sum(min(1.0, recorder.simulation.share) for recorder in recorders) / len(recorders)
    return starting + (perf_counter() - began) / done
