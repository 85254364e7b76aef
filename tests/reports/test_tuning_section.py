"""The tuning page: its counts, basins and divergence are those of studies whose truth is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import log10
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import shell
import yaml
from click.testing import CliRunner
from synthetic import Fake, curve, records
from synthetic_studies import RATES, campaign, one, rate, read, runs, tried

from benchmarks.commands.group import asyncfl
from reports.page import SECTIONS, render, sections, write, write_files
from reports.records.records import RecordedSuite
from reports.records.studies import sensitivity
from reports.records.suite_reader import load
from reports.sections import provenance, tuning
from reports.sections.section import Results, Section
from reports.sections.tuning import best_frame, best_so_far

ROOT = Path(__file__).parents[2]
NASTY = '<script>alert("$x_1$")</script> & \x00\u202e%s {{ 7 * 7 }}'


def shown(suite: RecordedSuite) -> Section:
    (found,) = [one for one in sections(Results.of(suite)) if one.anchor == "tuning"]
    return found


# Counts.


def test_failed_pruned_and_running_trials() -> None:
    made = [
        tried(0.8, **rate(0.1)),
        tried(0.9, **rate(0.2)),
        tried(None, "pruned", **rate(0.3)),
        tried(None, "failed", **rate(0.4)),
        tried(0.0, diverged=1, **rate(1.0)),
        tried(None, "running", **rate(0.5)),
    ]
    study = one(made, trials="6")
    assert [trial.number for trial in study.counted] == [0, 1, 2, 3, 4]
    assert [trial.number for trial in study.judged] == [0, 1, 2, 4]
    assert study.best is not None and study.best.number == 1 and len(study.diverged) == 1
    assert best_so_far(study) == pytest.approx([0.8, 0.9, 0.9, 0.9, 0.9])
    suite = campaign(runs("FedBuff", made, trials="6"))
    told = " ".join(tuning.remarks(suite))
    assert "1 planned trial without an end as yet." in told and "1 trial failed" in told
    (row,) = shown(suite).shows["blocks"][0]["table"].lines
    assert row[3].text == "20 %" and row[3].detail.startswith("(1 of 5, ")


def test_the_first_of_equal_values_is_best_and_replaced_studies_are_left_out() -> None:
    parent = {"mlflow.parentRunId": "old FedBuff in digits · i.i.d."}
    old = [  # another study of the same name
        replace(run, run_id=f"old {run.run_id}", tags=run.tags | parent)
        for run in runs("FedBuff", [tried(0.99, **rate(0.1))], superseded="true")
    ]
    (study,) = read(old, runs("FedBuff", [tried(0.8, **rate(0.1)), tried(0.8, **rate(0.2))]))
    assert len(study.trials) == 2 and study.best is not None and study.best.number == 0


def test_equal_shares_are_stated_and_unequal_ones_too() -> None:
    made = [tried(0.8, **rate(0.1)), tried(0.9, **rate(0.2))]
    said = tuning.shares(campaign(runs("ACE", made), runs("FedBuff", made)))
    assert (
        "2 trials × 2 seeds × 2000 client updates, the same for every strategy: 4 trials of 2 studies, "
        "8 simulations" in said
    )
    assert "validation accuracy, on validation data" in said and "Seeds 1000, 1001" in said and "TPE" in said
    other = campaign(runs("ACE", made), runs("FedBuff", made[:1], seeds="[1000]"))
    assert "the same" not in tuning.shares(other)
    assert "unequal shares: trials and seeds." in tuning.remarks(other)[0]


def test_seeds_that_the_suite_runs_on_are_told() -> None:
    own = records(*(Fake(seed=seed, curve=curve([0.1, 0.9], [0, 10])) for seed in (0, 1000)))
    suite = replace(own, studies=read(runs("FedBuff", [tried(0.9, **rate(0.1))])))
    assert any("seeds of the suite’s own runs: 1000." in sentence for sentence in tuning.remarks(suite))
    assert "none of them" not in tuning.shares(suite)


def fraboni() -> RecordedSuite:
    """Asynchronous FedAvg good at one rate and lost above it, FedFix good everywhere."""
    grid = [0.001, 0.01, 0.1, 1]
    space = {"local_lr": {"choices": grid}, "server_lr": {"choices": [0.5, 1.0, 2.0]}}
    more = {"sampler": "grid", "space": json.dumps(space)}
    narrow = [
        tried(0.0 if lr >= 0.1 else 0.9 if lr == 0.01 else 0.3, diverged=2 * (lr >= 0.1), **rate(lr, s))
        for lr in grid
        for s in (0.5, 1.0, 2.0)
    ]
    wide = [tried(0.9, **rate(lr, s)) for lr in grid for s in (0.5, 1.0, 2.0)]
    return campaign(runs("Async FedAvg", narrow, **more), runs("FedFix", wide, **more))


def test_every_trial_of_a_grid_is_a_point_in_the_colour_of_its_objective() -> None:
    block = shown(fraboni()).shows["blocks"][0]
    assert block["colours"].startswith("Colours: 30.0 % to 90.0 %")
    figures = [str(figure.__html__()) for _, figure, _ in block["cards"]]
    narrow, wide = (sorted(set(re.findall(r"--a(\d)", figure))) for figure in figures)
    assert len(narrow) == 2 and wide == narrow[1:]  # one scale for both: 30 % is pale, 90 % is strong
    assert all("Local rate · log scale" in figure and "Server rate" in figure for figure in figures)


# Numbers, files, pages.


def test_the_table_holds_best_values_and_the_spread_of_their_seeds() -> None:
    made = [tried(0.8, **rate(0.1)), tried(0.9, by_seed=(0.88, 0.92), **rate(0.9, 2.0))]
    tags = {"importance": '{"server_lr": 0.25, "local_lr": 0.75}'}
    suite = campaign(runs("ACE", made, **tags))
    block = shown(suite).shows["blocks"][0]
    assert block["table"].headings[:2] == ["Strategy", "Validation accuracy (%)"]
    line = dict(zip(block["table"].headings, block["table"].lines[0], strict=True))
    assert line["Validation accuracy (%)"].text == "90.0"
    assert line["Validation accuracy (%)"].detail == f"± {100 * 0.02 * 2**0.5:.1f}"
    assert line["local_lr"].text == "0.9" and line["local_lr"].detail == "(upper edge, 1.5 %)"
    assert line["server_lr"].detail == f"({100 * (1 - log10(2)) / 2:.0f} % to edge)"
    assert (line["Importance"].text, line["Importance"].detail) == ("local_lr 75 %", "(server_lr 25 %)")
    frame = best_frame(suite.studies, {one.id: sensitivity(one) for one in suite.studies})
    assert frame.set_index("parameter").loc["local_lr", "best"] == 0.9


@pytest.mark.usefixtures("undrawn")
def test_figures_and_tables_come_as_files(tmp_path: Path) -> None:
    names = {path.name for path in write_files(sections(Results.of(fraboni())), tmp_path)}
    place = "tuning-{}-digits-i-i-d"
    assert {f"{place.format(name)}.svg" for name in ("Async-FedAvg", "FedFix", "history")} <= names
    assert {"tuning-trials.csv", "tuning-best.csv", "tuning-digits-i-i-d.tex"} <= names
    trials = pd.read_csv(tmp_path / "tuning-trials.csv")
    assert len(trials) == 24 and (trials["diverged seeds"] > 0).sum() == 6


ODD: dict[str, RecordedSuite] = {
    "nothing complete": campaign(runs("ACE", [tried(None, "failed", **rate(0.1))])),
    "all diverged": campaign(runs("ACE", [tried(0.0, diverged=2, **rate(0.1))])),
    "one parameter": campaign(
        runs(
            "ACE",
            [tried(1e-6, local_lr=0.1), tried(5.0, local_lr=1.0), tried(100, diverged=1, local_lr=0.5)],
            space=json.dumps({"local_lr": RATES["local_lr"]}),
            direction="minimize",
            metric="distance",
        )
    ),
    "names only": campaign(
        runs("ACE", [tried(0.5, kind=NASTY)], space=json.dumps({"kind": {"choices": [NASTY, "b"]}}))
    ),
    "no space": campaign(runs("ACE", [tried(0.5)], space="{")),
    "hostile": campaign(
        runs(
            NASTY,
            [tried(0.5, **{NASTY: 1.0, "server_lr": 2.0})],
            at=NASTY,
            seeds='["x", null, 3]',
            space=json.dumps({NASTY: {"low": 0.1, "high": 2}, "server_lr": {"low": 1, "high": 10}, "x": 3}),
            importance='{"server_lr": "much"}',
            trials="many",
        )
    ),
    "outside": campaign(runs("ACE", [tried(0.5, **rate(50)), tried(float("nan"), **rate(0.1))])),
}


@pytest.mark.parametrize(
    "suite",
    [
        pytest.param(suite, id=name, marks=() if name in ("hostile", "all diverged") else pytest.mark.slow)
        for name, suite in ODD.items()
    ],
)
def test_odd_campaigns_have_a_page_and_files(suite: RecordedSuite, tmp_path: Path) -> None:
    page = render(suite)
    assert 'id="tuning"' in page and 'id="provenance"' in page
    assert "<script>alert" not in page and "\x00" not in page
    assert write_files(sections(Results.of(suite)), tmp_path)


def test_the_page_of_the_suite_has_the_section_before_its_methods() -> None:
    own = records(Fake(curve=curve([0.1, 0.9], [0, 10])))
    suite = replace(own, studies=fraboni().studies)
    order = [section.anchor for section in sections(Results.of(suite))]
    assert order.index("curves") < order.index("tuning") < order.index("provenance")
    assert SECTIONS.index(tuning.section) == SECTIONS.index(provenance.strategies) - 1
    assert [section.anchor for section in sections(Results.of(fraboni()))] == ["tuning", "provenance"]
    assert "tuning" not in [section.anchor for section in sections(Results.of(own))]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a real campaign: gradient descent on a quadratic with λ = 4, good for rates below ½."""
    folder = tmp_path_factory.mktemp("tuned")
    suite = {
        "name": "small",
        "seeds": 1,
        "problem": {"name": "quadratic", "centres": [[1.0], [1.0]], "curvature": [2.0, 6.0]},
        "budget": {"updates": 20},
        "evaluations": 5,
        "lr": 0.01,
        "strategies": ["fedavg", "asgd"],
        "tuning": {"trials": 5, "seeds": 2, "space": {"local_lr": {"low": 0.001, "high": 1}}},
    }
    (folder / "small.yaml").write_text(yaml.safe_dump(suite))
    for command in (["tune", "small.yaml", "--quiet"], ["run", "small.yaml", "--quiet", "--no-report"]):
        done = shell.asyncfl(folder, *command, "--store", "store")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_a_real_campaign_end_to_end(tuned: Path) -> None:
    (path,) = tuned.glob("tuned-small.yaml")
    written = yaml.safe_load(path.read_text())
    uri = f"sqlite:///{tuned}/store/mlflow.db"
    studies = {study.strategy: study for study in load(uri, "small").studies}
    for entry in written["tuned"]:
        study = studies[entry["strategy"]]
        assert study.best is not None and len(study.counted) == 5 and len(study.by_seed) == 2
        assert study.best.parameters == pytest.approx(entry["parameters"])
        assert sorted(study.by_seed) == pytest.approx(sorted(entry["by_seed"]))
        assert study.best.worth == pytest.approx(entry["value"])
    for name, parts in (("small", {"ranking", "tuning"}), ("small.tuning", {"tuning", "provenance"})):
        done = CliRunner().invoke(asyncfl, ["report", name, "--store", str(tuned / "store")])
        assert done.exit_code == 0, done.output
        page = (tuned / "store" / "reports" / f"{name}.html").read_text()
        assert all(f'<section id="{part}"' in page for part in parts)
        assert "5 trials × 2 seeds × 20 client updates, the same for every strategy" in page


@pytest.mark.slow
def test_it_fits_a_small_window(browser: Any, tmp_path: Path) -> None:
    suite = campaign(
        *(runs(f"{name} {'x' * 40}", [tried(0.5, **rate(0.1))]) for name in "ab"),
        runs(NASTY, [tried(0.9, **rate(0.9))]),
    )
    address = write(suite, tmp_path / "page.html").as_uri()
    tab = browser.new_page(color_scheme="dark", viewport={"width": 375, "height": 800})
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.goto(address)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    assert tab.locator("#tuning .card svg[role]").count() == 4 and complaints == []
    tab.close()
