"""Shakespeare's plays as text for a language model: every byte is predicted from the bytes before."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from pydantic import SerializeAsAny, model_validator
from torch import Tensor

from fl_core import file_reading
from fl_core.metrics import LOSS, Metric
from fl_core.parts import Count, FieldError
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataDamagedError, located
from fl_core.problems.models.decoder import Decoder
from fl_core.problems.models.model import Model
from fl_core.problems.partitions import IID, Partition
from fl_core.problems.shakespeare import largest, windows
from fl_core.problems.supervised import Modelled

if TYPE_CHECKING:
    from fl_core.problems.training.world import SupervisedWorld

FILE = "tinyshakespeare.txt"
ALPHABET = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # its 65 bytes
BYTES = 1_115_394  # of the text
TRAINING = 0.9  # share of the text; the rest, its end, is for testing
SPEECH = re.compile(r"([^\n:]+):\n(.+)", re.DOTALL)  # ROLE: and its lines, up to an empty line


class ShakespeareLM(Modelled):
    """Next byte at every place of Shakespeare's plays, for decoders (text of char-rnn, Karpathy, 2015).

    A data point is a window of `context` bytes, windows do not overlap, and the target of each byte is the
    one that follows. The loss is in nats a byte. With the partition `natural` each client has the text of one
    role, the `clients` roles with the longest; else windows are dealt out of the text as a whole. The first
    nine tenths of a text are for training, the rest for testing.
    """

    name: ClassVar[str] = "shakespeare_lm"
    classes: ClassVar[int] = len(ALPHABET)
    owned: ClassVar[bool] = True
    task_name: ClassVar[str] = "NextByte"

    clients: Count = 4
    partition: SerializeAsAny[Partition] = IID()
    model: SerializeAsAny[Model] = Decoder()
    metric: str = LOSS.name
    context: Count = 32  # bytes of a window
    points: Count | None = None  # windows for training, evenly spaced; None: all
    test_points: Count = 1024  # windows for testing at most, evenly spaced

    @model_validator(mode="after")
    def _has_no_labels(self) -> Self:
        """Refuse partitions by label."""
        if self.partition.by_label:
            raise FieldError("partition", f"{self.partition.reference()} needs labels: choose iid or natural")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.context,)

    @property
    def samples(self) -> int:  # type: ignore[override]
        """Training data points of the text as a whole, at most."""
        return self.points or int(TRAINING * BYTES) // self.context

    def metrics(self) -> tuple[Metric, ...]:
        return (LOSS,)

    def world(self, seed: int) -> SupervisedWorld:
        world = super().world(seed)
        world.tokens = self.context
        return world

    def load(self) -> Data:
        remedy = "put the text of char-rnn (its data/tinyshakespeare/input.txt) there under that name"
        folder = located(self.name, "shakespeare", [FILE], remedy=remedy)
        roles = self.clients if self.partition.by_owner else None
        return _data(folder / FILE, roles, self.context, self.points, self.test_points)


@functools.cache
def _data(path: Path, roles: int | None, context: int, points: int | None, test_points: int) -> Data:
    """Return windows of the whole text, or of the longest roles; read once per process."""
    text = file_reading.text(path)
    if unknown := set(text) - set(ALPHABET):
        raise DataDamagedError(f"shakespeare_lm: {path} has {min(unknown)!r}, which the published text lacks")
    texts = [text] if roles is None else largest(speeches(text), roles)
    cuts = [int(TRAINING * len(play)) for play in texts]
    pairs = list(zip(texts, cuts, strict=True))
    train = _spaced([windows(play[:cut], context, context, ALPHABET) for play, cut in pairs], points)
    test = _spaced([windows(play[cut:], context, context, ALPHABET) for play, cut in pairs], test_points)
    parts = [half for drawn, _ in (train, test) for half in (drawn[:, :-1], drawn[:, 1:].long())]
    x_train, y_train, x_test, y_test = (part.contiguous() for part in parts)
    owners = (None, None) if roles is None else (train[1], test[1])
    kinds = (torch.zeros(len(x), dtype=torch.int64) for x in (x_train, x_test))  # a text has no labels
    return Data(x_train, y_train, x_test, y_test, len(ALPHABET), (), (), *owners, *kinds)


def speeches(text: str) -> dict[tuple[str, str], str]:
    """Return all lines of each role, speeches joined by empty lines; every key begins with the file."""
    spoken: dict[tuple[str, str], list[str]] = {}
    for paragraph in text.split("\n\n"):
        if match := SPEECH.fullmatch(paragraph.strip("\n")):
            spoken.setdefault((FILE, match[1]), []).append(match[2])
    return {key: "\n\n".join(lines) for key, lines in sorted(spoken.items())}


def _spaced(parts: list[Tensor], max_count: int | None) -> tuple[Tensor, Tensor]:
    """Return at most `max_count` windows, evenly spaced, with the client of each [N]."""
    stacked = torch.cat(parts)
    owners = torch.arange(len(parts)).repeat_interleave(torch.tensor([len(part) for part in parts]))
    if max_count is None or max_count >= len(stacked):
        return stacked, owners
    chosen = torch.arange(max_count) * len(stacked) // max_count
    return stacked[chosen], owners[chosen]
