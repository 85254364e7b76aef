"""The stored table agrees with our strategies on the recorded arrivals, and with the frameworks' code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click import ClickException
from click.testing import CliRunner

from benchmarks.commands.list import command
from benchmarks.errors import UserError
from benchmarks.peers import Peer, Repeat, peers, repeats
from benchmarks.suite.suite import load
from tests.peers import __main__ as harness
from tests.peers import readings, sequences

ENTRIES = {entry.id: entry for entry in peers()}
MODELS = json.loads(harness.MODELS.read_text())
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "frameworks.md"


@cache
def recorded(algorithm: str) -> sequences.Sequence:
    return sequences.record(algorithm, "quadratic")


def replayed(entry: Peer, **options: object) -> np.ndarray:
    return sequences.replay(sequences.PAPERS[entry.algorithm] | options, recorded(entry.algorithm))


@pytest.mark.parametrize("algorithm", sequences.PAPERS)
def test_the_replay_of_a_run_is_the_run(algorithm: str) -> None:
    """Clients idle, and are stale; the paper's rule gives the recorded models again."""
    sequence = recorded(algorithm)
    np.testing.assert_array_equal(
        sequences.replay(sequences.PAPERS[algorithm], sequence), sequence["models"][1:]
    )
    assert len(set(sequence["uploaded"].tolist())) == sequences.ARRIVALS
    assert sequence["staleness"].max() >= 2


@pytest.mark.parametrize("key", ENTRIES)
def test_our_options_give_what_the_framework_computed(key: str) -> None:
    """The stored models of each framework's server: ours agree, and the paper's rule as the table says."""
    entry = ENTRIES[key]
    assert (MODELS[key] is None) == bool(entry.error)
    if MODELS[key] is None:
        return
    models = np.array(MODELS[key])
    assert sequences.first_difference(models, replayed(entry, **entry.paper), entry.tolerance) == (
        entry.first_step
    )
    if entry.ours is not None:
        np.testing.assert_allclose(replayed(entry, **entry.ours), models, rtol=0, atol=entry.tolerance)


@pytest.mark.parametrize("key", ["fedlab-2", "fedhf-2"])
def test_a_hinge_of_another_form_is_a_subclass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """The module on the page computes what these frameworks did."""
    (tmp_path / "hinges.py").write_text(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "hinges", raising=False)
    found = replayed(ENTRIES[key], name="hinges:OtherHinge", decay="hinge")
    np.testing.assert_allclose(found, np.array(MODELS[key]), rtol=0, atol=ENTRIES[key].tolerance)


@pytest.mark.parametrize("error", [0.0, 1e-9])
def test_options_that_give_other_models_are_refused(error: float) -> None:
    """On either problem; an entry of the table says that ours agree."""
    framework = next(each for each in harness.load() if each["name"] == "appfl")
    case = framework["cases"][0]
    sequence = sequences.record(case["algorithm"], "digits")
    ours = sequences.replay(sequences.PAPERS[case["algorithm"]] | case["ours"], sequence)
    found = {
        "appfl-1 FedAsync quadratic": {"models": MODELS["appfl-1"]},
        "appfl-1 FedAsync digits": {"models": (ours + error).tolist()},
    }
    arrivals = {"FedAsync quadratic": recorded("FedAsync"), "FedAsync digits": sequence}
    if error:
        with pytest.raises(ClickException, match=r"^appfl-1: .* on digits, from arrival 1\."):
            harness.entry(framework, "appfl-1", case, found, arrivals)
    else:
        assert harness.entry(framework, "appfl-1", case, found, arrivals) == ENTRIES["appfl-1"]


def test_every_framework_and_setting_is_stored() -> None:
    wanted = [
        (f"{each['name']}-{number}", each["title"], case["setting"], case["computes"])
        for each in harness.load()
        for number, case in enumerate(each["cases"], 1)
    ]
    assert wanted == [(one.id, one.framework, one.setting, one.computes) for one in peers()]
    assert list(MODELS) == list(ENTRIES)


def test_every_example_is_stored() -> None:
    """And those with options were run; the others say why they were not."""
    examples = [(each["title"], case) for each in harness.load() for case in each["examples"]]
    assert [run.id for run in repeats()] == harness.keys("examples")
    assert [
        (run.framework, run.example, run.setting, run.note, run.verdict != "not run") for run in repeats()
    ] == [
        (title, case["example"], case.get("setting", ""), case.get("note", ""), "options" in case)
        for title, case in examples
    ]
    assert all(run.note for run in repeats() if run.verdict != "identical")


@pytest.mark.parametrize(
    ("difference", "same_order", "verdict"),
    [
        (None, None, "not run"),
        (0.0, True, "identical"),
        (None, False, "different"),
        (0.02, True, "different"),
    ],
)
def test_verdict_on_two_runs(difference: float | None, same_order: bool | None, verdict: str) -> None:
    """Equal models after another order of arrivals are not identical runs."""
    run = Repeat(
        id="x-1", framework="X", package="x", version="1", example="e", setting="",
        difference=difference, same_order=same_order,
    )  # fmt: skip
    assert run.verdict.startswith(verdict)


@pytest.mark.parametrize("second", [1.0, 1.5])
def test_two_runs_of_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: float) -> None:
    """An example that ends differently the second time; its environment has the values of the case."""
    adapter = tmp_path / "frameworks" / "toy_example.py"
    adapter.parent.mkdir()
    adapter.write_text(
        "import json, os, pathlib\n"
        "assert 'PYTHONHASHSEED' not in os.environ and os.environ['SIZE'] == '2'\n"
        "before = pathlib.Path(__file__).with_name('before')\n"
        f"model = [0.0, {second} if before.exists() else 1.0]\n"
        "before.touch()\n"
        "pathlib.Path('out.json').write_text(json.dumps({'model': model, 'arrivals': [1, 2]}))\n"
    )
    monkeypatch.setattr(harness, "HERE", tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    cases = [
        {"example": "toy", "options": {}, "environment": {"SIZE": 2}},
        {"example": "other", "note": "why"},
    ]
    toy = {"name": "toy", "title": "Toy", "requirements": ["toy==1"], "examples": cases}
    run, other = harness.repeated(toy, Path(sys.executable))
    assert (run.difference, run.same_order) == (second - 1, True)
    assert (other.difference, other.note) == (None, "why")


def test_list_peers() -> None:
    every = CliRunner().invoke(command, ["peers"])
    assert every.exit_code == 0
    assert (
        len(every.output.splitlines()) == len(ENTRIES) + len(repeats()) + 3
    )  # two headers, one line between
    one = CliRunner().invoke(command, ["peers", "appfl"])
    assert (
        "FedBuffAggregator" in one.output and "AsyncSimDriver" in one.output and "nvflare" not in one.output
    )
    assert isinstance(CliRunner().invoke(command, ["peers", "apfl"]).exception, UserError)


def interpreter(framework: harness.Framework) -> Path:
    """Return the interpreter of a framework's environment; skip the test without it."""
    python = harness.ENVIRONMENTS / framework["name"] / "bin" / "python"
    if not python.is_file():
        pytest.skip("no environment: python -m tests.peers makes it")
    return python


@pytest.mark.slow
@pytest.mark.parametrize("framework", harness.load(), ids=lambda each: each["name"])
def test_the_framework_computes_what_is_stored(framework: harness.Framework) -> None:
    """In the environments that `python -m tests.peers` made; skipped without them."""
    python = interpreter(framework)
    sequences_of_quadratics = {f"{name} quadratic": recorded(name) for name in sequences.PAPERS}
    found = harness.served(framework, python, sequences_of_quadratics)
    for number, case in enumerate(framework["cases"], 1):
        key = f"{framework['name']}-{number}"
        models = found[f"{key} {case['algorithm']} quadratic"].get("models")
        if MODELS[key] is None:
            assert models is None
        else:
            np.testing.assert_allclose(models, MODELS[key], rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("framework", harness.load(), ids=lambda each: each["name"])
def test_identical_runs_are_identical_again(framework: harness.Framework) -> None:
    """In the same environments; runs that differ may agree by chance."""
    stored = {run.id: run for run in repeats()}
    for run in harness.repeated(framework, interpreter(framework)):
        if stored[run.id].verdict in ("identical", "not run"):
            assert run.verdict == stored[run.id].verdict


def test_readings_are_those_of_the_suite() -> None:
    """A row for each run, with the tuned rate; times to the target are those of evaluations."""
    stored = pd.read_csv(readings.FILE, keep_default_na=False)
    planned = load("frameworks", tuned=True).runs()
    assert tuple(stored.columns) == readings.COLUMNS
    assert len(stored) == len(planned)
    for row, run in zip(stored.itertuples(), planned, strict=True):
        strategy = run.experiment.strategy
        changed = {name: f"{value}" for name, value in strategy.changed().items()}
        options = dict(option.split("=") for option in row.options.split())
        assert options.items() <= changed.items()
        assert (row.strategy, row.seed, row.local_lr) == (
            strategy.name,
            run.experiment.seed,
            strategy.local_lr,
        )
        assert 0 < row.accuracy <= 1 and row.time_to_target > 0


REPRODUCTIONS = Path(__file__).parent / "reproductions"
OUTPUTS = {
    "appfl_base": "1.0\n1.0",
    "appfl_fedqueue": "exp(): argument 'input' (position 1) must be Tensor, not float",
    "fedhf_hinge": "0.0333",
    "fedlab_hinge": "0.0333",
    "fedml_manager": "'AsyncFedAVGAggregator' object has no attribute 'record_client_runtime'",
    "fedml_norm": "2.5",
    "fedscale_average": "[array([1.])]",
    "flgo_hinge": "0.05",
    "flgo_scale": "0.50\n1.20",
    "flsim_import": "is not allowed: use default_factory",
    "golf_alpha": "0.2612\n0.2585",
    "golf_hinge": "0.5000",
    "golf_import": "No module named 'golf_federated.utils'",
    "nvflare_pruning": "1 [2]",
    "nvflare_weight": "0.500\n0.414\n0.500",
    "oiafed_trainer": "Can't instantiate abstract class AsyncTrainer with abstract method train_round\nFalse",
    "plato_fedasync": "None",
    "plato_fedbuff": "1.0\n1.0",
}
# Instead of the adapter, which skips what the small environments lack and the server does not need
COMMUNICATION = [
    f"fedml.core.distributed{part}"
    for part in ("", ".communication", ".communication.message", ".fedml_comm_manager")
]
PREPARATIONS = {
    "fedml_manager": f"protocol.stub_anything(*{COMMUNICATION}); import fedml_server",
    "flsim_import": "pass",  # the adapter mends it
    "golf_import": "protocol.stub_anything('flask')",  # as above
}


def test_every_reproduction_has_an_output() -> None:
    page = PAGE.read_text()
    assert {path.stem for path in REPRODUCTIONS.glob("*.py")} == {*OUTPUTS, "nvflare_order"}
    assert all(f"reproductions/{path.name}" in page for path in REPRODUCTIONS.glob("*.py"))


def reproduced(name: str, **environment: str) -> str:
    """Run a reproduction in the environment of its framework; return what it printed."""
    framework = name.partition("_")[0]
    script = REPRODUCTIONS / f"{name}.py"
    preparation = PREPARATIONS.get(name, f"import {framework}_server")
    code = f"import protocol, runpy; {preparation}; runpy.run_path({str(script)!r})"
    done = subprocess.run(
        [str(interpreter({"name": framework})), "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=script.parents[1] / "frameworks",
        env={**os.environ, **environment},
    )
    return done.stdout.rstrip()


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUTS)
def test_reproductions_print_what_the_page_says(name: str) -> None:
    assert reproduced(name).endswith(OUTPUTS[name])


@pytest.mark.slow
def test_devices_of_nvflare_depend_on_the_hash_seed() -> None:
    first, again, other = (reproduced("nvflare_order", PYTHONHASHSEED=seed) for seed in "112")
    assert first == again != other
