"""The choice of an engine, and what a node has to be like; no cluster is needed."""

import pytest

from benchmarks import engine as module
from benchmarks.engine import Local, engine, own_versions, prepare_node
from benchmarks.errors import UserError
from fl_core.problems.data.files import DataMissingError
from fl_core.problems.digits import Digits


def test_local_is_worker_processes() -> None:
    assert engine("local", None, 3) == Local(3)
    with pytest.raises(UserError, match=r"^--address 10\.0\.0\.1:6379: "):
        engine("local", "10.0.0.1:6379", None)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"^--engine ray: .*pip install ray"):
        engine("ray", None, None)


def test_a_node_has_the_same_libraries_and_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_node(own_versions(), {Digits(): 0})
    other = {**own_versions(), "torch": "1.0"}
    with pytest.raises(UserError, match=r"torch .*, not 1\.0"):
        prepare_node(other, {})

    def missing(*_: object) -> None:
        raise DataMissingError("digits: not here")

    monkeypatch.setattr(Digits, "check", missing)
    with pytest.raises(DataMissingError):
        prepare_node(own_versions(), {Digits(): 0})
