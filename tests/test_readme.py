"""README: its strategy runs as pasted, and its findings stand on the pages that it links to."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ASYNCFL = "from asyncfl.__main__ import main; main()"
SMALLER = ("--set", "seeds=1", "--set", "budget.time=8", "--set", "grid=null")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "seeds"),
    [(SMALLER, 1), pytest.param((), 6, marks=pytest.mark.slow)],
    ids=["one seed", "as pasted"],
)
def test_the_strategy_is_compared_with_fedbuff(options: tuple[str, ...], seeds: int, tmp_path: Path) -> None:
    """In an empty folder, with the command of the next block; both strategies have finite accuracies."""
    [(code, command)] = re.findall(r"```python\n(.*?)```.*?```\nasyncfl (.*?)\n```", README, re.DOTALL)
    (tmp_path / "momentum.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", ASYNCFL, *shlex.split(command), *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for strategy in ("FedBuff", "MomentumASGD"):
        rows = re.findall(rf"^{strategy} +(\d+\.\d).* (\d+)$", done.stdout, re.MULTILINE)
        assert [int(n) for _, n in rows] == [seeds] * (1 if options else 2)  # one scenario or both
        assert min(float(accuracy) for accuracy, _ in rows) > 40  # chance is 10 %


def test_findings_stand_on_the_linked_pages() -> None:
    """Every "N of M" and every factor, outside the generated counts."""
    [section] = re.findall(r"^## What we found\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"<!-- claims -->.*?<!-- /claims -->", "", section, flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+\.md)", prose)
    pages = "".join((ROOT / link).read_text(encoding="utf-8") for link in links)
    counts = re.findall(r"\b\d+ of \d+", prose)
    factors = re.findall(r"(\d+\.\d+)\s×", prose)
    assert counts and factors
    assert [count for count in counts if count not in pages] == []
    assert [factor for factor in factors if not re.search(rf"\b{re.escape(factor)}\s×", pages)] == []


@pytest.mark.slow
def test_numbers_of_the_example_are_those_of_its_runs(tmp_path: Path) -> None:
    """Run the suite: number of runs, time to target of the first strategy, and that the second has none."""
    [count] = re.findall(r"The\s+(\d+)\s+runs", README)
    [(first, percent, time, second, end)] = re.findall(
        r"(\w+)\s+reaches\s+(\d+)\s+%\s+accuracy\s+after\s+(\d+)\s+units\s+of\s+time\.\s+(\w+),.*?\s+in\s+(\d+)\s+units",
        README,
    )
    program = (
        "import asyncfl\n"
        "asyncfl.run('quickstart')\n"
        "runs = asyncfl.results('quickstart')\n"
        "runs[['timing.durations.name', 'strategy', 'time_to_target']].to_csv('runs.csv', index=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    runs = pd.read_csv(tmp_path / "runs.csv")
    assert len(runs) == int(count)
    times = runs[runs["timing.durations.name"] == "two_speed"].set_index("strategy")["time_to_target"]
    assert times[first].median() == int(time)
    assert not np.isfinite(times[second]).any()
    suite = yaml.safe_load((ROOT / "benchmarks" / "suites" / "quickstart.yaml").read_text(encoding="utf-8"))
    assert suite["problem"]["target"] == int(percent) / 100 and suite["budget"]["time"] == int(end)
