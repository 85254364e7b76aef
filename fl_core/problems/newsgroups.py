"""20 Newsgroups: the group of a post is to be predicted, from word counts or tokens."""

import functools
from pathlib import Path
from typing import ClassVar

import torch
from pydantic import SerializeAsAny
from torch import Tensor

from fl_core import file_reading
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataDamagedError, located
from fl_core.problems.models.linear import Linear
from fl_core.problems.models.model import Model
from fl_core.problems.models.transformer import Transformer
from fl_core.problems.supervised import Classification

WORDS = 4096  # hash buckets of words
HALVES = {"20news-bydate-train": 11_314, "20news-bydate-test": 7_532}
GROUPS = 20


class Newsgroups(Classification):
    """20 Newsgroups by date, words hashed or tokens, 11,314 + 7,532 posts (Lang, ICML 1995).

    An input is a post, headers included: its first tokens for `distilbert` and `bert`, as in the ACE paper
    (arXiv 2511.19066, Table a.2); for other models its word counts in 4,096 hash buckets (scikit-learn's
    HashingVectorizer, at most 255 each). The default, a linear model, is the fast variant.
    """

    name: ClassVar[str] = "newsgroups"
    classes: ClassVar[int] = GROUPS
    samples: ClassVar[int] = HALVES["20news-bydate-train"]

    model: SerializeAsAny[Model] = Linear()

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.model.length,) if isinstance(self.model, Transformer) else (WORDS,)

    def load(self) -> Data:
        folder = located(
            self.name, "20news", [*HALVES], " and ".join(HALVES), "unpack 20news-bydate.tar.gz there"
        )
        return _data(folder, self.model if isinstance(self.model, Transformer) else None)


@functools.cache
def _data(folder: Path, reader: Transformer | None) -> Data:
    """Return both halves as tokens of a transformer, or as word counts (None)."""
    encode = hashed if reader is None else reader.tokens
    (train, y_train), (test, y_test) = _texts(folder)
    return Data(encode(train), y_train, encode(test), y_test, classes=GROUPS)


@functools.cache
def _texts(folder: Path) -> list[tuple[list[str], Tensor]]:
    """Return posts and groups of both halves; raise DataDamagedError."""
    return [_half(folder / half, count) for half, count in HALVES.items()]


def _half(folder: Path, count: int) -> tuple[list[str], Tensor]:
    """Return posts and groups [N] of half the data, in order of names."""
    groups = sorted(path for path in folder.iterdir() if path.is_dir())
    posts = [(post, label) for label, group in enumerate(groups) for post in sorted(group.iterdir())]
    if len(groups) != GROUPS or len(posts) != count:
        raise DataDamagedError(
            f"newsgroups: {folder} has {len(posts)} posts in {len(groups)} groups, not {count} in "
            f"{GROUPS}: unpack 20news-bydate.tar.gz again"
        )
    texts = [file_reading.text(post, "latin-1") for post, _ in posts]
    return texts, torch.tensor([label for _, label in posts])


def hashed(texts: list[str]) -> Tensor:
    """Return the word counts of each text in WORDS hash buckets [N, WORDS], at most 255 each."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(n_features=WORDS, norm=None, alternate_sign=False, stop_words="english")
    counts = vectorizer.transform(texts)
    counts.data = counts.data.clip(max=255)
    return torch.from_numpy(counts.astype("uint8").toarray())
