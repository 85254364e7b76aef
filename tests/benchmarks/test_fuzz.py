"""Whatever stands in a file or on the command line: it is read, or refused in clear lines; never a traceback.

`pytest -m slow tests/benchmarks/test_fuzz.py` tries 28,200; figures in docs/reliability.md.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from damages import ROWS, fill
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mutations import TOKENS, VALUES, changed, faults, spliced, splices

from asyncfl.cli import main
from benchmarks import phone_traces as devices
from benchmarks import trace_import as logs
from benchmarks import yaml_io
from benchmarks.claims import files, plan
from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from benchmarks.suite import tuned
from benchmarks.suite.shipped import SUITES
from benchmarks.suite.suite import load
from reports.gate import baseline
from tests.databases import new_store

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
     arrangement: paper, workload: paper, scenario: inline, metric: fp/loss,
     a: {strategy: asgd}, b: {strategy: ace}}
  - {id: 'T-two/{x}', place: Tab. 1, statement: It is x., kind: value, clock: updates, rates: stated,
     arrangement: paper, workload: paper, scenario: inline, metric: fp/loss, strategy: ace, printed: 0.5,
     margin: 1, each: {x: [1, 2]}}
seen: {'T-two/*': nothing}
"""
SUITES_READ = [SUITE] * 4 + [
    path.read_bytes() for path in SUITES.glob("*.yaml") if path.stat().st_size < 2500
]


def tried(check: Callable[[Path], object], path: Path, content: bytes) -> bool:
    """Whether the file is accepted; if not, the refusal is checked: lines that name the file."""
    path.write_bytes(content)
    try:
        check(path)
    except UserError as error:
        refusal = error
    else:
        return True
    assert refusal.lines
    for line in refusal.lines:
        assert line.startswith((str(path), "naming.yaml")) and str(path) in line, line
        assert line.isprintable() and len(line) < 300, line
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


NAMING = """name: naming
seeds: 1
problem: {{name: digits, clients: 3, partition: {partition}}}
timing: {{durations: {durations}, availability: {availability}, network: {network}}}
budget: {{updates: 5}}
strategies: [asgd, {{name: fedbuff, buffer: 2, local: {{name: prox, mu: 0.1}}}}, fedfix]
"""


def naming(
    folder: Path,
    partition: str = "iid",
    durations: str = "fixed",
    availability: str = "always",
    network: str = "{}",
) -> Path:
    """A suite that names a file beside it."""
    path = folder / "naming.yaml"
    named = {"partition": partition, "durations": durations, "availability": availability, "network": network}
    path.write_text(NAMING.format(**named))
    return path


def traced(path: Path) -> None:
    expand(naming(path.parent, durations=f"{{name: trace, path: '{path}'}}"))


def parted(path: Path) -> None:
    expand(naming(path.parent, partition=f"{{name: file, path: '{path}'}}"))


def with_tuned(path: Path) -> None:
    load(str(naming(path.parent)), tuned=path).runs()


def tuned_values() -> bytes:
    """Values for that suite, with parameters of each kind."""
    parameters = {
        "asgd": {"c": 0.5},
        "fedbuff": {"local_lr": 0.1, "buffer": 3, "local.mu": 0.2, "local.steps": 2},
        "fedfix": {"period": 0.5, "server_lr": 1.5, "weights": "exponential"},
    }
    with TemporaryDirectory() as folder:
        runs = load(str(naming(Path(folder)))).runs()
    entries = [
        {
            "scenario": run.scenario,
            "strategy": run.strategy,
            "digest": tuned.digest(run.experiment.scenario, run.experiment.strategy, values),
            "parameters": values,
            "value": 0.5,
            "spread": None,
            "by_seed": [0.5],
            "study": "x",
        }
        for run in runs
        for values in [parameters[run.experiment.strategy.name]]
    ]
    words = dict.fromkeys(
        ("suite", "objective", "metric", "direction", "judged_on", "budget", "sampler"), "naming"
    )
    return text_of({**words, "trials": 1, "seeds": [1000], "versions": {}, "tuned": entries})


def linked(path: Path) -> None:
    law = f"{{name: column, path: '{path}', column: rate}}"
    expand(naming(path.parent, network=f"{{uplink: {law}}}"))


def present(path: Path) -> None:
    expand(naming(path.parent, availability=f"{{name: trace, path: '{path}'}}"))


def logged(path: Path) -> None:
    columns = logs.Columns("device", start="began", end="ended", status="state")
    for asked in (
        columns,
        logs.Columns("device", duration="seconds"),
        logs.Columns("device", "began", None, "seconds"),
    ):
        log = logs.read(path, asked)
        assert log.jobs["length"].between(0, logs.MAX_LENGTH).all()
        assert log.absences is None or isfinite(log.absences.away)


def of_phones(path: Path) -> None:
    phones = devices.read(path, batch=20)
    if isinstance(phones, devices.Presence):
        assert list(phones.described(path))
    elif phones is not None:
        assert phones.clients


def json_of(document: Any) -> bytes:
    return json.dumps(document).encode("utf-8", "surrogatepass")


def csv_of(rows: Any) -> bytes:
    cells = ([str(cell) for cell in row] if isinstance(row, list) else [str(row)] for row in rows)
    return "".join(",".join(row) + "\n" for row in cells).encode("utf-8", "surrogatepass")


def yaml_read(text: bytes) -> Any:
    return yaml_io.parse(text)[0]


def csv_read(text: bytes) -> Any:
    return [line.split(",") for line in text.decode().splitlines()]


@dataclass(frozen=True)
class Kind:
    """A file of a user's: how it is checked, examples, its name; how its values are read and written."""

    check: Callable[[Path], object]
    texts: Callable[[], list[bytes]]
    name: str
    read: Callable[[bytes], Any]
    written: Callable[[Any], bytes]
    examples: int  # of the long test


of_yaml = partial(Kind, name="f.yaml", read=yaml_read, written=text_of)
of_json = partial(Kind, name="f.json", read=json.loads, written=json_of)
of_csv = partial(Kind, name="f.csv", read=csv_read, written=csv_of)
KINDS = {
    "suite": of_yaml(expand, lambda: SUITES_READ, examples=10_000),
    "claims": of_yaml(claims, lambda: [CLAIMS], examples=4_000),
    "tuned": of_yaml(with_tuned, lambda: [tuned_values()], examples=2_000),
    "baseline": of_json(baseline.read, lambda: [few_runs()], examples=1_000),
    "trace": of_csv(
        traced,
        lambda: [b"client,length\n0,0.5\n1,1/3,2\n\n2, 1.25\n7,100\n", b"pixel,1\na3f,2,1e3\nx,.5\n"],
        examples=2_000,
    ),
    "partition": of_csv(parted, lambda: [b"client,index\n0,5\n0,7\n1,0\n2,1\n"], examples=1_000),
    "lists": of_json(
        parted, lambda: [b"[[5, 7], [0], [1, 2]]", b'{"0": [5, 7], "2": [1], "1": [0]}'], examples=1_000
    ),
    "links": of_csv(
        linked, lambda: [b"device,rate\na,0.5\nb,1/3\nc,1.25\n", b"rate\n2.5\n3\n100\n"], examples=1_000
    ),
    "presence": of_csv(
        present,
        lambda: [b"client,from,to\n0,0,5\n1,2.5,8\n2,1,3\n", b"a,0,5,10\nb,1,2,10\nb,4,6,10\nc,0,10,10\n"],
        examples=1_000,
    ),
    "log": of_csv(
        logged,
        lambda: [
            b"device,began,ended,seconds,state\na,1,2.5,1.5,done\nb,0,8,8,ok\na,4,5,1,failed\n",
            b"device,began,ended,seconds,state\na,2026-01-31 12:00:05,2026-01-31 12:01:05,60,done\n",
        ],
        examples=1_500,
    ),
    "phones": of_json(
        of_phones,
        lambda: [
            (
                b'{"p1": {"messages": "2020-02-03 04:05:06\\tbattery_charged_on\\n'
                b"2020-02-03 04:05:07\\tscreen_lock\\n"
                b'2020-02-03 04:05:08\\twifi\\n2020-02-03 05:05:06\\tscreen_unlock\\n"}}'
            )
        ],
        examples=500,
    ),
}
QUICK = 30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one, from which files have short paths: a long one takes the room of what is said."""
    monkeypatch.chdir(tmp_path)


def repeatable(examples: int) -> settings:
    """So many examples, the same on every run."""
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # a failure shows its text as it is; shrinking takes minutes
        suppress_health_check=list(HealthCheck),
    )


def fuzzed(kind: str, examples: int) -> None:
    """Half of the examples have bytes changed, half have values replaced."""
    fuzz = KINDS[kind]
    path, texts = Path(fuzz.name), fuzz.texts()
    for text in dict.fromkeys(texts):
        path.write_bytes(text)
        fuzz.check(path)
    documents = list(map(fuzz.read, texts))
    bounded = repeatable(examples // 2)

    @bounded
    @given(st.sampled_from(texts), splices)
    def bytes_changed(text: bytes, edits: list[tuple[int, int, bytes]]) -> None:
        tried(fuzz.check, path, spliced(text, edits))

    @bounded
    @given(st.sampled_from(documents), faults)
    def values_changed(document: Any, edits: list[tuple[int, str, Any]]) -> None:
        tried(fuzz.check, path, fuzz.written(changed(document, edits)))

    bytes_changed()
    values_changed()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_read_or_refused(kind: str) -> None:
    fuzzed(kind, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_files_are_read_or_refused(kind: str) -> None:
    fuzzed(kind, KINDS[kind].examples)


COMMANDS = [
    ["run", "small.yaml", "--set", "problem.noise=1", "--workers", "1", "--store", "out", "--quiet"],
    ["run", "small.yaml", "--scale", "b", "--tuned", "--no-report"],
    ["tune", "small.yaml", "--trials", "2", "--sampler", "random", "--storage", "a.journal"],
    ["check", "small.yaml", "--baseline", "b.json", "--no-speed", "--store", "out"],
    ["check", "small.yaml", "--no-speed", "--baseline", "b.json", "--write"],
    ["report", "small", "--scale", "b", "--files", "papers"],
    ["compare", "fedavg", "ace", "--suite", "small", "--metric", "fp/loss"],
    ["claims", "--claims", ".", "--paper", "toy"],
    ["claims", "show", "T-one/case", "--claims", "."],
    ["list", "theory", "routing", "--speeds", "1 2", "--tasks", "2"],
    ["list", "strategies"],
    ["list", "errata", "X-1"],
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
        "tuning.driver.Driver.run",
        "benchmarks.commands.ui._server",
    ):
        monkeypatch.setattr(place, begin)
    monkeypatch.setattr("benchmarks.pool.fork_server.warm_up", lambda *_: None)  # before a suite is read

    monkeypatch.setattr("signal.signal", lambda *_: None)  # the test itself can still be interrupted
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))

    @repeatable(examples)
    @given(st.sampled_from(COMMANDS), swaps)
    def mistyped(words: list[str], edits: list[tuple[int, str, str]]) -> None:
        monkeypatch.setattr(sys, "argv", ["asyncfl", *swapped(words, edits)])
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
    typed(tmp_path, monkeypatch, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_thousands_of_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(tmp_path, monkeypatch, 2_000)


# -- recorded stores --------------------------------------------------------------------------------

READERS = {
    "report": ["report", "small"],
    "compare": ["compare", "asgd", "fedbuff", "--suite", "small"],
}
STORES_TRIED = {"report": 200, "compare": 1_000}  # examples of the long test
cells = st.sampled_from([*TOKENS, *(value for value in VALUES if not isinstance(value, list | dict))]) | (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.binary(max_size=8)
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = new_store(tmp_path_factory.mktemp("recorded") / "store")
    fill(store)
    return store


def damage_file(path: Path, other: Path, how: str, data: st.DataObject) -> None:
    """Damage one file of a run: its bytes, its end, its values, or another file in its place."""
    content = path.read_bytes()
    if how == "bytes":
        path.write_bytes(spliced(content, data.draw(splices)))
    elif how == "end":
        path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    elif how == "swap":
        path.write_bytes(other.read_bytes())
    elif path.suffix == ".json":
        path.write_bytes(json_of(changed(json.loads(content), data.draw(faults))))
    else:
        columns = changed(pq.read_table(path).to_pydict(), data.draw(faults))
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):  # no table: left as it is
            pq.write_table(pa.table(columns), path)


def damage_database(path: Path, data: st.DataObject) -> None:
    """Put other values into one to three cells, as far as keys allow it."""
    with closing(sqlite3.connect(path)) as database, database:
        for _ in range(data.draw(st.integers(1, 3))):
            table = data.draw(st.sampled_from(ROWS))
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            column, at = data.draw(st.sampled_from(columns)), data.draw(st.integers(0, 2**10))
            rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table}")]
            if rows:
                where = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?"
                with suppress(sqlite3.IntegrityError, UnicodeEncodeError):
                    database.execute(where, (data.draw(cells), rows[at % len(rows)]))


def readable(path: Path) -> bool:
    """Whether pyarrow can read a table."""
    try:
        pq.read_table(path)
    except (OSError, pa.ArrowException):
        return False
    return True


def fuzzed_stores(
    command: str, examples: int, whole: Store, typed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """What a command says of damaged copies of a store."""
    copy = Store(whole.folder.with_name("copy"))

    @repeatable(examples)
    @given(st.data())
    def damaged(data: st.DataObject) -> None:
        shutil.rmtree(copy.folder, ignore_errors=True)
        shutil.copytree(whole.folder, copy.folder)
        files = sorted(copy.artifacts.glob("small/*/artifacts/*.*"), key=lambda file: file.stat().st_mtime_ns)
        how = data.draw(st.sampled_from(["bytes", "end", "swap", "values", "cells", "database"]))
        path = copy.database
        if how == "cells":
            damage_database(path, data)
        elif how == "database":
            path.write_bytes(spliced(path.read_bytes(), data.draw(splices)))
        else:
            path = data.draw(st.sampled_from(files))
            damage_file(path, data.draw(st.sampled_from(files)), how, data)
        done = typed(*READERS[command], "--store", str(copy.folder))
        lines = done.stderr.splitlines()
        assert "Traceback" not in done.stdout + done.stderr
        assert all(line.isprintable() for line in lines)
        assert done.returncode in (0, 1, 2)
        if done.returncode == 2:
            assert lines[-1].startswith("Error: ")
        if path.suffix == ".parquet" and not readable(path):
            assert path.name in done.stderr

    damaged()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("command", READERS)
def test_hundreds_of_damaged_stores(
    command: str, recorded: Store, typed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    fuzzed_stores(command, STORES_TRIED[command], recorded, typed)
