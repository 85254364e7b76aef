"""DistilBERT and BERT: tokens, shapes, gradients, pretrained folders, and what is said without them."""

from __future__ import annotations

import functools
from importlib import util
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from pydantic import ValidationError

from fl_core.problems.data.data import Data
from fl_core.problems.models import transformer
from fl_core.problems.models.model import Model
from fl_core.problems.models.transformer import BEGIN, PAD, Transformer, hashed_words
from fl_core.problems.newsgroups import Newsgroups
from fl_core.problems.problem import InvalidProblemError
from fl_core.problems.training.world import SupervisedWorld

NAMES = ["distilbert", "bert"]
TINY = {"length": 10, "layers": 2, "width": 16, "heads": 2, "vocabulary": 50}
TEXTS = [f"topic{i % 20} subject{i % 20}, general" + " common" * (i % 12) for i in range(40)]

installed = pytest.mark.skipif(util.find_spec("transformers") is None, reason="transformers is not installed")


class Posts(Newsgroups):
    """Forty posts of twenty groups."""

    samples: ClassVar[int] = 40

    def load(self) -> Data:
        assert isinstance(self.model, Transformer)
        return posts(self.model)


@functools.cache
def posts(model: Transformer) -> Data:
    x, y = model.tokens(TEXTS), torch.arange(40) % 20
    return Data(x, y, x[:20], y[:20], 20)


def tiny(name: str, **fields: Any) -> Transformer:
    return Model.model_validate({"name": name, **TINY, **fields})  # type: ignore[return-value]


def world(name: str, **fields: Any) -> SupervisedWorld:
    return Posts(model=tiny(name, **fields), clients=3, partition="iid", dtype="float64").world(0)


def test_words_are_hashed_after_a_beginning_and_before_padding() -> None:
    tokens = hashed_words(["Apple pear, apple", "", "a b c d e f"], 6, 30)
    assert tokens.dtype == torch.int32 and tokens.shape == (3, 6)
    apple, pear, comma = tokens[0, 1:4].tolist()
    assert tokens[0].tolist() == [BEGIN, apple, pear, comma, apple, PAD]
    assert min(apple, pear, comma) >= 2 and max(apple, pear, comma) < 30
    assert tokens[1].tolist() == [BEGIN, *[PAD] * 5]
    assert PAD not in tokens[2]


@installed
@pytest.mark.parametrize("name", NAMES)
def test_one_logit_a_class_and_padding_plays_no_part(name: str) -> None:
    """A text alone, and the same among longer ones: equal to 1e-12 whatever stands behind its end."""
    model = tiny(name)
    network = model.build((10,), 20).double()
    tokens = model.tokens(TEXTS[:12])
    logits = network(tokens)
    assert logits.shape == (12, 20)
    shorter = network(tokens[:1, : int((tokens[0] != PAD).sum())])
    torch.testing.assert_close(shorter, logits[:1], rtol=0, atol=1e-12)
    other = tokens.clone()
    other[0, 1] = 49
    assert not torch.allclose(network(other)[0], logits[0])


@installed
@pytest.mark.parametrize("name", NAMES)
def test_sizes_by_hand(name: str) -> None:
    """Embeddings; blocks of four d×d, two of the feed-forward network, two norms; a layer and the head."""
    d, words, length = 16, 50, 10
    block = 4 * (d * d + d) + (d * 4 * d + 4 * d) + (4 * d * d + d) + 2 * 2 * d
    segments = 2 * d if name == "bert" else 0
    head = (d * d + d) + (d * 20 + 20)
    expected = (words + length) * d + segments + 2 * d + 2 * block + head
    assert sum(p.numel() for p in tiny(name).build((10,), 20).parameters()) == expected


@installed
@pytest.mark.parametrize("name", NAMES)
def test_units_are_dropped_by_key_and_never_where_there_is_none(name: str) -> None:
    network = tiny(name).build((10,), 20).double()
    tokens, keys = tiny(name).tokens(TEXTS[:4]), torch.arange(4)
    plain = network(tokens)
    dropped = network(tokens, keys)
    assert not torch.allclose(plain, dropped)
    assert torch.equal(network(tokens, keys), dropped)
    assert not torch.allclose(network(tokens, keys + 1), dropped)
    assert torch.equal(network(tokens), plain)
    without = tiny(name, dropout=False).build((10,), 20)
    assert torch.equal(without(tokens, keys), without(tokens))


@installed
def test_the_record_says_what_the_weights_are() -> None:
    w = world("distilbert")
    assert w.fingerprint["weights"].startswith("random weights, ")
    assert tiny("bert").label() == "bert from random weights"
    assert Model.model_validate({"name": "bert", "weights": "some/where"}).label() == (
        "bert from pretrained weights some/where"
    )
    assert torch.equal(world("distilbert").initial(), w.initial())


@installed
@pytest.mark.parametrize("name", NAMES)
def test_pretrained_weights_and_tokenizer_from_a_folder(name: str, tmp_path: Path) -> None:
    """What was saved comes back, but for the last layers; its own tokenizer makes the tokens."""
    import transformers

    folder = tmp_path / "pretrained"
    network = tiny(name).build((10,), 2).network
    network.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({word for text in TEXTS for word in text.split()})]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizer(str(tmp_path / "vocab.txt"))
    tokenizer.save_pretrained(folder)

    model = Model.model_validate({"name": name, "weights": str(folder), "length": 8})
    assert isinstance(model, Transformer)
    found = model.build((8,), 20)
    assert found(model.tokens(TEXTS[:3])).shape == (3, 20)
    saved, loaded = network.state_dict(), found.network.state_dict()
    kept = [key for key in saved if "classifier" not in key]
    assert len(kept) > 20
    for key in kept:
        torch.testing.assert_close(loaded[key], saved[key])
    assert model.tokens(TEXTS[:3]).tolist() == [
        tokenizer(text, truncation=True, padding="max_length", max_length=8)["input_ids"]
        for text in TEXTS[:3]
    ]
    w = Posts(model=model, clients=3, partition="iid").world(0)
    assert w.fingerprint["weights"].startswith(f"pretrained weights {folder}, ")
    long = model.model_copy(update={"length": 11})
    with pytest.raises(InvalidProblemError, match="reads 10 tokens, not 11"):
        long.build((11,), 20)


@installed
def test_weights_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = Model.model_validate({"name": "bert", "weights": str(tmp_path)})
    assert isinstance(model, Transformer)
    for call in (lambda: model.build((128,), 20), lambda: model.tokens(["a"])):
        with pytest.raises(InvalidProblemError, match="not found in that folder") as refused:
            call()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_without_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said in a line before anything is computed, and again by whoever builds a world all the same."""
    monkeypatch.setattr(transformer, "find_spec", lambda _: None)
    problem = Posts(model=tiny(name), clients=3, partition="iid")
    for call in (lambda: problem.check(0), lambda: problem.world(0)):
        with pytest.raises(InvalidProblemError, match="pip install transformers") as refused:
            call()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"weights": "some/where", "layers": 3},
            "layers: the pretrained weights 'some/where' determine it",
        ),
        ({"heads": 3}, "heads: must be a divisor of the width 128, not 3"),
    ],
)
def test_sizes_without_sense_are_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        Model.model_validate({"name": "distilbert", **fields})


def test_texts_only() -> None:
    assert "reads texts of 128 tokens, not inputs of 1×28×28" in (
        Model.model_validate("bert").refuses((1, 28, 28), 10) or ""
    )
    assert Newsgroups().shape == (4096,)
    assert Newsgroups(model=tiny("bert")).shape == (10,)
    assert Newsgroups().model_dump().keys() >= {"model"}


@installed
@pytest.mark.slow
@pytest.mark.data("20news")
def test_a_small_random_distilbert_learns_real_posts() -> None:
    """All data, Adam: far better than the 5 % of chance after 300 mini-batches of 64."""
    from fl_core.problems.training.centralised_baseline import train

    model = Model.model_validate({"name": "distilbert", "length": 32})
    w = Newsgroups(clients=2, partition="iid", model=model).world(0)
    assert w.evaluate(train(w, 0, 300, 64)).metrics["test/accuracy"] > 0.3
