"""The streams of one purpose, through one generator, are those that `stream` opens one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fl_core.streams import Streams, stream

IDS = st.lists(st.integers(0, 2**40), max_size=3)


@given(st.integers(0, 2**32), st.sampled_from(["duration", "batches", "it's"]), st.lists(IDS, max_size=4))
def test_at_gives_the_numbers_of_the_stream(seed: int, purpose: str, visits: list[list[int]]) -> None:
    """Whatever was drawn from it before, halves of 64-bit words included."""
    streams = Streams(seed, purpose)
    for ids in visits:
        random, plain = streams.at(*ids), stream(seed, purpose, *ids)
        for draw in (
            lambda rng: rng.integers(0, 10, 3, np.uint32),
            lambda rng: rng.normal(size=2),
            lambda rng: rng.exponential(),
        ):
            np.testing.assert_array_equal(draw(random), draw(plain))


@given(st.integers(0, 2**32), st.integers(1, 10**6))
def test_one_choice_is_one_integer(draw: int, n: int) -> None:
    """What the server relies on where it sends to a single idle client."""
    chosen = stream(0, "select", draw).choice(n, 1, replace=False)
    assert chosen.tolist() == [stream(0, "select", draw).integers(n)]


@given(st.integers(0, 2**32), st.one_of(st.integers(1, 2000), st.integers(2**31, 2**32), st.just(2**40)), IDS)
def test_below_gives_the_integer_of_the_stream(seed: int, bound: int, ids: list[int]) -> None:
    """Numbers that are drawn again included, which near 2³¹ are half of all."""
    found = Streams(seed, "select").below(bound, *ids)
    assert found == stream(seed, "select", *ids).integers(bound)
