"""The language model on Shakespeare's plays: windows, roles, the decoder, loss in nats a byte, tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fl_core.experiment import Experiment
from fl_core.lightning import pl
from fl_core.problems import shakespeare_lm
from fl_core.problems.data.files import DataDamagedError, DataMissingError
from fl_core.problems.models.decoder import Decoder
from fl_core.problems.shakespeare import windows
from fl_core.problems.shakespeare_lm import ALPHABET, FILE, ShakespeareLM, speeches
from fl_core.recording.recorder import run
from fl_core.testing import conformance

FIRST = "First Citizen:\nBefore we proceed any further, hear me speak.\n\n"
TEXT = (
    FIRST
    + "All:\nSpeak, speak.\nWe know't!\n\nFirst Citizen:\n"
    + "You are all resolved rather to die? " * 60
)
SMALL: dict[str, Any] = {"context": 8, "clients": 2, "model": {"name": "decoder", "width": 8, "heads": 2}}


@pytest.fixture(autouse=True)
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A play of two roles, where the published text would be."""
    file = tmp_path / "shakespeare" / FILE
    file.parent.mkdir()
    file.write_text(TEXT)
    monkeypatch.setenv("ASYNCFL_DATA", str(tmp_path))
    return file


def problem(**fields: Any) -> ShakespeareLM:
    return ShakespeareLM.model_validate({**SMALL, **fields})


def read(symbols: Any) -> str:
    return "".join(ALPHABET[int(symbol)] for symbol in symbols)


@pytest.mark.parametrize(
    "check", conformance.checks(ShakespeareLM.model_validate({**SMALL, "dtype": "float64"}))
)
def test_conformance(check: conformance.Check) -> None:
    check()


def test_windows_cover_the_text_without_overlap() -> None:
    """Window k has bytes 8k … 8k + 7, and the targets are one byte later; the last tenth is for testing."""
    data, cut = problem().load(), int(0.9 * len(TEXT))
    assert "".join(map(read, data.x_train)) == TEXT[: 8 * len(data.x_train)]
    assert "".join(map(read, data.y_train)) == TEXT[1 : 8 * len(data.x_train) + 1]
    assert 8 * len(data.x_train) + 1 <= cut < 8 * (len(data.x_train) + 1) + 1
    assert "".join(map(read, data.x_test)) == TEXT[cut : cut + 8 * len(data.x_test)]
    assert windows("short", 8, 8, ALPHABET).shape == (0, 9)


def test_evenly_spaced_windows() -> None:
    whole, few = problem().load(), problem(points=10, test_points=4).load()
    places = [k * len(whole.x_train) // 10 for k in range(10)]
    assert torch.equal(few.x_train, whole.x_train[places])
    assert len(few.x_test) == 4
    assert problem(points=10**6).load().fingerprint == whole.fingerprint


def test_a_role_is_a_client() -> None:
    """The longest role is client 0; each has its own end of text for testing."""
    said = speeches(TEXT)
    assert sorted(role for _, role in said) == ["All", "First Citizen"]
    assert said[FILE, "All"] == "Speak, speak.\nWe know't!"
    assert said[FILE, "First Citizen"].startswith("Before we proceed any further, hear me speak.\n\nYou are")
    shares = problem(partition="natural").shares(0)
    assert read(shares.data.x_train[shares.of(0)[0]]) == "Before w"
    assert read(shares.data.x_train[shares.of(1)[0]]) == "Speak, s"
    assert shares.sizes.tolist() == [len(windows(one[: int(0.9 * len(one))], 8, 8, ALPHABET)) for one in (
        said[FILE, "First Citizen"], said[FILE, "All"]
    )]  # fmt: skip


def test_iid_shards_are_of_equal_size() -> None:
    shares = problem(clients=3).shares(1)
    assert np.ptp(shares.sizes) <= 1
    assert sorted(shares.held.tolist()) == list(range(len(shares.data.x_train)))


def test_loss_is_in_nats_a_byte() -> None:
    """−log of the probability of the byte that follows, a mean over all places, from softmax by hand."""
    world = problem(dtype="float64").world(0)
    data, task = world.data, world.at(world.initial())
    with torch.no_grad():
        logits = task(data.x_test).numpy()
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    rows, places = np.indices(data.y_test.shape)
    nats = -np.log(shares[rows, places, data.y_test.numpy()])
    assert world.test(world.initial()).metrics == {"test/loss": pytest.approx(nats.mean())}
    assert nats.mean() == pytest.approx(np.log(65), abs=0.05)  # small first weights: all bytes alike
    assert isinstance(task, pl.LightningModule)


def test_a_place_sees_no_later_byte() -> None:
    """A changed byte changes the logits of its own place and later ones, and of no earlier place."""
    network = Decoder(width=8, heads=2).build((8,), 65)
    one = torch.arange(8)[None]
    other = one.clone()
    other[0, 5] = 60
    with torch.no_grad():
        apart = (network(one) - network(other)).abs().amax((0, 2))
    assert torch.equal(apart[:5], torch.zeros(5)) and bool((apart[5:] > 0).all())


def test_attention_is_that_of_torch() -> None:
    """One block against torch's own causal attention with the same weights."""
    [block] = Decoder(layers=1, width=8, heads=2).build((6,), 65).blocks
    states = torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(0))
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    attention.in_proj_weight, attention.in_proj_bias = block.attention_in.weight, block.attention_in.bias
    attention.out_proj = block.attention_out
    mask = torch.nn.Transformer.generate_square_subsequent_mask(6)
    expected, _ = attention(states, states, states, attn_mask=mask, is_causal=True)
    torch.testing.assert_close(block.attend(states, mask), expected)


def test_the_default_has_the_parameters_that_are_stated() -> None:
    assert sum(p.numel() for p in Decoder().build((32,), 65).parameters()) == 61_296


def test_tokens_are_a_column_of_the_curve() -> None:
    """K · B · context of each update that arrived; no other problem has the column."""
    local = {"name": "adamw", "steps": [2, 3], "batch": 4, "keep_state": True}
    timing = {"durations": {"name": "fixed", "times": [1, 1]}}
    described = {
        "scenario": {"problem": problem(), "timing": timing, "budget": {"updates": 4}, "evaluations": 2},
        "strategy": {"name": "asgd", "local": local, "local_lr": 0.01},
    }
    record = run(Experiment.model_validate(described))
    assert [row["tokens"] for row in record.curve] == [0, 5 * 4 * 8, 10 * 4 * 8]
    assert record.local_steps == 10
    other = {**described, "scenario": {"problem": "digits", "budget": {"updates": 1}}, "strategy": "asgd"}
    assert "tokens" not in run(Experiment.model_validate(other)).curve[-1]


def test_wrong_texts_and_partitions_are_refused(text: Path) -> None:
    with pytest.raises(ValueError, match="partition: cyclic_labels needs labels"):
        problem(partition={"name": "cyclic_labels", "labels": 1})
    with pytest.raises(ValueError, match="width 9 must be a multiple of 2 heads"):
        problem(model={"name": "decoder", "width": 9, "heads": 2})
    text.write_text(TEXT + " é")  # a new file, of which nothing is remembered, would be another path
    shakespeare_lm._data.cache_clear()
    with pytest.raises(DataDamagedError):
        problem().load()
    text.unlink()
    with pytest.raises(DataMissingError, match=FILE):
        problem().load()
