"""Time to target, error terms and cost: what they show is what the runs say."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic import Fake, baseline, curve, quickstart, records

from benchmarks.mlflow_store import tags_and_metrics
from benchmarks.mlflow_store.tags_and_metrics import total_metrics
from fl_core.diagnostics.diagnosis import Diagnostics
from fl_core.experiment import Experiment
from fl_core.problems.quadratic import Quadratic
from fl_core.recorded_names import Clock
from fl_core.recording.recorder import run
from fl_core.scenario import Budget, Scenario, Timing
from fl_core.strategies.ace import ACE
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.strategy import Strategy
from fl_core.timing.durations import Exponential
from reports import numbers
from reports.figures import svg
from reports.page import render
from reports.records.seed_summaries import band
from reports.sections import cost, curves, error_terms, time_to_target
from reports.sections.clients import phase_shares
from reports.sections.clients import phases as phases_section
from reports.sections.section import Results

QUADRATIC = Scenario(
    problem=Quadratic(clients=4, centres=((1, 0), (-2, 1), (3, 3), (0.5, -1)), noise=0.1),
    timing=Timing(durations=Exponential(mean=2)),
    budget=Budget(updates=60),
    evaluations=4,
)


def reach(accuracies: list[list[float]], **more: Any) -> list[Fake]:
    marks = [0, 10, 20, 30]
    return [Fake(seed=at, curve=curve(of, marks), **more) for at, of in enumerate(accuracies)]


FAST, SLOW, NEVER = [0.1, 0.9, 0.9, 0.9], [0.1, 0.5, 0.8, 0.86], [0.1, 0.5, 0.6, 0.7]


def test_who_never_met_the_target_stays_out() -> None:
    (scenario,) = records(*reach([FAST, SLOW, NEVER])).scenarios()
    table = time_to_target.times_to_target(scenario)
    updates = table[table["clock"] == "updates"]
    assert sorted(updates["met at"]) == [10, 30, inf]
    assert updates.loc[np.isinf(updates["met at"]), "end"].tolist() == [30]
    assert set(table["target"]) == {0.85} and set(table["strategy"]) == {"FedBuff"}


def test_targets_that_nobody_met_are_named_and_not_drawn() -> None:
    made = [*reach([FAST, SLOW]), *reach([NEVER, NEVER], scenario="hard")]
    section = time_to_target.section(Results.of(records(*made)))
    assert section is not None and section.note.endswith("No strategy met the target in hard.")
    assert len(section.figures) == 2  # one a clock
    assert set(section.tables[0].numbers["met at"]) == {10, 30, 15.0, 45.0}
    assert time_to_target.section(Results.of(records(*reach([NEVER, NEVER])))) is None
    assert time_to_target.section(Results.of(records(*reach([FAST])))) is None


def test_all_strokes_of_a_row_are_one_path() -> None:
    def paint(axes: svg.Axes) -> None:
        axes.set_xlim(0, 4)
        svg.strokes(axes, 2, [1, 2, 3], 0)
        svg.strokes(axes, 3, [], 0)  # of a strategy that never met the target

    text = svg.Drawing(paint, "three strokes").__html__()
    (drawn,) = re.findall(r'<g data-s="2"><path d="([^"]*)"', text)
    assert drawn.count("M") == drawn.count("L") == 3


def computed(strategy: Strategy, seed: int) -> Fake:
    """A real run with diagnostics, as the runner leaves it."""
    experiment = Experiment(scenario=QUADRATIC, strategy=strategy, seed=seed)
    record = run(experiment, diagnostics=Diagnostics(errors=5))
    left = tags_and_metrics.tables(record)
    return Fake(
        scenario="quadratic", problem="quadratic", strategy=strategy.label(), seed=seed,
        metric="distance", higher=False, target=None, totals=total_metrics(record),
        curve=left["curve"], clients=left["clients"], diagnostics=left["diagnostics"],
        client=left["arrivals"]["client"], staleness=left["arrivals"]["staleness"],
    )  # fmt: skip


def test_error_terms_of_real_runs() -> None:
    made = [
        computed(strategy, seed)
        for strategy in (ACE(local_lr=0.05), ASGD(local_lr=0.05))
        for seed in range(2)
    ]
    suite = records(*made)
    section = error_terms.section(Results.of(suite))
    assert section is not None and len(section.figures) == 4
    numbers = section.tables[0].numbers.set_index(["strategy", "term"])["mean"]
    cells = suite.scenarios()[0].cells
    lines = error_terms.lines(error_terms.error_terms(cells))
    for cell in cells:
        of = [pd.DataFrame(one.diagnostics) for one in made if one.strategy == cell.strategy]
        for term in error_terms.TERMS:
            assert numbers[cell.strategy, term] == pytest.approx(np.mean([rows[term].mean() for rows in of]))
            iteration, value = lines[term][cell.strategy]
            assert iteration.tolist() == of[0].iteration.tolist()
            assert value == pytest.approx(np.mean([rows[term] for rows in of], axis=0))
    # All clients have their part in each of ACE's updates, with equal weights: no participation bias.
    assert numbers["ACE", "bias_sq"] < 1e-12 < numbers["ASGD", "bias_sq"]


def test_without_diagnostics_there_is_no_such_part() -> None:
    assert error_terms.section(Results.of(records(*reach([FAST, SLOW])))) is None


def test_long_runs_are_thinned_by_averages() -> None:
    terms = {term: np.arange(600.0) for term in error_terms.TERMS}
    made = reach([FAST], diagnostics={"iteration": np.arange(600), **terms})
    terms = error_terms.error_terms(records(*made).scenarios()[0].cells)
    ((_, value),) = error_terms.lines(terms)["noise_sq"].values()
    assert len(value) == 60 and value[0] == pytest.approx(4.5)
    assert error_terms.run_means(terms)["mean"].tolist() == pytest.approx([299.5] * len(error_terms.TERMS))


def test_costs_are_those_of_the_runs() -> None:
    made = [
        replace(
            one,
            totals={
                "kept_bytes/server": 2048.0,
                "kept_bytes/clients": 5e6 * (1 + one.seed),
                **({"local_steps": 150.0} if one.seed else {}),  # an earlier version did not count them
            },
        )
        for one in reach([FAST, SLOW, NEVER])
    ]
    section = cost.section(Results.of(records(*made)))
    assert section is not None
    (table,) = section.tables
    texts = dict(zip(table.headings, table.lines[0], strict=True))
    assert (
        texts["Updates"].text == "30" and texts["Local steps"].text == "150" and texts["Sent"].text == "120 B"
    )
    assert (texts["Sent to target"].text, texts["Sent to target"].detail) == ("120 B", "(40 B to ∞)")
    assert texts["Server keeps"].text == "2.0 kB"
    assert (texts["Clients keep"].text, texts["Clients keep"].detail) == ("10 MB", "(5.0 MB to 15 MB)")
    assert table.numbers["key"].nunique() == 3 and "Not finite" not in texts
    assert "Sent to target: " in section.note and "Not finite" not in section.note


@pytest.mark.parametrize(
    ("name", "heading"), [("non_finite_updates", "Not finite"), ("misread_messages", "Misread")]
)
def test_rare_accidents_are_counted(name: str, heading: str) -> None:
    """Over the runs that had any; the column is absent where none had."""
    made = [
        replace(one, totals={name: 2.0 * one.seed} if one.seed else {}) for one in reach([FAST, SLOW, NEVER])
    ]
    section = cost.section(Results.of(records(*made)))
    assert section is not None
    (table,) = section.tables
    texts = dict(zip(table.headings, table.lines[0], strict=True))
    assert (texts[heading].text, texts[heading].detail) == ("3", "(2 to 4)")
    assert f" {heading}: " in section.note


def test_the_median_is_one_where_some_runs_never_met_the_target() -> None:
    """Of an even number of runs the mean of the two in the middle, ∞ if one of these is."""
    entry = cost.entry([4.0, inf, 1.0, 2.0], numbers.count)
    assert (entry.text, entry.detail) == ("3", "(1 to ∞)")
    assert cost.entry([1.0, inf, 2.0, inf], numbers.count).text == "∞"


@pytest.mark.usefixtures("undrawn")
def test_every_figure_leads_to_its_runs() -> None:
    fakes = quickstart(1)
    suite = records(*fakes[:2], *fakes[7:9], name="quickstart")  # two strategies in two scenarios
    text = render(suite)
    for place in (1, 2):
        assert text.count(f'href="#runs-{place}"') >= 3 and f'id="runs-{place}"' in text
    assert all(one.run_id in text for one in suite.runs)


LINKED = {"strategy.name": "fedbuff", "timing.network.uplink.value": "5"}


def test_where_the_time_goes_adds_up() -> None:
    """Of two clients over 45 units: 9 of download, 27 of computation, 18 of upload, and 36 of waiting."""
    spent = {"download_time": [4, 5], "computation_time": [20, 7], "upload_time": [10, 8]}
    clients = dict(Fake().clients) | spent
    results = Results.of(records(*reach([FAST, SLOW], clients=clients, params=LINKED)))
    scenario = results.scenarios[0]
    assert phase_shares(scenario.cells[0]).tolist() == pytest.approx([0.1, 0.3, 0.2, 0, 0, 0.4])
    section = phases_section(results)
    assert section is not None and section.anchor == "phases"
    assert phases_section(Results.of(records(*reach([FAST, SLOW])))) is None  # without a network
    clients |= {"server_wait_time": [9, 0], "server_time": [0, 18]}
    with_server = Results.of(records(*reach([FAST, SLOW], clients=clients, params=LINKED)))
    cell = with_server.scenarios[0].cells[0]
    assert phase_shares(cell).tolist() == pytest.approx([0.1, 0.3, 0.2, 0.1, 0.2, 0.1])
    many = [fake for at in range(12) for fake in reach([FAST], strategy=f"S{at}", params=LINKED)]
    section = phases_section(Results.of(records(*(replace(fake, clients=clients) for fake in many))))
    assert section is not None
    ((_, figure),) = section.figures
    drawn = figure.__html__()
    assert all(f"S{at}: download" in drawn for at in range(12))  # not only of the leaders


@pytest.mark.parametrize(("params", "sent", "axes"), [(LINKED, True, 4), (LINKED, False, 3), ({}, True, 3)])
def test_bytes_are_an_axis_where_they_matter_and_are_known(params: Any, sent: bool, axes: int) -> None:
    """With a network or a coding; in stores that were written before bytes were a clock there is none."""
    fakes = reach([FAST, SLOW], **({"params": params} if params else {}))
    if sent:
        fakes = [replace(fake, curve={**(fake.curve or {}), "bytes": [0, 80, 160, 240]}) for fake in fakes]
    suite = records(*fakes)
    assert len(suite.scenarios()[0].clocks) == axes
    section = curves.section(Results.of(suite))
    assert section is not None and len(section.figures) == axes


def test_a_level_below_all_curves_has_room_for_its_name() -> None:
    """Less is better, and the centralised baseline is the least: its name stays above the axis."""
    loss = {"metric": "test/loss", "higher": False, "target": None}
    suite = records(*reach([FAST, SLOW], **loss), pooled=[baseline("digits", 0, {"test/loss": 0.05})])
    (scenario,) = suite.scenarios()
    bands = [band(cell, "test/loss", Clock.UPDATES) for cell in scenario.cells]
    axis = curves.scale(scenario.metric, [scenario], bands)
    assert axis.kind == "linear" and 0.05 - axis.low > 0.1 * (axis.high - axis.low)
