"""Runs whose suite has other labels now: all are renamed at once, and so are their groups."""

from pathlib import Path

import pytest
from in_process import deliver, places, small
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from recorded import runs

from benchmarks.commands.ui import pages
from benchmarks.tracking.run_result import Place
from benchmarks.tracking.store import Store
from benchmarks.tracking.tracking import Tracking
from fl_core.schema import Tag


def relabelled(folder: Path, store: Store, labels: dict[str, str]) -> dict[str, Place]:
    """Deliver a small suite; return its places with other labels of strategies."""
    deliver(folder, store, seeds=2)
    return {
        key: (scenario, labels[strategy], trial, seed)
        for key, (scenario, strategy, trial, seed) in places(small(folder, seeds=2)).items()
    }


def strategies(store: Store, kind: str = "run") -> list[str]:
    return sorted(run.data.tags["asyncfl.strategy"] for run in runs(store, kind=kind))


def test_renaming_that_was_interrupted_is_completed(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = relabelled(tmp_path, store, {"FedBuff": "mine", "ASGD": "theirs"})
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
    assert strategies(store) == ["mine", "mine", "theirs", "theirs"]
    assert strategies(store, "group") == ["mine", "theirs"]


def test_a_renamed_scenario_leaves_no_view_behind(tmp_path: Path, store: Store) -> None:
    deliver(tmp_path, store, seeds=2)
    shown = {title for title, _ in pages(store.tracking_uri, "small")}
    (scenario,) = {place[0] for place in places(small(tmp_path, seeds=2)).values()}
    wanted = {key: ("fleet", *place[1:]) for key, place in places(small(tmp_path, seeds=2)).items()}
    Tracking(store).select("small", wanted)
    assert scenario in shown
    assert {title for title, _ in pages(store.tracking_uri, "small")} == shown - {scenario} | {"fleet"}


def test_labels_changed_by_hand_are_corrected(tmp_path: Path, store: Store) -> None:
    """Seeds, too: comparisons pair runs by them."""
    deliver(tmp_path, store, seeds=2)
    wanted = places(small(tmp_path, seeds=2))
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


def test_labels_may_be_swapped(tmp_path: Path, store: Store) -> None:
    wanted = relabelled(tmp_path, store, {"FedBuff": "ASGD", "ASGD": "FedBuff"})
    means = {run.data.tags["asyncfl.strategy"]: run.data.metrics for run in runs(store, kind="group")}
    Tracking(store).select("small", wanted)
    swapped = {run.data.tags["asyncfl.strategy"]: run.data.metrics for run in runs(store, kind="group")}
    assert swapped == {"FedBuff": means["ASGD"], "ASGD": means["FedBuff"]}
    for group in runs(store, kind="group"):
        seeds = [run for run in runs(store) if run.data.tags["mlflow.parentRunId"] == group.info.run_id]
        assert len(seeds) == 2
        assert {run.data.tags["asyncfl.strategy"] for run in seeds} == {group.data.tags["asyncfl.strategy"]}
