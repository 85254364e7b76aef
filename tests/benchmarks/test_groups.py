"""Parents of seeds in MLflow: the mean over their seeds, once, whatever is interrupted; saved views."""

import base64
import json
import shutil
import zlib
from itertools import accumulate
from math import inf
from pathlib import Path
from statistics import stdev
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import compute, deliver, places, small
from mlflow import MlflowClient
from mlflow.entities import Run, ViewType
from mlflow.exceptions import MlflowException
from recorded import runs, write_suite

from benchmarks.commands.ui import pages
from benchmarks.mlflow_store import views
from benchmarks.mlflow_store.delivery import Delivery, keep_page
from benchmarks.mlflow_store.entities import mean_curve, reached, spread
from benchmarks.mlflow_store.outbox import Announcement, Outbox, read
from benchmarks.mlflow_store.run_result import Place, names_of
from benchmarks.mlflow_store.store import Store
from benchmarks.mlflow_store.writer import Tracking
from benchmarks.suite.suite import load, tasks
from fl_core.metrics import LOSS
from fl_core.recorded_names import Clock, Tag, Total
from reports.figures import styles
from reports.records.suite_reader import load as load_report
from reports.sections.section import Results
from tests.databases import new_store


def groups(store: Store, view: int = ViewType.ACTIVE_ONLY) -> dict[str, Run]:
    """The groups by strategy."""
    return {run.data.tags["asyncfl.strategy"]: run for run in runs(store, kind="group", view=view)}


def history(store: Store, run: Run, metric: str) -> list[tuple[int, float]]:
    points = MlflowClient(store.tracking_uri).get_metric_history(run.info.run_id, metric)
    return [(point.step, point.value) for point in points]


def experiment_tags(store: Store) -> dict[str, str]:
    experiment = MlflowClient(store.tracking_uri).get_experiment_by_name("small")
    assert experiment is not None
    return dict(experiment.tags)


def step_value(curve: list[tuple[int, float]], iteration: int) -> float:
    """The last value at or before an iteration."""
    return [value for at, value in curve if at <= iteration][-1]


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with two strategies and two seeds, to be read alone."""
    folder = tmp_path_factory.mktemp("delivered")
    store = new_store(folder / "results")
    deliver(folder, store)
    return store


@pytest.fixture
def copy(delivered: Store, tmp_path: Path) -> Store:
    """A copy of that store, for a test to add to."""
    return Store(Path(shutil.copytree(delivered.folder, tmp_path / "copy")))


def test_a_group_holds_the_mean_over_its_seeds(delivered: Store) -> None:
    store = delivered
    for strategy, group in groups(store).items():
        seeds = [run for run in runs(store) if run.data.tags["asyncfl.strategy"] == strategy]
        assert len(seeds) == 2
        for metric in ("distance", "clock/updates", "clock/virtual_time"):
            curves = [history(store, seed, metric) for seed in seeds]
            found = history(store, group, metric)
            marks = sorted({max(at for at, _ in pair) for pair in zip(*curves, strict=True)})
            assert [step for step, _ in found] == marks
            for step, value in found:
                assert value == pytest.approx(sum(step_value(curve, step) for curve in curves) / 2)
        finals = [seed.data.metrics["distance"] for seed in seeds]
        assert group.data.metrics["distance"] == pytest.approx(sum(finals) / 2)
        assert group.data.metrics["std/distance"] == pytest.approx(stdev(finals))
        assert group.data.metrics["staleness/mean"] == pytest.approx(
            sum(seed.data.metrics["staleness/mean"] for seed in seeds) / 2
        )
        assert group.data.metrics["seeds/done"] == 2 and group.data.metrics["seeds/diverged"] == 0
        assert group.info.status == "FINISHED"
        assert "2 seeds" in group.data.tags["mlflow.note.content"]
        assert group.data.tags["asyncfl.paper"] in group.data.tags["mlflow.note.content"]


def test_a_group_has_the_parameters_of_its_seeds_and_can_be_found_by_them(delivered: Store) -> None:
    for strategy, group in groups(delivered).items():
        for seed in (run for run in runs(delivered) if run.data.tags["asyncfl.strategy"] == strategy):
            assert {**group.data.params, "seed": seed.data.params["seed"]} == seed.data.params
    client = MlflowClient(delivered.tracking_uri)
    experiments = [one.experiment_id for one in client.search_experiments()]
    which = "params.`strategy.name` = 'fedbuff' AND tags.`asyncfl.kind` = 'group'"
    (found,) = client.search_runs(experiments, which)
    assert found.info.run_name == "FedBuff"


def test_when_the_target_was_reached_is_what_the_report_says(tmp_path: Path, store: Store) -> None:
    """Of runs, and of groups as medians; absent where it was never reached (FedBuff: six steps from afar)."""
    suite = write_suite(tmp_path)
    suite.write_text(suite.read_text().replace("noise: 0.1", "noise: 0.1, start: [5.0]"))
    outbox = Outbox(store.outbox)
    delivery = Delivery(store, outbox)
    found = tasks(load(str(suite)).runs())
    delivery.announce(Announcement("small", "", places(found)))
    for task in found:
        compute(task, outbox)
    delivery.close()
    (scenario,) = load_report(store.tracking_uri, "small").scenarios()
    seen = set()
    for cell in scenario.cells:
        group = groups(store)[cell.strategy].data.metrics
        for clock in ("updates", "time"):
            reach = cell.reach(clock)
            reached = [run.metrics for run in cell.runs if f"{clock}_to_target" in run.metrics]
            assert len(reached) == reach.reached
            assert group.get(f"{clock}_to_target", inf) == reach.median
            seen.add(reach.reached)
    assert seen == {0, 2}


@pytest.mark.parametrize(
    ("times", "median"),
    [([3.0, 1.0, 2.0], 2.0), ([1.0, None, 2.0], 2.0), ([1.0, None], None), ([None, None, 1.0], None)],
)
def test_never_is_later_than_any_time(times: list[float | None], median: float | None) -> None:
    finals = [{} if time is None else {"time_to_target": time} for time in times]
    assert reached(finals).get("time_to_target") == median


columns = st.lists(st.tuples(st.integers(1, 9), st.floats(-5, 5)), min_size=1, max_size=8)


@given(st.lists(columns, min_size=1, max_size=4))
def test_the_mean_of_step_functions(steps: list[list[tuple[int, float]]]) -> None:
    curves = []
    for seed in steps:
        at, rows = 0, []
        for ahead, value in seed:
            rows.append((at, value))
            at += ahead
        curves.append(rows)
    found = mean_curve([pd.DataFrame(rows, columns=["iteration", "loss"]) for rows in curves])
    marks = {max(rows[min(k, len(rows) - 1)][0] for rows in curves) for k in range(max(map(len, curves)))}
    assert found.index.tolist() == sorted(marks)
    for iteration, value in found["loss"].items():
        mean = sum(step_value(rows, int(str(iteration))) for rows in curves) / len(curves)
        assert value == pytest.approx(mean, abs=1e-12)


runs_that_went_on = st.tuples(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.floats(-5, 5)), min_size=1, max_size=6),
    st.integers(0, 5),
)


def curve_of(steps: list[tuple[int, int, float]], longer: int) -> pd.DataFrame:
    """A run that evaluated versions at these distances, and went on for so long without another version."""
    iterations, times = (list(accumulate(column)) for column in list(zip(*steps, strict=True))[:2])
    rows = [*zip(iterations, times, [loss for *_, loss in steps], strict=True)]
    rows += [(rows[-1][0], rows[-1][1] + longer, rows[-1][2])] if longer else []
    return pd.DataFrame(rows, columns=["iteration", "time", "loss"])


@given(st.lists(runs_that_went_on, min_size=1, max_size=4))
def test_the_mean_of_runs_that_went_on_after_their_last_version(
    made: list[tuple[list[tuple[int, int, float]], int]],
) -> None:
    start = (0, 0, 7.0)
    curves = [curve_of([start, *steps], longer) for steps, longer in made]
    found = mean_curve(curves)
    steps = found.index.tolist()
    assert steps[:-1] == sorted(set(steps[:-1])) and steps[-1] == max(c["iteration"].max() for c in curves)
    ends = [curve["time"].iloc[-1] for curve in curves]
    assert found["time"].iloc[-1] == pytest.approx(sum(ends) / len(curves))
    assert found["loss"].iloc[-1] == pytest.approx(sum(c["loss"].iloc[-1] for c in curves) / len(curves))
    assert found["time"].is_monotonic_increasing
    for iteration, time in zip(steps[:-1], found["time"][:-1], strict=True):
        when = []
        for curve in curves:
            known = curve[curve["iteration"] <= iteration].drop_duplicates("iteration")
            past = iteration > curve["iteration"].max()
            when.append(curve["time"].iloc[-1] if past else known["time"].iloc[-1])
        assert time == pytest.approx(sum(when) / len(when))


@given(runs_that_went_on)
def test_the_mean_of_one_run_is_its_curve(made: tuple[list[tuple[int, int, float]], int]) -> None:
    curve = curve_of(*made)
    pd.testing.assert_frame_equal(
        mean_curve([curve]).reset_index(), curve, check_dtype=False, check_index_type=False
    )


def test_runs_whose_last_row_repeats_an_iteration_have_a_mean(tmp_path: Path, store: Store) -> None:
    """The slow client holds up FedAvg's third round beyond the budget, whose end is a row of its own."""
    path = tmp_path / "slow.yaml"
    path.write_text(SLOW_CLIENT)
    found = tasks(load(str(path)).runs())
    outbox = Outbox(store.outbox)
    delivery = Delivery(store, outbox)
    delivery.announce(Announcement("slow", "", places(found)))
    for task in found:
        compute(task, outbox)
    delivery.close()
    assert not delivery.refused
    (group,) = runs(store, "slow", kind="group")
    assert history(store, group, "clock/virtual_time") == [(0, 0), (1, 7), (2, 14), (2, 20)]
    assert history(store, group, "clock/updates") == [(0, 0), (1, 4), (2, 8), (2, 11)]
    again = Delivery(store, outbox)
    assert again.missing(found) == []
    again.announce(Announcement("slow", "", places(found)))
    again.close()
    assert [run.info.run_id for run in runs(store, "slow", kind="group")] == [group.info.run_id]


SLOW_CLIENT = """
name: slow
problem: {name: quadratic, centres: [[-1.0], [1.0], [0.5], [2.0]]}
timing: {durations: {name: fixed, times: [1, 1, 1, 7]}}
budget: {time: 20}
strategies: [fedavg]
seeds: 2
"""


def test_unfinished_groups_have_no_curve(tmp_path: Path, store: Store) -> None:
    failing = f"asgd, {{name: 'sluggish:Failing', mended: '{tmp_path / 'mended'}'}}"
    deliver(tmp_path, store, strategies=failing)
    found = groups(store)
    assert found.pop("ASGD").data.metrics["seeds/done"] == 2
    (failed,) = found.values()
    assert failed.data.metrics == {} and failed.info.status == "RUNNING"
    (tmp_path / "mended").touch()
    deliver(tmp_path, store, strategies=failing)
    assert {group.data.metrics["seeds/done"] for group in groups(store).values()} == {2}


@pytest.mark.parametrize("stop", ["log_batch", "set_terminated"])
def test_a_group_that_was_half_written_is_completed(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    real = getattr(MlflowClient, stop)

    def killed(self: MlflowClient, run_id: str, *rest: Any, **more: Any) -> None:
        if self.get_run(run_id).data.tags["asyncfl.kind"] == "group":
            raise KeyboardInterrupt
        real(self, run_id, *rest, **more)

    outbox, tracking = Outbox(store.outbox), Tracking(store)
    found = small(tmp_path)
    for task in found:
        compute(task, outbox)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, stop, killed)
        tracking.select("small", places(found))
        with pytest.raises(KeyboardInterrupt):
            list(map(tracking.write, map(read, outbox.waiting())))
    deliver(tmp_path, store)
    once = groups(store, ViewType.ALL)
    assert len(runs(store, kind="group", view=ViewType.ALL)) == 2
    assert {group.info.status for group in once.values()} == {"FINISHED"}
    before = {name: history(store, group, "distance") for name, group in once.items()}
    assert all(len({step for step, _ in curve}) == len(curve) == 5 for curve in before.values())
    deliver(tmp_path, store)
    again = groups(store, ViewType.ALL)
    assert [run.to_dictionary() for run in again.values()] == [run.to_dictionary() for run in once.values()]
    assert {name: history(store, group, "distance") for name, group in again.items()} == before


def test_a_curve_that_is_damaged_holds_up_nothing(tmp_path: Path, copy: Store) -> None:
    store = copy
    (damaged,) = (run for run in runs(store) if run.info.run_name == "seed 0 · ASGD")
    (store.artifacts / "small" / damaged.info.run_id / "artifacts" / "curve.parquet").write_bytes(b"PAR1")
    deliver(tmp_path, store, seeds=3)
    assert {name: group.data.metrics.get("seeds/done") for name, group in groups(store).items()} == {
        "ASGD": None,
        "FedBuff": 3,
    }


def test_a_strategy_keeps_its_colour_beside_others(tmp_path: Path, copy: Store) -> None:
    store = copy

    def shown(kind: str) -> dict[str, str]:
        tags = [run.data.tags for run in runs(store, kind=kind)]
        return {own["asyncfl.strategy"]: own["mlflow.runColor"] for own in tags}

    before = shown("group")
    deliver(tmp_path, store, strategies="ace, fedbuff, asgd")
    assert shown("group") == shown("run") == before | {"ACE": shown("group")["ACE"]}
    assert len({*shown("group").values()}) == 3
    page = Results.of(load_report(store.tracking_uri, "small")).index
    assert shown("group") == {name: styles.palette()[styles.colour(index)] for name, index in page.items()}


def test_names_say_what_varies_and_are_short() -> None:
    scenarios = ["digits · Dirichlet 0.1 · F80", "digits · Dirichlet 0.1 · two-speed 0.2 × 10"]
    conditions = {scenario: scenario.split(" · ") for scenario in scenarios}
    pairs = [(scenario, label) for scenario in scenarios for label in ("FedBuff", "x" * 60)]
    names = names_of(pairs, conditions)
    assert names[scenarios[0], "FedBuff"] == "FedBuff · F80"
    assert names[scenarios[1], "FedBuff"] == "FedBuff · two-speed 0.2 × 10"
    assert len({*names.values()}) == 4 and max(map(len, names.values())) <= 40
    assert names_of([(scenarios[0], "ACE")], conditions) == {(scenarios[0], "ACE"): "ACE"}


def test_a_separator_within_a_condition_does_not_split_it() -> None:
    """A label is made from its parts, and not taken apart again."""
    conditions = {f"digits · a · b {at}": ["digits", f"a · b {at}"] for at in (1, 2)}
    names = names_of([(scenario, "ACE") for scenario in conditions], conditions)
    assert {*names.values()} == {"ACE · a · b 1", "ACE · a · b 2"}


def test_groups_have_the_conditions_of_their_seeds_and_their_time_of_computing(delivered: Store) -> None:
    """Not the time from the first start to the last end: seeds may be days apart."""
    for strategy, group in groups(delivered).items():
        seeds = [run for run in runs(delivered) if run.data.tags["asyncfl.strategy"] == strategy]
        assert {run.data.tags["asyncfl.conditions"] for run in (group, *seeds)} == {
            group.data.tags["asyncfl.conditions"]
        }
        computing = sum(run.data.metrics["wall_seconds"] for run in seeds)
        assert (group.info.end_time - group.info.start_time) / 1000 == pytest.approx(computing, abs=1e-3)


def test_more_seeds_make_a_new_mean(tmp_path: Path, copy: Store) -> None:
    store = copy
    before = groups(store)
    deliver(tmp_path, store, seeds=3)
    after = groups(store)
    assert {group.data.metrics["seeds/done"] for group in after.values()} == {3}
    for strategy, group in after.items():
        assert group.info.run_id != before[strategy].info.run_id
        curve = history(store, group, "distance")
        assert len({step for step, _ in curve}) == len(curve)
        children = [run for run in runs(store) if run.data.tags["asyncfl.strategy"] == strategy]
        assert {run.data.tags["mlflow.parentRunId"] for run in children} == {group.info.run_id}
    assert len(runs(store, kind="group")) == 2


def state(value: str) -> dict[str, Any]:
    """The state of a page as MLflow reads it out of a tag."""
    envelope = json.loads(value)
    assert envelope.keys() == {"name", "createdAt", "updatedAt", "state"}
    form, _, text = envelope["state"].partition(";")
    assert form == "deflate"
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return found


def test_a_saved_view_finds_the_groups_of_its_scenario(delivered: Store) -> None:
    tags = experiment_tags(delivered)
    assert [name for name, _ in views.saved(tags)] == ["All scenarios", "quadratic · F80", "Single runs"]
    page = state(tags[views.TAG_PREFIX + views.saved(tags)[1][1]])
    client = MlflowClient(delivered.tracking_uri)
    ids = [one.experiment_id for one in client.search_experiments()]
    assert len(client.search_runs(ids, page["searchFilter"])) == 2
    assert page["orderByKey"] == "metrics.`distance`" and page["orderByAsc"]  # the nearest first
    *curves, updates, time = page["compareRunCharts"]
    axes = [(chart["xAxisKey"], chart["selectedXAxisMetricKey"]) for chart in curves]
    assert axes == [("metric", "clock/updates"), ("metric", "clock/virtual_time")]
    assert [(bars["type"], bars["metricKey"]) for bars in (updates, time)] == [
        ("BAR", "updates_to_target"),
        ("BAR", "time_to_target"),
    ]
    assert "metrics.`time_to_target`" in page["selectedColumns"]
    assert [(section["uuid"], section["columns"]) for section in page["compareRunSections"]] == [
        ("distance", 2),
        ("to_target", 2),
    ]
    name = page["compareRunSections"][0]["name"]
    assert name == "Distance to the optimum by client updates and virtual time"
    columns = page["selectedColumns"]
    assert columns.index("metrics.`distance`") < columns.index("metrics.`std/distance`")
    assert tags["mlflow.note.content"].startswith("Three clients.")
    assert all(key in tags["mlflow.note.content"] for _, key in views.saved(tags))


def test_with_a_network_a_view_has_bytes_as_a_clock() -> None:
    (*before, charts), sections = (
        state(views.view([LOSS], "phones", more_clocks=[Clock.BYTES]).value)[f"compareRun{part}"]
        for part in ("Charts", "Sections")
    )
    assert len(before) == 2
    assert charts["selectedXAxisMetricKey"] == "clock/bytes"
    assert [section["columns"] for section in sections] == [2]


@pytest.mark.parametrize("scenario", ["it's", 'a "quoted" one', "20 % × 10 [local 0.1]", "back`tick"])
def test_a_view_finds_scenarios_of_any_name(store: Store, scenario: str) -> None:
    client = MlflowClient(store.tracking_uri)
    experiment = client.create_experiment("any")
    for label in (scenario, "another"):
        client.create_run(experiment, tags={"asyncfl.kind": "group", "asyncfl.scenario": label})
    (found,) = client.search_runs([experiment], state(views.view([LOSS], scenario).value)["searchFilter"])
    assert found.data.tags["asyncfl.scenario"] == scenario


def test_the_report_page_is_kept_beside_its_runs(tmp_path: Path, store: Store) -> None:
    deliver(tmp_path, store)
    page = tmp_path / "small.html"
    for text in ("first", "second"):
        page.write_text(text)
        assert keep_page(store, "small", page) == ""
    (kept,) = runs(store, kind="report", view=ViewType.ALL)
    path = MlflowClient(store.tracking_uri).download_artifacts(kept.info.run_id, "small.html")
    assert Path(path).read_text() == "second"
    note = experiment_tags(store)["mlflow.note.content"]
    assert f"runs/{kept.info.run_id}/artifacts/small.html" in note
    deliver(tmp_path, store)
    assert experiment_tags(store)["mlflow.note.content"] == note
    found = load_report(store.tracking_uri, "small")
    assert len(found.runs) == 4 and len(found.pooled) == 2 and found.description == "Three clients."


def test_the_view_of_single_runs_has_columns_that_runs_have(tmp_path: Path, copy: Store) -> None:
    """Runs that others replaced, of another budget, are not among them."""
    store = copy
    deliver(tmp_path, store, updates=30)
    tags = experiment_tags(store)
    page = state(tags[views.TAG_PREFIX + dict(views.saved(tags))["Single runs"]])
    client = MlflowClient(store.tracking_uri)
    found = client.search_runs(
        [one.experiment_id for one in client.search_experiments()], page["searchFilter"]
    )
    assert len(found) == 4 and {run.data.params["budget.updates"] for run in found} == {"30"}
    for run in found:
        for column in page["selectedColumns"]:
            table, _, name = column.partition(".")
            assert name.strip("`") in getattr(run.data, table), column


WITHOUT = {Total.STALENESS_MAX: 4.0}
CURVE = pd.DataFrame({"loss": [0.5]})


@pytest.mark.parametrize("count", [Total.NON_FINITE, Total.MISREAD])
def test_counts_that_are_recorded_above_zero_alone_are_zero_elsewhere(count: Total) -> None:
    seeds = [{**WITHOUT, count: 3.0}, WITHOUT]
    for both in (seeds, seeds[::-1]):
        assert dict(spread(both, CURVE)) == {Total.STALENESS_MAX: 4.0, count: 1.5}


def test_what_a_seed_lacks_otherwise_has_no_mean() -> None:
    seeds = [{**WITHOUT, "diagnostics/x": 1.0}, WITHOUT]
    for some in (seeds, seeds[::-1], [WITHOUT, WITHOUT]):
        assert dict(spread(some, CURVE)) == WITHOUT


# -- runs whose suite has other labels now ------------------------------------------------------------


def relabelled(folder: Path, labels: dict[str, str]) -> dict[str, Place]:
    """The places of the small suite with other labels of strategies."""
    return {
        key: (scenario, labels[strategy], trial, seed)
        for key, (scenario, strategy, trial, seed) in places(small(folder)).items()
    }


def strategies(store: Store, kind: str) -> list[str]:
    return sorted(run.data.tags["asyncfl.strategy"] for run in runs(store, kind=kind))


def test_renaming_that_was_interrupted_is_completed(
    tmp_path: Path, copy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, wanted = copy, relabelled(tmp_path, {"FedBuff": "mine", "ASGD": "theirs"})
    rename, calls = MlflowClient.update_run, []

    def failing(client: MlflowClient, run: str, *args: str, **names: str) -> None:
        calls.append(run)
        if len(calls) == 3:
            raise MlflowException("the disk is away")
        rename(client, run, *args, **names)

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "update_run", failing)
        with pytest.raises(MlflowException, match="the disk is away"):
            Tracking(store).select("small", wanted)
    Tracking(store).select("small", wanted)
    assert strategies(store, "run") == ["mine", "mine", "theirs", "theirs"]
    assert strategies(store, "group") == ["mine", "theirs"]


def test_a_renamed_scenario_leaves_no_view_behind(tmp_path: Path, copy: Store) -> None:
    store = copy
    shown = {title for title, _ in pages(store.tracking_uri, "small")}
    there = places(small(tmp_path))
    (scenario,) = {place[0] for place in there.values()}
    wanted = {key: ("fleet", *place[1:]) for key, place in there.items()}
    Tracking(store).select("small", wanted)
    assert scenario in shown
    assert {title for title, _ in pages(store.tracking_uri, "small")} == shown - {scenario} | {"fleet"}


def test_labels_changed_by_hand_are_corrected(tmp_path: Path, copy: Store) -> None:
    """Seeds, too: comparisons pair runs by them."""
    store, wanted = copy, places(small(tmp_path))
    changed = runs(store)[0].info.run_id
    for tag, text in ((Tag.STRATEGY, "mine"), (Tag.SEED, "7")):
        MlflowClient(store.tracking_uri).set_tag(changed, tag, text)
    Tracking(store).select("small", wanted)
    found = [(run.data.tags, run.data.tags["asyncfl.key"]) for run in runs(store)]
    labels = (Tag.SCENARIO, Tag.STRATEGY, Tag.SEED)
    places_now = {key: tuple(tags[label] for label in labels) for tags, key in found}
    assert places_now == {
        key: (scenario, strategy, seed) for key, (scenario, strategy, _, seed) in wanted.items()
    }


def test_labels_may_be_swapped(tmp_path: Path, copy: Store) -> None:
    store, wanted = copy, relabelled(tmp_path, {"FedBuff": "ASGD", "ASGD": "FedBuff"})
    means = {run.data.tags["asyncfl.strategy"]: run.data.metrics for run in runs(store, kind="group")}
    Tracking(store).select("small", wanted)
    swapped = {run.data.tags["asyncfl.strategy"]: run.data.metrics for run in runs(store, kind="group")}
    assert swapped == {"FedBuff": means["ASGD"], "ASGD": means["FedBuff"]}
    for group in runs(store, kind="group"):
        seeds = [run for run in runs(store) if run.data.tags["mlflow.parentRunId"] == group.info.run_id]
        assert len(seeds) == 2
        assert {run.data.tags["asyncfl.strategy"] for run in seeds} == {group.data.tags["asyncfl.strategy"]}
