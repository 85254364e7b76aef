"""Small campaigns on quadratics, in stores of their own."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from small import SUITE, Make, Write

from benchmarks.suite.suite import load
from tuning.plan import plan


@pytest.fixture
def sluggish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `sluggish:Slow` known, a strategy whose server takes its time."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a suite, with other keys than the usual ones where they are given."""

    def _write(**changed: Any) -> Path:
        path = tmp_path / "small.yaml"
        path.write_text(yaml.safe_dump({**SUITE, **changed}))
        return path

    return _write


@pytest.fixture
def make(write: Write) -> Make:
    """The campaign of such a suite."""
    return lambda **changed: plan(load(str(write(**changed)), tuned=False))
