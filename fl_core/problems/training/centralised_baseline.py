"""The pooled (centralised) baseline: a world's task, trained on the data of all clients together.

`Supervised.pooled` calls `train`; pages show the result as a line.

Fixed: the result, bit for bit, which is recorded under a key of its own. No federated run depends on it.
"""

import logging
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice, repeat
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from fl_core.lightning import pl
from fl_core.problems.training.tasks import Batch
from fl_core.problems.training.user_task import UserTask
from fl_core.problems.training.world import SupervisedWorld
from fl_core.streams import torch_stream


def pooled_batches(world: SupervisedWorld, batch: int, seed: int) -> DataLoader[Batch]:
    """Return the mini-batches of shuffled epochs of all clients' data, from the stream "pooled"."""
    held, random = TensorDataset(torch.from_numpy(world.held)), torch_stream(seed, "pooled")
    batches = BatchSampler(RandomSampler(held, generator=random), batch, drop_last=False)

    def gathered(rows: Any) -> Batch:  # a whole mini-batch in a single call
        return world.batch(rows[0].to(world.device))

    return DataLoader(held, sampler=batches, batch_size=None, generator=random, collate_fn=gathered)


def train(world: SupervisedWorld, seed: int, steps: int, batch: int = 128) -> Tensor:
    """Return the model [d] after `steps` of the task's optimiser on all data, from the first model.

    The steps are those of Lightning's Trainer, which trains modules of users itself: they may have hooks.
    """
    task, batches = world.at(world.initial()), pooled_batches(world, batch, seed)
    if isinstance(task, UserTask):
        _fit(task, batches, world.device, steps)
        world.to(world.device)  # Lightning leaves the task on the CPU
    else:
        optimizer, decay = task.adam(steps)
        for mini_batch in islice(chain.from_iterable(repeat(batches)), steps):
            optimizer.zero_grad()
            task.loss(mini_batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            decay.step()
    return world.flat.vector(task)


def _fit(task: UserTask, batches: DataLoader[Batch], device: torch.device, steps: int) -> None:
    """Train a user's module with Lightning's Trainer, in place."""
    with _quiet(), _interruptible():
        trainer = pl.Trainer(
            accelerator=device.type,
            devices=1 if device.index is None else [device.index],
            max_steps=steps,
            max_epochs=-1,
            barebones=True,  # no logs, checkpoints or progress bar: a third of a small model's time
        )
        trainer.fit(task, batches)
    task.trainer = None  # also the network's: evaluation is without a Trainer, as for clients' models


@contextmanager
def _interruptible() -> Iterator[None]:
    """Make Ctrl-C work as in Python: Lightning would ignore the signal from then on, and exit."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as end:
        if not isinstance(end.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Lightning from remarks on hardware, workers and the like."""
    log = logging.getLogger("pytorch_lightning.utilities.rank_zero")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
