"""Shakespeare's plays: every role is a client, and the next character is to be predicted.

`shakespeare_lm` reuses the windows and the choice of roles.
"""

import functools
import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from pydantic import SerializeAsAny
from torch import Tensor

from fl_core import file_reading
from fl_core.metrics import Metric
from fl_core.parts import Count
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataDamagedError, located
from fl_core.problems.models.lstm import LSTM
from fl_core.problems.models.model import Model
from fl_core.problems.partitions import Natural, Partition
from fl_core.problems.problem import InvalidProblemError
from fl_core.problems.supervised import Classification

PERPLEXITY = Metric("test/perplexity", "Test perplexity", higher=False)

# The 80 characters of LEAF, in its order.
ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
LENGTH = 80  # characters read before the one to predict
PLAYS = 37

# <ROLE> <DIALOGUE>…</DIALOGUE> <DIRECTION>…</DIRECTION> … </ROLE>. Unbalanced tags do not match.
SPEECH = re.compile(r"<([^/<>\n]+)>\s*((?:<(DIALOGUE|DIRECTION|STAGE_DIR)>[^<>]*</\3>\s*)+)</\1>")
DIALOGUE = re.compile(r"<DIALOGUE>([^<>]*)</DIALOGUE>")


class Shakespeare(Classification):
    """Next character in Shakespeare's plays, a client for each role (Caldas et al., LEAF, 2019).

    A client is a (play, role). Of all 1,314, the `clients` with the longest text take part (ties broken by
    play and role): by default 143, the number in Yang et al. (Anarchic FL, ICML 2022); the selection rule is
    ours. Of a client's text, speeches joined by spaces and characters outside LEAF's 80 left out,
    the first 80 % are for training, the rest for testing. A data point is 80 characters and the one that
    follows; the next one begins `stride` characters later (LEAF: 1, which makes 80 times as many).

    The text is close to LEAF's in size but not identical, and 297 of 32,326 speeches are skipped for
    unbalanced tags: results are not directly comparable.
    """

    name: ClassVar[str] = "shakespeare"
    classes: ClassVar[int] = len(ALPHABET)
    samples: ClassVar[int] = 23_628  # with the defaults
    owned: ClassVar[bool] = True
    task_name: ClassVar[str] = "NextSymbol"

    clients: Count = 143
    partition: SerializeAsAny[Partition] = Natural()
    model: SerializeAsAny[Model] = LSTM()
    stride: Count = LENGTH  # characters from one sample of a text to the next

    def metrics(self) -> tuple[Metric, ...]:
        return *super().metrics(), PERPLEXITY

    @property
    def shape(self) -> tuple[int, ...]:
        return (LENGTH,)

    def load(self) -> Data:
        remedy = f"put {PLAYS} files of plays with speaker tags there"
        folder = located(self.name, "shakespeare/plays", description="plays", remedy=remedy)
        return _data(folder, self.clients, self.stride)


@functools.cache
def _data(folder: Path, clients: int, stride: int) -> Data:
    """Return the windows of the longest roles, each text cut into training and test; once per process."""
    train, test = [], []
    for text in largest(roles(folder), clients):
        cut = int(0.8 * len(text))
        train.append(windows(text[:cut], stride))
        test.append(windows(text[cut:], stride))
    return Data(*_joined(train), *_joined(test), len(ALPHABET), (), (), _owners(train), _owners(test))


@functools.cache
def roles(folder: Path) -> dict[tuple[str, str], str]:
    """Return the text of each (play, role); raise DataDamagedError if plays are missing or unreadable."""
    plays = sorted(folder.glob("*.txt"))
    if len(plays) != PLAYS:
        raise DataDamagedError(
            f"shakespeare: {folder} holds {len(plays)} plays, not {PLAYS}: put all of them there"
        )
    spoken: dict[tuple[str, str], list[str]] = {}
    for play in plays:
        try:
            text = file_reading.text(play)
        except (OSError, UnicodeDecodeError) as error:
            raise DataDamagedError(f"shakespeare: {play} cannot be read: {error}") from None
        for role, speech in speeches(text):
            spoken.setdefault((play.stem, role), []).append(speech)
    return {key: " ".join(speeches_) for key, speeches_ in sorted(spoken.items())}


def speeches(play: str) -> list[tuple[str, str]]:
    """Return role and text of every speech with balanced tags, in the alphabet's characters."""
    return [
        (match[1], " ".join(filter(None, map(in_alphabet, " ".join(lines).split()))))
        for match in SPEECH.finditer(play)
        if (lines := DIALOGUE.findall(match[2]))
    ]


def in_alphabet(text: str) -> str:
    """Return the text without characters outside the alphabet."""
    return "".join(letter for letter in text if letter in ALPHABET)


def largest(texts: dict[tuple[str, str], str], count: int) -> list[str]:
    """Return the `count` longest texts, longest first, ties broken by play and role."""
    if count > len(texts):
        raise InvalidProblemError(
            f"shakespeare: {count} clients, but only {len(texts)} roles: reduce clients"
        )
    return sorted(texts.values(), key=len, reverse=True)[:count]


def windows(text: str, stride: int, length: int = LENGTH, alphabet: str = ALPHABET) -> Tensor:
    """Return windows of a text with the next character, as indices into the alphabet [N, length + 1]."""
    symbols = torch.tensor([alphabet.index(letter) for letter in text], dtype=torch.uint8)
    if len(symbols) <= length:
        return symbols.new_empty(0, length + 1)
    return symbols.unfold(0, length + 1, stride)


def _joined(parts: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return all windows [N, length], and the character after each [N]."""
    text = torch.cat(parts)
    return text[:, :-1].contiguous(), text[:, -1].long()


def _owners(parts: list[Tensor]) -> Tensor:
    """Return the client of each window [N]."""
    return torch.from_numpy(np.repeat(np.arange(len(parts)), [len(part) for part in parts]))
