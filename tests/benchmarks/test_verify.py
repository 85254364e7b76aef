"""Comparison of a stored final run with the same run computed again."""

from math import nan
from pathlib import Path

import yaml

from benchmarks.leaderboard.verify import StoredRun
from benchmarks.suite.suite import load

SUITE = {
    "name": "tiny",
    "problem": {"name": "digits", "clients": 4, "target": 0.5},
    "budget": {"time": 3},
    "evaluations": 3,
    "strategies": ["asgd"],
    "seeds": 1,
}
COUNTS = {"updates": 12, "uploads": 480, "downloads": 640}
ROW = COUNTS | {"status": "finished", "time": 1.0, "energy": nan, "worst_client": nan, "values": "0.1 0.6"}


def test_energy_is_compared_where_the_table_has_it(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(SUITE))
    planned = load(str(path)).runs()[0]
    without, stored = StoredRun(ROW, planned), StoredRun(ROW | {"energy": 5.0}, planned)
    assert without.differences(ROW) == without.differences(ROW | {"energy": 5.0}) == []
    assert stored.differences(ROW | {"energy": 5.0 * (1 + 1e-9)}) == []
    for other in (nan, 5.1):  # NaN: the suite gives no power
        (line,) = stored.differences(ROW | {"energy": other})
        assert "energy" in line
