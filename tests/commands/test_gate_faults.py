"""Eleven faults, each in a copy of the sources, and twelve unchanged builds: what the gate says of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from shell import asyncfl

from benchmarks.commands import check
from benchmarks.engine import Local
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.progress import Progress
from benchmarks.runs.session import Session
from benchmarks.suite.suite import load
from reports.gate import baseline as baselines
from reports.gate.gate import Finding, GateCheck, compare, exit_code

ROOT = Path(__file__).parents[2]
PACKAGES = ("asyncfl", "fl_core", "benchmarks", "tuning", "reports")
SEEDS, UNCHANGED = 5, 12
SUITE = f"""
name: guarded
problem: {{name: digits, clients: 10, partition: {{name: cyclic_labels, labels: 3}}, target: 0.7}}
timing: {{durations: {{name: two_speed, share: 0.2, slow: 10}}}}
budget: {{updates: 200}}
evaluations: 20
evaluate: clients
local: {{steps: 2, batch: 16}}
lr: {{"*": 0.1, asgd: {{local: 0.05, server: 0.2}}, delayed_nesterov: {{local: 0.05, server: 0.2}}}}
strategies:
  - {{name: fedbuff, concurrency: 6, buffer: 5, server_lr: 2}}
  - fedasync
  - delayed_nesterov
  - {{name: asgd, label: coded, uplink: {{name: top_k, share: 0.02, feedback: ef14}}}}
seeds: {SEEDS}
"""
FEDBUFF, FEDASYNC, NESTEROV, CODED = "FedBuff", "FedAsync", "Delayed Nesterov", "coded"
ALL = (FEDBUFF, FEDASYNC, NESTEROV, CODED)


class Fault(NamedTuple):
    """A fault in the sources, and what is found of the strategies that it concerns."""

    edits: tuple[tuple[str, str, str], ...]  # file, text, text in its place
    findings: dict[str, Finding]  # by strategy, the worst one


FEDBUFF_FILE = "strategies/fedbuff.py"
SERVER, DISPATCH = "server/server.py", "loop/dispatch.py"
FAULTS = {
    "last update of each buffer dropped": Fault(
        ((FEDBUFF_FILE, "memory.total += ", "memory.total += 0 if memory.count + 1 == self.buffer else "),),
        {FEDBUFF: Finding.WORSE},
    ),
    "wrong staleness weight": Fault(
        ((FEDBUFF_FILE, "(1 + age) ** 0.5", "(1 + age) ** 2"),),
        {FEDBUFF: Finding.WORSE},
    ),
    "version off by one": Fault(
        (("strategies/fedasync.py", "update.staleness if", "update.staleness + 1 if"),),
        {FEDASYNC: Finding.WORSE},
    ),
    "local step forgotten": Fault(
        (("local_work.py", "else self.steps\n", "else max(1, self.steps - 1)\n"),),
        dict.fromkeys(ALL, Finding.WORSE),
    ),
    "half the local learning rate": Fault(
        (("local_work.py", "return y - lr * g", "return y - lr / 2 * g"),),
        dict.fromkeys(ALL, Finding.WORSE),
    ),
    "server rate ignored": Fault(
        ((FEDBUFF_FILE, "self.server_lr * (", "1.0 * ("),), {FEDBUFF: Finding.WORSE}
    ),
    "sampling biased": Fault(
        ((SERVER, "below(size, draw)", "below((size + 1) // 2, draw)"),), {FEDBUFF: Finding.WORSE}
    ),
    "momentum lost": Fault(
        (
            (
                "strategies/delayed_nesterov.py",
                "self.momentum * memory.m + memory.total",
                "memory.total",
            ),
        ),
        {NESTEROV: Finding.WORSE},
    ),
    "stale broadcast": Fault(
        (
            (
                SERVER,
                "versions.pop(state.version - self._history",
                "versions.pop(state.version - self._history - 9",
            ),
            (DISPATCH, "state.versions[version] if", "state.versions[max(0, version - 9)] if"),
        ),
        dict.fromkeys(ALL, Finding.WORSE) | {CODED: Finding.CHANGED},
    ),
    "no error feedback": Fault(
        (("compression.py", "vector if memory is None else vector + memory", "vector"),),
        {CODED: Finding.WORSE},
    ),
    "seed ignored": Fault(
        (
            ("streams.py", "repr((seed, purpose, ids))", "repr((0, purpose, ids))"),
            ("streams.py", "({seed!r}, {purpose!r}, ", "(0, {purpose!r}, "),
        ),
        dict.fromkeys(ALL, Finding.CHANGED),
    ),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> Iterator[Path]:
    """A folder with the suite, its results and their baseline."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "guarded.yaml").write_text(SUITE)
    record(folder, "first")
    words = ["guarded.yaml", "--baseline", "base.json", "--no-speed", "--store", "first", "--write"]
    before = Path.cwd()
    os.chdir(folder)
    done = CliRunner().invoke(check.command, words)
    assert done.exit_code == 0, done.output
    yield folder
    os.chdir(before)


def record(folder: Path, name: str) -> None:
    """Compute the suite with the code as it is."""
    session = Session(load(str(folder / "guarded.yaml")), Store(folder / name))
    session.run(Local(2), lambda _: Progress())


def checked(folder: Path, store: str) -> list[GateCheck]:
    """Compare the runs of a store with the baseline, and check the command's exit code against the checks."""
    before = baselines.read(folder / "base.json")
    planned = load(str(folder / "guarded.yaml")).runs()
    checks = compare(before, baselines.take(Store(folder / store).tracking_uri, planned))
    words = [
        str(folder / "guarded.yaml"),
        "--baseline",
        str(folder / "base.json"),
        "--store",
        str(folder / store),
    ]
    done = CliRunner().invoke(check.command, [*words, "--no-speed"])
    assert done.exit_code == exit_code(checks), done.output
    return checks


def faulty(folder: Path, fault: Fault) -> Path:
    """Return a copy of the sources with a fault."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored, copy_function=os.link)
    for name, old, new in fault.edits:
        path = folder / "fl_core" / name
        text = path.read_text()
        assert old in text, (name, old)
        path.unlink()  # a link to the original
        path.write_text(text.replace(old, new))
    return folder


def test_each_fault_stands_in_the_sources() -> None:
    """A module that was moved or rewritten must not leave a fault without effect."""
    for name, fault in FAULTS.items():
        for file, old, new in fault.edits:
            text = (ROOT / "fl_core" / file).read_text()
            assert old in text and text.replace(old, new) != text, (name, file)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_unchanged_builds_raise_no_alarm(guarded: Path) -> None:
    """Twelve times all is as before, to the last digit."""
    for build in range(UNCHANGED):
        record(guarded, f"unchanged-{build}")
        assert {one.finding for one in checked(guarded, f"unchanged-{build}")} == {Finding.SAME}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(guarded: Path, tmp_path: Path, name: str) -> None:
    """Of the strategies that it concerns, as worse or changed; all others are as before."""
    fault, store = FAULTS[name], name.replace(" ", "-")
    code = faulty(tmp_path / "code", fault)
    done = asyncfl(guarded, "run", "guarded.yaml", "--store", store, "--quiet", "--no-report", code=code)
    assert done.returncode == 0, done.stderr
    checks = checked(guarded, store)
    for label in ALL:
        findings = {one.finding for one in checks if label in one.strategy}
        worst = next((kind for kind in (Finding.WORSE, Finding.CHANGED) if kind in findings), Finding.SAME)
        assert worst is fault.findings.get(label, Finding.SAME), (label, checks)
    assert exit_code(checks) == (1 if Finding.WORSE in fault.findings.values() else 3)
