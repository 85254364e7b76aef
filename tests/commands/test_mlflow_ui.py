"""MLflow's own pages on a small suite, in Chromium: curves are drawn against each clock."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from mlflow import MlflowClient
from patience import PATIENCE
from recorded import runs, write_campaign, write_suite

from benchmarks.commands.ui import pages
from benchmarks.engine import Local
from benchmarks.errors import UserError
from benchmarks.mlflow_store.delivery import keep_page
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.progress import display
from benchmarks.runs.session import Session
from benchmarks.suite.suite import load
from tests.databases import new_store
from tuning.driver import Driver
from tuning.plan import plan
from tuning.storage import open_storage

ROOT = Path(__file__).parents[2]

# The lines of all charts of a page: what each calls its x-axis, and how many points every line has.
LINES = """[...document.querySelectorAll('.js-plotly-plot')]
    .filter(plot => plot.layout.xaxis.title)
    .map(plot => [plot.layout.xaxis.title.text, plot.data.map(line => [line.name, line.x.length])])"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> Store:
    """A store in which a suite of two strategies has run, and its page is kept."""
    folder = tmp_path_factory.mktemp("recorded")
    store = new_store(folder / "results")
    Session(load(str(write_suite(folder))), store).run(Local(2), lambda tasks: display(tasks, quiet=True))
    page = folder / "small.html"
    page.write_text("<h1>The page of small</h1>")
    assert keep_page(store, "small", page) == ""
    return store


def test_links_to_every_scenario_and_to_the_report(recorded: Store) -> None:
    found = pages(recorded.tracking_uri, "small")
    assert pages(recorded.tracking_uri, str(recorded.folder.with_name("small.yaml"))) == found
    titles = [title for title, _ in found if not title.startswith("Tuning")]
    assert titles == ["All scenarios", "quadratic · F80", "Single runs", "Report page"]
    client = MlflowClient(recorded.tracking_uri)
    experiment = client.get_experiment_by_name("small")
    assert experiment is not None
    for _, address in found[:3]:
        key = address.partition("viewStateShareKey=")[2]
        assert f"mlflow.sharedViewState.{key}" in experiment.tags
    with pytest.raises(UserError, match="'smal' "):
        pages(recorded.tracking_uri, "smal")


def test_a_suite_without_saved_views_has_a_link(store: Store) -> None:
    experiment = MlflowClient(store.tracking_uri).create_experiment("bare")
    ((title, address),) = pages(store.tracking_uri, "bare")
    assert "asyncfl run bare" in title and f"experiments/{experiment}/runs" in address
    MlflowClient(store.tracking_uri).create_experiment("bare.tuning")
    ((title, _),) = pages(store.tracking_uri, "bare.tuning")
    assert "asyncfl tune bare " in title


@pytest.fixture(scope="module")
def tuned(recorded: Store) -> Store:
    """The store with a campaign: six rates for each strategy, on two seeds."""
    folder = recorded.folder.parent / "campaign"
    folder.mkdir()
    campaign = plan(load(str(write_campaign(folder, "asgd, fedbuff", updates=20)), tuned=False))
    storage = open_storage(str(folder / "tuning.journal"))
    Driver(campaign, storage, recorded).run(Local(1), lambda _: None)
    return recorded


def test_a_campaign_has_links_before_its_suite_has_run(tuned: Store) -> None:
    """Under the name of the suite, as `asyncfl tune` prints it; and under that of its tuned variant."""
    of_campaign = [link for link in pages(tuned.tracking_uri, "small") if link[0].startswith("Tuning")]
    client = MlflowClient(tuned.tracking_uri)
    experiment = client.get_experiment_by_name("small")
    assert experiment is not None
    client.rename_experiment(experiment.experiment_id, "small-tuned")
    titles = [title for title, _ in pages(tuned.tracking_uri, "small")]
    assert titles == [
        *(f"Tuned · {name}" for name in ("All scenarios", "quadratic · F80", "Single runs")),
        *(title for title, _ in of_campaign),
    ]
    assert pages(tuned.tracking_uri, "small-tuned")[-len(of_campaign) :] == of_campaign
    client.delete_experiment(experiment.experiment_id)
    assert pages(tuned.tracking_uri, "small") == of_campaign


def test_a_study_lasts_as_long_as_its_trials_computed(tuned: Store) -> None:
    """Not until the campaign ended; and it has the conditions of its trials."""
    client = MlflowClient(tuned.tracking_uri)
    experiment = client.get_experiment_by_name("small.tuning")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id], max_results=1000)
    studies = [run for run in found if run.data.tags["asyncfl.kind"] == "study"]
    assert len(studies) == 2
    for study in studies:
        trials = [run for run in found if run.data.tags.get("mlflow.parentRunId") == study.info.run_id]
        computing = sum(run.data.metrics["wall_seconds"] for run in trials)
        assert (study.info.end_time - study.info.start_time) / 1000 == pytest.approx(computing, abs=2e-3)
        conditions = {run.data.tags["asyncfl.conditions"] for run in (study, *trials)}
        assert len(conditions) == 1 and conditions != {"[]"}


def test_each_study_has_a_view_of_its_trials(tuned: Store) -> None:
    links = dict(pages(tuned.tracking_uri, "small"))
    titles = ["Best of each strategy", "All trials", "ASGD", "FedBuff"]
    assert [title for title in links if title.startswith("Tuning")] == [f"Tuning · {name}" for name in titles]
    assert pages(tuned.tracking_uri, "small.tuning") == [(name, links[f"Tuning · {name}"]) for name in titles]
    client = MlflowClient(tuned.tracking_uri)
    experiment = client.get_experiment_by_name("small.tuning")
    assert experiment is not None
    for title, address in links.items():
        if title.startswith("Tuning"):
            key = address.partition("viewStateShareKey=")[2]
            assert f"mlflow.sharedViewState.{key}" in experiment.tags
    trials = runs(tuned, "small.tuning", "trial")
    assert len(trials) == 24
    best = {run.data.tags["asyncfl.best_trial"] for run in runs(tuned, "small.tuning", "study")}
    chosen = [run.data.tags for run in trials if "asyncfl.chosen" in run.data.tags]
    assert len(chosen) == 4 and {tags["asyncfl.trial"] for tags in chosen} == best
    for run in trials:
        rate = float(run.data.params["local_lr"])
        assert run.data.params.keys() == {"local_lr"} and rate in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@pytest.mark.slow
def test_a_study_is_drawn_over_its_parameters(tuned: Store, ui: dict[str, str], tab: Any) -> None:
    tab.goto(ui["Tuning · ASGD"])
    tab.wait_for_function(f"{LINES}.length >= 3", timeout=PATIENCE * 1000)
    scatter, *curves = tab.evaluate(LINES)[:3]
    assert scatter[0] == "local_lr"
    for axis, lines in curves:
        assert axis in ("clock/updates", "clock/virtual_time")
        assert len({name for name, _ in lines}) == 12


@pytest.mark.slow
def test_best_rates_and_their_curves_are_two_clicks_away(tuned: Store, ui: dict[str, str], tab: Any) -> None:
    """Which rate was best for FedBuff, and how do its curves look beside those of ASGD?"""
    best = {
        run.data.tags["asyncfl.strategy"]: (
            run.data.tags["asyncfl.best_trial"],
            run.data.tags["asyncfl.best"],
        )
        for run in runs(tuned, "small.tuning", "study")
    }
    tab.goto(ui["Tuning · All trials"])  # the first
    tab.wait_for_function(f"{LINES}.length >= 1", timeout=PATIENCE * 1000)
    (axis, points), *_ = tab.evaluate(LINES)
    assert axis == "local_lr" and [count for _, count in points] == [24]
    tab.goto(ui["Tuning · Best of each strategy"])  # the second
    tab.wait_for_function(f"{LINES}.length >= 2", timeout=PATIENCE * 1000)
    for axis, lines in tab.evaluate(LINES)[:2]:
        assert axis in ("clock/updates", "clock/virtual_time")
        names = {f"{label} · trial {number} · seed" for label, (number, _) in best.items()}
        assert {name.rpartition(" ")[0] for name, _ in lines} == names
        assert len({name for name, _ in lines}) == 4  # two seeds of each
    for _, rates in best.values():
        rate = json.loads(rates)["local_lr"]
        tab.get_by_text(str(rate), exact=True).first.wait_for(timeout=PATIENCE * 1000)


@pytest.fixture
def ui(recorded: Store) -> Iterator[dict[str, str]]:
    """`asyncfl ui small`: the links that it prints, by title."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = "from asyncfl.cli import main; main()"
    command = ["ui", "small", "--store", str(recorded.folder), "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", program, *command],
        cwd=recorded.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("MLflow is starting")
    links: dict[str, str] = {}
    for line in process.stdout:
        if line.startswith("MLflow UI"):
            break
        title, address = line.strip(), next(process.stdout).strip()
        links[title] = address
    assert _answers(port), "the links came before the server"
    yield links
    process.terminate()
    process.wait(timeout=PATIENCE)
    assert not _answers(port), "the server was left behind"


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE):
            return True
    except (URLError, OSError):
        return False


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A tab of headless Chromium."""
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    yield page
    page.close()


@pytest.mark.slow
def test_curves_are_drawn_against_every_clock(ui: dict[str, str], tab: Any) -> None:
    tab.goto(ui["quadratic · F80"])
    tab.wait_for_function(f"{LINES}.length >= 2", timeout=PATIENCE * 1000)
    charts = tab.evaluate(LINES)[:2]  # below are bars, and what MLflow makes of every other metric
    assert [axis for axis, _ in charts] == ["clock/updates", "clock/virtual_time"]
    for _, lines in charts:
        assert {name for name, _ in lines} == {"ASGD", "FedBuff"}
        assert all(points == 5 for _, points in lines)  # an evaluation at the start, and four


@pytest.mark.slow
def test_the_report_page_is_shown(ui: dict[str, str], tab: Any) -> None:
    tab.goto(ui["Report page"])
    page = tab.frame_locator("iframe").first.get_by_text("The page of small")
    page.wait_for(timeout=PATIENCE * 1000)
