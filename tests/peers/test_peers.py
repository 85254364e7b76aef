"""The stored table agrees with our strategies on the recorded arrivals, and with the frameworks' code."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.commands.list import command
from benchmarks.errors import UserError
from benchmarks.peers import Peer, peers
from tests.peers import __main__ as harness
from tests.peers import sequences

ENTRIES = {entry.id: entry for entry in peers()}
MODELS = json.loads(harness.MODELS.read_text())


@cache
def recorded(algorithm: str) -> sequences.Sequence:
    return sequences.record(algorithm, "quadratic")


def replayed(entry: Peer, **options: object) -> np.ndarray:
    return sequences.replay(sequences.PAPERS[entry.algorithm] | options, recorded(entry.algorithm))


@pytest.mark.parametrize("algorithm", sequences.PAPERS)
def test_the_replay_of_a_run_is_the_run(algorithm: str) -> None:
    """Clients idle, and are stale; the paper's rule gives the recorded models again."""
    sequence = recorded(algorithm)
    np.testing.assert_array_equal(
        sequences.replay(sequences.PAPERS[algorithm], sequence), sequence["models"][1:]
    )
    assert len(set(sequence["uploaded"].tolist())) == sequences.ARRIVALS
    assert sequence["staleness"].max() >= 2


@pytest.mark.parametrize("key", ENTRIES)
def test_our_options_give_what_the_framework_computed(key: str) -> None:
    """The stored models of each framework's server: ours agree, and the paper's rule as the table says."""
    entry = ENTRIES[key]
    assert (MODELS[key] is None) == bool(entry.error)
    if MODELS[key] is None:
        return
    models = np.array(MODELS[key])
    assert sequences.first_difference(models, replayed(entry, **entry.paper), entry.tolerance) == (
        entry.first_step
    )
    if entry.ours is not None:
        np.testing.assert_allclose(replayed(entry, **entry.ours), models, rtol=0, atol=entry.tolerance)


def test_every_framework_and_setting_is_stored() -> None:
    wanted = [
        (f"{each['name']}-{number}", each["title"], case["setting"], case["computes"])
        for each in harness.load()
        for number, case in enumerate(each["cases"], 1)
    ]
    assert wanted == [(one.id, one.framework, one.setting, one.computes) for one in peers()]
    assert list(MODELS) == list(ENTRIES)


def test_list_peers() -> None:
    every = CliRunner().invoke(command, ["peers"])
    assert every.exit_code == 0
    assert len(every.output.splitlines()) == len(ENTRIES) + 1
    one = CliRunner().invoke(command, ["peers", "appfl"])
    assert "FedBuffAggregator" in one.output and "nvflare" not in one.output
    assert isinstance(CliRunner().invoke(command, ["peers", "apfl"]).exception, UserError)


@pytest.mark.slow
@pytest.mark.parametrize("framework", harness.load(), ids=lambda each: each["name"])
def test_the_framework_computes_what_is_stored(framework: harness.Framework) -> None:
    """In the environments that `python -m tests.peers` made; skipped without them."""
    python = harness.ENVIRONMENTS / framework["name"] / "bin" / "python"
    if not python.is_file():
        pytest.skip("no environment: python -m tests.peers makes it")
    sequences_of_quadratics = {f"{name} quadratic": recorded(name) for name in sequences.PAPERS}
    found = harness.served(framework, Path(python), sequences_of_quadratics)
    for number, case in enumerate(framework["cases"], 1):
        key = f"{framework['name']}-{number}"
        models = found[f"{key} {case['algorithm']} quadratic"].get("models")
        if MODELS[key] is None:
            assert models is None
        else:
            np.testing.assert_allclose(models, MODELS[key], rtol=0, atol=1e-12)
