"""The world of a problem with random training: dropout, and random crops and flips of images.

`Supervised.kind_of_world` chooses it for tasks that are random beyond the choice of mini-batches.

Fixed: the keys of a job, and the crop and flip of a key.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from fl_core.problems.data.client_data import Shares
from fl_core.problems.training.tasks import Batch, Task
from fl_core.problems.training.world import SupervisedWorld
from fl_core.streams import Streams

PADDING = 4  # pixels of black on each side before an image is cropped
VARIANTS = (2 * PADDING + 1) ** 2 * 2  # positions, flipped or not


class KeyedWorld(SupervisedWorld):
    """A world with a key for each data point, for all randomness in training.

    A sample is [B, 2]: index and key, 0 … 2³² − 1, of the stream ("keys", client, job). So mini-batches equal
    those of the plain world, and no result depends on jobs computed alongside. A sample [B] of indices alone
    is without randomness: evaluation, full gradients and the pooled baseline neither drop, crop nor flip.
    The dropout of torch's own layers follows from the key of the mini-batch's first data point.
    """

    def __init__(self, task: Task, shares: Shares, p: np.ndarray, seed: int) -> None:
        super().__init__(task, shares, p, seed)
        self.keyed, self.drops = task.keyed, task.takes_keys or task.drops
        self.kind = (self.kind, task.augments)
        self._keys = Streams(seed, "keys")

    def samples(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Return the mini-batches [steps, batch, 2] of a job: indices drawn with replacement, and keys."""
        return self._with_keys(super().samples(client, job, steps, batch), client, job)

    def shuffled(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Return the mini-batches [steps, batch, 2] of a job: indices of shuffled epochs, and keys."""
        return self._with_keys(super().shuffled(client, job, steps, batch), client, job)

    def _with_keys(self, indices: Tensor, client: int, job: int) -> Tensor:
        """Return indices with a random key each [..., 2], for tasks that need keys."""
        if not self.keyed:
            return indices
        keys = self._keys.at(client, job).integers(0, 2**32, tuple(indices.shape))
        return torch.stack([indices, torch.from_numpy(keys)], -1)

    def batch(self, indices: Tensor) -> Batch:
        """Return normalised training data [B, ...], targets [B], and keys [B] if the network takes keys."""
        if indices.ndim == 1:
            return super().batch(indices)
        places, keys = indices.unbind(-1)
        data = self.data
        stored, targets = data.x_train.index_select(0, places), data.y_train.index_select(0, places)
        if self.task.augments:
            stored = crop_and_flip(stored, keys % VARIANTS)
        return (self.normalise(stored), self.target(targets), *([keys] if self.drops else []))


def crop_and_flip(images: Tensor, variants: Tensor) -> Tensor:
    """Return images padded by 4, cropped to the original size and flipped.

    Args:
        images: [B, C, H, W].
        variants: [B], 2 (9 y + x) + f for y rows and x columns from the padded corner; f = 1 flips.
    """
    height, width = images.shape[2:]
    places, flipped = variants // 2, variants % 2
    top, first_column = places // (2 * PADDING + 1), places % (2 * PADDING + 1)
    rows = top[:, None] + torch.arange(height, device=images.device)
    across = torch.arange(width, device=images.device).expand(len(images), width)
    columns = first_column[:, None] + torch.where(flipped[:, None] > 0, across.flip(1), across)
    padded = pad(images, (PADDING,) * 4)
    indices = torch.arange(len(images), device=images.device)
    cut = padded[indices[:, None, None], :, rows[:, :, None], columns[:, None, :]]  # [B, H, W, C]
    return cut.permute(0, 3, 1, 2)
