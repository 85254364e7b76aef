"""Errata: each is tied to code that is there, and what it says of a suite's keys is so."""

import copy
import importlib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.discrepancies import Settings, discrepancies
from benchmarks.runs.session import check
from benchmarks.suite.document import split
from benchmarks.suite.fields import SuiteFile
from benchmarks.suite.overrides import override
from benchmarks.suite.suite import build
from fl_core.parts import Part

ALL = discrepancies()
F80 = {"timing.durations.name": "fx"}
CHOICES = [entry for entry in ALL if entry.other]


def document(*settings: Settings) -> dict[str, Any]:
    """A suite of quadratics with what is set, one after the other, as data."""
    described: dict[str, Any] = {
        "name": "any",
        "seeds": 1,
        "problem": "quadratic",
        "budget": {"updates": 1},
        "strategies": ["fedavg"],
    }
    for keys in settings:
        for key, value in keys.items():
            override(described, split(key), copy.deepcopy(value))
    return described


def suite(*settings: Settings) -> SuiteFile:
    """The same as a suite."""
    return SuiteFile.model_validate(document(*settings))


def test_every_id_once_and_in_order() -> None:
    numbers = [int(entry.id.removeprefix("X-")) for entry in ALL]
    assert numbers == sorted(set(numbers))


def test_every_entry_is_whole_and_names_a_module() -> None:
    for entry in ALL:
        assert importlib.import_module(entry.module).__doc__, entry.id
        assert bool(entry.ours) == bool(entry.other), entry.id
        assert all((entry.paper, entry.text, entry.code, entry.reading)), entry.id


def test_our_reading_is_what_one_gets_without_saying_so() -> None:
    for entry in CHOICES:
        assert suite(entry.about, entry.ours) == suite(entry.about), entry.id


@pytest.mark.parametrize("number", ["X-21", "X-22"])
def test_a_defect_that_is_chosen_is_announced_before_the_runs(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once for all seeds of a strategy, and not by default."""
    (entry,) = (entry for entry in ALL if entry.id == number)
    for chosen, times in ((entry.ours, 0), (entry.other, len(entry.other))):
        planned = build(Path("any.yaml"), document(entry.about, chosen, {"seeds": 3}), [])
        check(planned.runs())
        assert capsys.readouterr().err.count(number) == times


def test_the_module_holds_the_part_that_changes() -> None:
    for entry in CHOICES:
        ours, other = (_parts(suite(entry.about, keys)) for keys in ({}, entry.other))
        changed = {type(one).__module__ for one in [*ours, *other] if (one in ours) != (one in other)}
        assert entry.module in changed, entry.id


@pytest.mark.parametrize(
    ("number", "params", "expected"),
    [
        ("X-13", {"strategy.name": "fedbuff"}, True),
        ("X-13", {"strategy.name": "fedavg"}, False),
        ("X-2", {"strategy.local.name": "sgd"}, True),
        ("X-5", {"problem.name": "cifar10", "problem.model.name": "fraboni_cnn"}, True),
        ("X-5", {"problem.name": "cifar10", "problem.model.name": "logistic"}, False),
        ("X-29", {"strategy.name": "fedfix", **F80, "timing.durations.jobs": "exponential"}, True),
        ("X-29", {"strategy.name": "fedfix", **F80, "timing.durations.jobs": "constant"}, False),
    ],
)
def test_errata_concern_what_a_run_uses(number: str, params: dict[str, str], expected: bool) -> None:
    (entry,) = (entry for entry in ALL if entry.id == number)
    assert entry.concerns(params) is expected


def test_an_erratum_about_a_metric_concerns_the_suites_that_show_it() -> None:
    (entry,) = (entry for entry in ALL if entry.id == "X-3")
    assert entry.concerns({"strategy.name": "fedfix"}, ["test/accuracy", "sp/loss"])
    assert not entry.concerns({"strategy.name": "fedfix"}, ["test/accuracy"])
    assert not entry.concerns({"strategy.name": "ace"}, ["sp/loss"])


def _parts(value: Any) -> list[Part]:
    """All parts of a suite, however deep."""
    inner: list[Any] = []
    if isinstance(value, tuple):
        inner = list(value)
    elif hasattr(type(value), "model_fields"):
        inner = [getattr(value, key) for key in type(value).model_fields]
    return [*([value] if isinstance(value, Part) else []), *(part for one in inner for part in _parts(one))]
