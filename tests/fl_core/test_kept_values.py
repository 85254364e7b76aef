"""Whatever may be kept in `server.memory` comes back from a checkpoint as it was, its types included."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import scenario

from fl_core.experiment import Experiment
from fl_core.loop.serialization import checked
from fl_core.loop.simulation import Simulation
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder
from fl_core.strategies.asgd import ASGD

numbers = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False))
keys = st.one_of(st.text(max_size=5), numbers, st.tuples(st.integers(), st.text(max_size=3)))
vectors = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(torch.tensor)
values = st.recursive(
    st.one_of(st.none(), numbers, st.text(max_size=5), vectors),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
    ),
    max_leaves=12,
)


def assert_same(one: Any, other: Any) -> None:
    """Equal, and of equal types all the way down; a dict in its order."""
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert_same(list(one.items()), list(other.items()))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    else:
        assert one == other


@settings(max_examples=25)
@given(values)
def test_what_is_kept_comes_back(value: Any) -> None:
    experiment = Experiment(scenario=scenario(), strategy=ASGD())
    saved, loaded = Simulation(experiment), Simulation(experiment)
    saved.server.memory.kept = saved.server.local.kept = value
    with TemporaryDirectory() as folder:
        checkpoint.save(Recorder(saved), Path(folder) / "run.pt")
        checkpoint.load(Recorder(loaded), Path(folder) / "run.pt")
    assert_same(loaded.server.memory.kept, value)
    assert_same(loaded.server.local.kept, value)


def test_a_tensor_of_its_own_is_not_copied() -> None:
    """A view of a larger one is."""
    table = torch.arange(12.0, dtype=torch.float64).view(3, 4)
    kept = checked({"table": table, "row": table[1]}, "memory")
    assert kept["table"] is table
    assert kept["row"].untyped_storage().nbytes() == 4 * 8
    assert torch.equal(kept["row"], table[1])
