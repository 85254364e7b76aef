"""Whatever stands in a file or on the command line: it is read, or refused in clear lines; never a traceback.

`pytest -m slow tests/benchmarks/test_fuzz.py` tries 18,000; figures in docs/reliability.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mutations import TOKENS, changed, faults, spliced, splices

from benchmarks import documents
from benchmarks.claims import files, plan
from benchmarks.cli import main
from benchmarks.errors import UserError
from benchmarks.suite import tuned
from benchmarks.suite.shipped import SUITES
from benchmarks.suite.suite import load
from reports.gate import baseline

SUITE = b"""name: small
seeds: 2
problem: {name: quadratic, noise: 0.1}
timing: {durations: {name: fx, spread: 50}, availability: {name: dropouts, share: 0.2, at: 5}}
budget: {updates: 30}
local: {steps: 2}
lr: {'*': 0.1, fedbuff: {local: 0.2, server: 1}}
strategies: [fedavg, {name: fedbuff, buffer: 2}, {name: async_fedavg, weights: [1, 2]}]
grid: {problem.noise: [0, 1], timing.durations: [{name: two_speed, slow: 3}, {name: scipy, law: gamma}]}
show: [fp/loss]
tuning: {trials: 3, space: {local_lr: {low: 0.1, high: 1}, fedbuff.buffer: [1, 2]}}
diagnostics: {errors: 2}
scale: a
scales: {a: {budget.updates: 10}, b: {}}
"""
CLAIMS = b"""paper: toy
title: Toy, 2026
scenarios:
  inline: {problem: quadratic, seeds: 2, budget: {updates: 5}, strategies: [asgd, ace], scales: {small: {}}}
  shipped: {suite: quickstart, set: {seeds: 1}, scales: {small: {budget.updates: 9}}}
claims:
  - {id: T-one/case, place: Fig. 1, statement: A is better., kind: better, clock: updates, rates: stated,
     arrangement: paper, scenario: inline, metric: fp/loss, a: {strategy: asgd}, b: {strategy: ace}}
  - {id: 'T-two/{x}', place: Tab. 1, statement: It is x., kind: value, clock: updates, rates: stated,
     arrangement: paper, scenario: inline, metric: fp/loss, strategy: ace, printed: 0.5, each: {x: [1, 2]}}
seen: {'T-two/*': nothing}
"""
SUITES_READ = [SUITE] * 4 + [
    path.read_bytes() for path in SUITES.glob("*.yaml") if path.stat().st_size < 2500
]
SHIPPED = SUITES.parent


def tried(check: Callable[[Path], object], path: Path, content: bytes) -> bool:
    """Whether the file is accepted; if not, the refusal is checked: lines that begin with the file."""
    path.write_bytes(content)
    try:
        check(path)
    except UserError as error:
        refusal = error
    else:
        return True
    assert refusal.lines
    for line in refusal.lines:
        assert line.startswith(str(path)) and line.isprintable(), line
    return False


def text_of(document: Any) -> bytes:
    """As YAML that this package did not write."""
    return yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "surrogatepass")


def expand(path: Path) -> None:
    load(str(path)).runs()


def claims(path: Path) -> None:
    if wrong := plan.mistakes(files.papers(path.parent).values()):
        raise UserError(*wrong)


def few_runs() -> bytes:
    """The shipped baseline, less most of its 520 runs: to find a line in those takes a fifth of a second."""
    whole = baseline.read(baseline.shipped("ci"))
    with TemporaryDirectory() as folder:
        few = whole.model_copy(update={"runs": whole.runs[:8]})
        return baseline.write(few, Path(folder) / "few.json").read_bytes()


KINDS: dict[str, tuple[Callable[[Path], object], list[bytes], Callable[[Any], bytes]]] = {
    "suite": (expand, SUITES_READ, text_of),
    "claims": (claims, [CLAIMS], text_of),
    "tuned": (
        lambda path: tuned.load(path, "quickstart"),
        [(SHIPPED / "tuned/quickstart.yaml").read_bytes()],
        text_of,
    ),
    "baseline": (
        baseline.read,
        [few_runs()],
        lambda document: json.dumps(document).encode("utf-8", "surrogatepass"),
    ),
}
QUICK = dict.fromkeys(KINDS, 150)
LONG = {"suite": 10_000, "claims": 4_000, "tuned": 1_000, "baseline": 1_000}


def fuzzed(kind: str, folder: Path, examples: int) -> None:
    """Half of the examples have bytes changed, half have values replaced."""
    check, texts, written = KINDS[kind]
    folder.mkdir(exist_ok=True)
    path = folder / ("f.json" if kind == "baseline" else "f.yaml")
    read = [json.loads(text) if kind == "baseline" else documents.parse(text)[0] for text in texts]
    for text in texts:
        path.write_bytes(text)
        check(path)
    bounded = settings(
        max_examples=examples // 2,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # a failure shows its text as it is; shrinking takes minutes
        suppress_health_check=list(HealthCheck),
    )

    @bounded
    @given(st.sampled_from(texts), splices)
    def bytes_changed(text: bytes, edits: list[tuple[int, int, bytes]]) -> None:
        tried(check, path, spliced(text, edits))

    @bounded
    @given(st.sampled_from(read), faults)
    def values_changed(document: Any, edits: list[tuple[int, str, Any]]) -> None:
        tried(check, path, written(changed(document, edits)))

    bytes_changed()
    values_changed()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    fuzzed(kind, tmp_path / "f", QUICK[kind])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_files_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    fuzzed(kind, tmp_path / "f", LONG[kind])


COMMANDS = [
    ["run", "small.yaml", "--set", "problem.noise=1", "--workers", "1", "--store", "out", "--quiet"],
    ["run", "small.yaml", "--scale", "b", "--tuned", "--no-report"],
    ["tune", "small.yaml", "--trials", "2", "--sampler", "random", "--storage", "a.journal"],
    ["check", "small.yaml", "--baseline", "b.json", "--no-speed", "--store", "out"],
    ["baseline", "small.yaml", "--no-speed", "--out", "b.json"],
    ["report", "small", "--scale", "b", "--files", "papers"],
    ["compare", "fedavg", "ace", "--suite", "small", "--metric", "fp/loss"],
    ["claims", "--claims", ".", "--paper", "toy"],
    ["claims", "show", "T-one/case", "--claims", "."],
    ["theory", "routing", "--speeds", "1 2", "--tasks", "2"],
    ["list", "strategies"],
    ["errata", "X-1"],
    ["ui", "small", "--port", "5000", "--tracking-uri", "sqlite:///x.db"],
]
WORDS = [
    *(token for token in TOKENS if "\x00" not in token),
    "--set",
    "seeds=",
    "lr.ace=.nan",
    "=",
    "--store",
    "-1",
]
swaps = st.lists(
    st.tuples(st.integers(0, 2**10), st.sampled_from("=-+~"), st.sampled_from(WORDS) | st.text(max_size=5)),
    min_size=1,
    max_size=3,
)


def swapped(words: list[str], edits: list[tuple[int, str, str]]) -> list[str]:
    """A command line with words replaced (=), left out (-), added (+) or spliced (~); the command stays."""
    words = list(words)
    for at, how, fresh in edits:
        place = 1 + at % max(1, len(words) - 1)
        if how == "~" and place < len(words):
            word = words[place]
            words[place] = word[: at % (len(word) + 1)] + fresh + word[at % (len(word) + 1) :]
        else:
            words[place : place + (how != "+")] = [] if how == "-" else [fresh]
    return [word.replace("\x00", "") for word in words]


class Began(Exception):  # noqa: N818 - not an error
    """A command has understood all of its words."""


def begin(*_: object, **__: object) -> None:
    raise Began


def typed(folder: Path, monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    """What a command line comes to before anything runs: an answer, a refusal, or the beginning of work."""
    inside = folder / "a" / "b"  # a word such as ../../x stays below the folder
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    (inside / "small.yaml").write_bytes(SUITE)
    (inside / "toy.yaml").write_bytes(CLAIMS)
    for place in (
        "benchmarks.runs.session.Session.run",
        "tuning.campaign.Driver.run",
        "benchmarks.commands.ui._server",
    ):
        monkeypatch.setattr(place, begin)
    monkeypatch.setattr("benchmarks.pool.fork_server.warm_up", lambda *_: None)  # before a suite is read

    path = sys.path

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(COMMANDS), swaps)
    def mistyped(words: list[str], edits: list[tuple[int, str, str]]) -> None:
        monkeypatch.setattr(sys, "argv", ["asyncfl", *swapped(words, edits)])
        monkeypatch.setattr(sys, "path", path.copy())  # each command adds to it
        code: object = 0
        try:
            main()
        except Began:
            return
        except SystemExit as end:
            code = end.code
        assert code in (0, 2, None), sys.argv

    mistyped()


def test_a_command_line_begins_or_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(tmp_path, monkeypatch, 150)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_thousands_of_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(tmp_path, monkeypatch, 2_000)
