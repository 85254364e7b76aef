"""A store that is moved or copied keeps its files; what is lost is named, and takes no page with it."""

import shutil
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from in_process import deliver
from markupsafe import Markup
from recorded import computed, runs, write_suite

from benchmarks.commands.group import asyncfl
from benchmarks.mlflow_store.artifact_locations import are_lost, place
from benchmarks.mlflow_store.store import Store
from reports.figures.svg import Drawing
from reports.gate.baseline import schedule
from reports.records.suite_reader import load as load_report
from tests.databases import new_store

CURVE = "curve.parquet"


def report(store: Store) -> tuple[int, str, str]:
    """Exit code, output and errors of `asyncfl report`, which leaves the figures of the page empty."""
    with patch.object(Drawing, "__html__", lambda _: Markup("<svg></svg>")):
        done = CliRunner().invoke(asyncfl, ["report", "small", "--store", str(store.folder)])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def _whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of tests have long names."""
    monkeypatch.setattr("benchmarks.errors.MAX_MESSAGE_CHARACTERS", 1000)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with two strategies and two seeds, of which a copy is kept beside its folder; it is gone."""
    folder = tmp_path_factory.mktemp("first")
    store = new_store(folder / "results")
    deliver(folder, store, seeds=2)
    assert report(store)[0] == 0
    store.folder.rename(folder / "kept")
    return store


@pytest.fixture
def moved(tmp_path: Path, first: Store) -> Store:
    """The store, moved after its page was written."""
    folder = tmp_path / "elsewhere" / "moved results"
    return Store(Path(shutil.copytree(first.folder.with_name("kept"), folder)))


def test_a_moved_store_gives_the_same_report(first: Store, moved: Store) -> None:
    page = moved.reports / "small.html"
    before = page.read_text()
    code, shown, errors = report(moved)
    assert code == 0 and "unfinished" not in shown and not errors
    assert page.read_text() == before.replace(str(first.folder), str(moved.folder))
    found = load_report(moved.tracking_uri, "small")
    assert not found.unread and found.shown == 4
    assert len(found.runs) == 4 and all(schedule(run, moved.tracking_uri) for run in found.runs)


def test_a_moved_store_that_can_only_be_read_is_reported(moved: Store) -> None:
    moved.database.chmod(0o444)
    assert load_report(moved.tracking_uri, "small").shown == 4


def test_more_seeds_of_a_moved_store_lie_beside_the_first(tmp_path: Path, first: Store, moved: Store) -> None:
    deliver(tmp_path, moved, seeds=3)
    assert not first.folder.exists()
    assert len(runs(moved)) == 6
    assert len(list(moved.artifacts.glob(f"small/*/artifacts/{CURVE}"))) == 6
    assert report(moved)[0] == 0 and load_report(moved.tracking_uri, "small").shown == 6
    assert {group.data.metrics["seeds/done"] for group in runs(moved, kind="group")} == {3}


def test_a_copy_is_a_store_of_its_own(tmp_path: Path, store: Store) -> None:
    deliver(tmp_path, store, seeds=1)
    copy = Store(tmp_path / "copy")
    shutil.copytree(store.folder, copy.folder)
    for run in runs(copy):
        assert place(run.info.artifact_uri, copy.tracking_uri) == copy.artifacts.joinpath(
            "small", run.info.run_id, "artifacts"
        )
    deliver(tmp_path, copy, seeds=2)
    assert len(list(store.artifacts.glob(f"*/*/artifacts/{CURVE}"))) == 2
    assert len(list(copy.artifacts.glob(f"*/*/artifacts/{CURVE}"))) == 4


def test_a_poorer_page_never_replaces_a_fuller_one(moved: Store) -> None:
    page = moved.reports / "small.html"
    before = page.read_text()
    lost = next(run for run in runs(moved) if run.info.run_name == "seed 1 · ASGD")
    folder = place(lost.info.artifact_uri, moved.tracking_uri)
    assert folder is not None
    (folder / CURVE).unlink()
    code, shown, errors = report(moved)
    assert code == 1 and page.read_text() == before
    assert "2 (1 unreadable)" in shown and "unfinished" not in shown
    assert "1 of 4 runs cannot be read, such as ASGD · quadratic · F80 · seed 1" in errors
    assert f"{CURVE}: no such file in " in errors and lost.info.run_id in errors
    poorer = moved.reports / "small-incomplete.html"
    assert f"/{poorer.name}\n" in errors and "Runs with files that cannot be read: 1;" in poorer.read_text()
    page.unlink()
    assert report(moved)[0] == 0 and page.exists()  # nothing is lost by writing it


def test_a_page_of_an_earlier_version_counts_as_whole(moved: Store) -> None:
    page = moved.reports / "small.html"
    page.write_text("<p>4 runs</p>")
    shutil.rmtree(next(moved.artifacts.glob(f"small/*/artifacts/{CURVE}")).parent)
    code, _, errors = report(moved)
    assert code == 1 and page.read_text() == "<p>4 runs</p>"
    assert f"no such file in {moved.artifacts}" in errors  # where it should be, not where it once was


def test_runs_whose_files_are_gone_are_made_again(
    tmp_path: Path, moved: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {run.info.run_id for run in runs(moved)}
    lost = sorted(moved.artifacts.glob(f"small/*/artifacts/{CURVE}"))[:2]
    lost[0].unlink()
    shutil.rmtree(lost[1].parents[1])
    capsys.readouterr()
    deliver(tmp_path, moved, seeds=2)
    warning = "Warning: 2 finished runs of small lost files, such as those in "
    assert capsys.readouterr().err.startswith(f"{warning}{moved.artifacts}")
    there = {run.info.run_id for run in runs(moved)}
    assert len(there) == 4 and before - there == {path.parents[1].name for path in lost}
    curves = {
        run.data.tags["asyncfl.key"]: pq.read_table(
            moved.artifacts / "small" / run.info.run_id / "artifacts" / CURVE
        ).to_pydict()
        for run in runs(moved)
    }
    assert curves == {key: curve for key, (_, curve, *_) in computed(write_suite(tmp_path)).items()}
    assert len(runs(moved, kind="group")) == 2
    deliver(tmp_path, moved, seeds=2)
    assert {run.info.run_id for run in runs(moved)} == there and not capsys.readouterr().err


def test_files_that_others_keep_are_not_missed(moved: Store) -> None:
    """The address of another machine's folder, in a database that machines share, or of a bucket."""
    assert are_lost("file:///elsewhere/results", moved.tracking_uri, [CURVE])
    assert not are_lost("file:///elsewhere/results", "postgresql://host/mlflow", [CURVE])
    assert not are_lost("s3://bucket/results", moved.tracking_uri, [CURVE])


def test_a_store_without_any_files_says_how_to_get_them_back(moved: Store) -> None:
    shutil.rmtree(moved.artifacts)
    for words in (("report", "small"), ("compare", "asgd", "fedbuff")):
        done = CliRunner().invoke(asyncfl, [*words, "--store", str(moved.folder)])
        line = "no run of 'small' can be read: its records are damaged or gone; delete them in MLflow"
        assert str(done.exception).startswith(line)


def test_a_store_without_its_database_says_so(
    tmp_path: Path, moved: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    moved.database.unlink()
    done = CliRunner().invoke(asyncfl, ["report", "small", "--store", str(moved.folder)])
    line = f"{moved.folder} has artifacts but no mlflow.db: "
    assert str(done.exception) == f"{line}restore a copy of it, or run the suite again"
    deliver(tmp_path, moved, seeds=1)
    assert f"Warning: {line}all runs are computed again" in capsys.readouterr().err
    assert len(runs(moved)) == 2


def test_a_page_that_cannot_be_written_is_named(moved: Store) -> None:
    shutil.rmtree(moved.reports)
    moved.reports.write_text("a file")
    done = CliRunner().invoke(asyncfl, ["report", "small", "--store", str(moved.folder)])
    line = f"the report page {moved.reports / 'small.html'} cannot be written: "
    assert "Seeds" in done.stdout and str(done.exception).startswith(line)
