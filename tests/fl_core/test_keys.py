"""Keys of runs: what they depend on, and what they do not, so that the benchmark may grow."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

import pytest
from pydantic import SerializeAsAny

from fl_core.experiment import Experiment
from fl_core.keys import is_older, key
from fl_core.local_work import LocalWork
from fl_core.parts import Frozen, Rate
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.strategy import Strategy

# Written out by hand: every part with name and version, of its fields those that are not the default.
IDENTITY: dict[str, Any] = {
    "scenario": {
        "problem": {"name": "quadratic", "version": 1, "centres": [[1.0], [2.0]], "clients": 2},
        "timing": {
            "durations": {"name": "fixed", "version": 1, "times": ["1", "1/3"]},
            "availability": {"name": "always", "version": 1},
        },
        "budget": {"updates": 10},
    },
    "strategy": {
        "name": "fedbuff",
        "version": 1,
        "buffer": 3,
        "local": {"name": "sgd", "version": 1, "momentum": 0.9},
    },
    "seed": 7,
}
# The same with the fields in alphabetical order, as the hash takes it.
TEXT = (
    '{"scenario": {"budget": {"updates": 10}, "problem": {"centres": [[1.0], [2.0]], "clients": 2, '
    '"name": "quadratic", "version": 1}, "timing": {"availability": {"name": "always", "version": 1}, '
    '"durations": {"name": "fixed", "times": ["1", "1/3"], "version": 1}}}, "seed": 7, "strategy": '
    '{"buffer": 3, "local": {"momentum": 0.9, "name": "sgd", "version": 1}, "name": "fedbuff", "version": 1}}'
)


def experiment(strategy: Any) -> Experiment:
    """Two clients, one of them three times as fast."""
    return Experiment.model_validate(
        {
            "scenario": {
                "problem": {"name": "quadratic", "centres": [[1.0], [2.0]]},
                "timing": {"durations": {"name": "fixed", "times": [1, "1/3"]}},
                "budget": {"updates": 10},
            },
            "strategy": strategy,
            "seed": 7,
        }
    )


def test_a_key_hashes_what_differs_from_the_defaults() -> None:
    described = experiment({"name": "fedbuff", "buffer": 3, "local": {"name": "sgd", "momentum": 0.9}})
    assert described.identity() == IDENTITY
    assert described.key == f"2-{hashlib.sha256(TEXT.encode()).hexdigest()[:16]}"


def test_a_default_that_is_written_out_changes_nothing() -> None:
    plain, explicit = experiment("fedbuff"), experiment({"name": "fedbuff", "buffer": 10, "local": "sgd"})
    assert plain.key == explicit.key != experiment({"name": "fedbuff", "buffer": 9}).key


def test_experiments_that_share_parts_read_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = experiment({"name": "fedbuff", "buffer": 3})
    seeds = [first.model_copy(update={"seed": seed}) for seed in range(5)]
    expected = [Experiment.model_validate(one.model_dump()).key for one in seeds]
    read: list[Strategy] = []
    identity = Strategy.identity
    monkeypatch.setattr(Strategy, "identity", lambda self: read.append(self) or identity(self))
    assert [one.key for one in seeds] == expected and len(set(expected)) == 5
    assert len(read) <= 1
    other = first.model_copy(update={"strategy": first.strategy.model_copy(update={"buffer": 9})})
    assert other.key != first.key


class Grown(FedBuff):
    """FedBuff with a hyper-parameter that it did not have before."""

    decay: Rate | None = None


class Renewed(FedBuff):
    """FedBuff whose meaning was changed."""

    version: ClassVar[int] = 2


def under_one_name(strategy: Strategy) -> dict[str, Any]:
    """Its identity, but for the name."""
    return {name: value for name, value in strategy.identity().items() if name != "name"}


def test_a_new_field_leaves_keys_as_they_are_and_a_new_version_changes_them() -> None:
    same, other = under_one_name(FedBuff()), under_one_name(Renewed())
    assert under_one_name(Grown()) == same != under_one_name(Grown(decay=0.5))
    assert key(same) != key(other) and other["version"] == 2


def test_a_part_within_tells_its_version_even_where_it_is_the_default(monkeypatch: Any) -> None:
    before = experiment(ASGD()).key
    monkeypatch.setattr("fl_core.local_work.SGD.version", 2)
    assert experiment(ASGD()).key != before


def test_parts_in_a_tuple_tell_their_versions_too() -> None:
    class Mixed(Frozen):
        works: tuple[SerializeAsAny[LocalWork], ...]
        title: str = ""

    works: Any = ("sgd", {"name": "prox", "mu": 0.5})
    assert Mixed(works=works).identity() == {
        "works": [{"name": "sgd", "version": 1}, {"name": "prox", "version": 1, "mu": 0.5}]
    }


@pytest.mark.parametrize("older", ["c08ccf42bd4620ea", "1-c08ccf42bd4620ea"])
def test_keys_of_earlier_versions_are_told_apart(older: str) -> None:
    assert is_older(older) and not is_older(key(older))


@pytest.mark.parametrize("damaged", ["", "2-c08c", "c08ccf42bd4620eaf", "two"])
def test_a_damaged_key_is_not_of_an_earlier_version(damaged: str) -> None:
    assert not is_older(damaged)
