"""Presets: further names of a part with fields of their own, written in suites and in Python."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.suite.fields import SuiteFile
from fl_core.local_work import AdamW
from fl_core.server.optimizers import LookAhead, Nesterov
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.async_fedavg import AsyncFedAvg
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.strategy import Strategy

KEPT = AdamW(keep_state=True)
MEANT = {
    "diloco": FedAvg(server=Nesterov(), local=KEPT),
    "async_diloco": ASGD(server=Nesterov(), local=KEPT),
    "momentum_look_ahead": ASGD(server=LookAhead(), local=KEPT),
    "rescaled_asgd": AsyncFedAvg(),
}


def test_every_preset_is_known_and_is_no_member() -> None:
    presets = [name for member in Strategy.members().values() for name in vars(member).get("presets", ())]
    assert sorted(presets) == sorted(MEANT)
    assert not MEANT.keys() & Strategy.members().keys()


@pytest.mark.parametrize("name", MEANT)
def test_a_preset_is_its_member_with_these_fields(name: str) -> None:
    """The same experiments as if all were written out: nothing is computed twice."""
    meant = MEANT[name]
    for written in (name, {"name": name}):
        found = Strategy.model_validate(written)
        assert type(found) is type(meant) and found == meant and found.identity() == meant.identity()
    assert Strategy.model_validate({"name": name, "local_lr": 0.02}).local_lr == 0.02


def test_fields_that_are_written_win() -> None:
    found = Strategy.model_validate(
        {"name": "diloco", "server": "sgd", "local": {"name": "adamw", "steps": 9}}
    )
    assert found == FedAvg(local=AdamW(steps=9))
    assert Strategy.model_validate("diloco").server_lr == 0.7  # Nesterov's usual rate


def test_presets_in_suites() -> None:
    """A preset keeps its local work, with the suite's K and B; rates are by either name."""
    described: dict[str, Any] = {
        "name": "any",
        "seeds": 1,
        "problem": {"name": "quadratic", "centres": [[0.0], [1.0]]},
        "budget": {"updates": 1},
        "local": {"steps": 7},
        "lr": {"*": 0.5, "fedavg": 0.25, "async_diloco": {"local": 0.125, "server": 0.3}},
        "strategies": ["diloco", "async_diloco", "rescaled_asgd"],
    }
    diloco, asynchronous, rescaled = SuiteFile.model_validate(described).strategies
    assert diloco == FedAvg(
        server=Nesterov(), local=AdamW(steps=7, keep_state=True), local_lr=0.25, server_lr=0.7
    )
    assert (asynchronous.local_lr, asynchronous.server_lr) == (0.125, 0.3)
    assert rescaled == AsyncFedAvg(local_lr=0.5, local={"name": "sgd", "steps": 7})  # type: ignore[arg-type]
