"""Runs in MLflow: SQL and MLflow's client read the same from a file, and a server says the same of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from math import inf, nan

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric
from patience import PATIENCE
from synthetic import POOLED, START, Fake, curve, write_store

from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.reader import ClientReader, opened
from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.mlflow_store.store import Store
from fl_core.recorded_names import Tag

FAKES = [
    Fake("s", strategy, seed, curve=curve([0.1, 0.5 + seed / 10], [0, 10]), totals={"staleness/mean": 1.5})
    for strategy in ("ACE", "FedBuff")
    for seed in range(3)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Six runs of two strategies, of which one has values that are no usual numbers, and a deleted one."""
    there = Store(tmp_path_factory.mktemp("store"))
    write_store(there.tracking_uri, there.artifacts.as_uri(), "two", FAKES, POOLED)
    client = MlflowClient(there.tracking_uri)
    experiment = client.get_experiment_by_name("two").experiment_id
    odd = client.search_runs([experiment], f"tags.`{Tag.KIND}` = 'run'")[0].info.run_id
    values = [("staleness/max", nan), ("bytes", inf), ("time", 0.1 + 0.2), ("staleness/mean", -1e-300)]
    client.log_batch(odd, [Metric(name, value, START + 9, 4) for name, value in values])
    client.set_tag(odd, "mine", "ä\n")
    client.delete_run(client.create_run(experiment).info.run_id)
    client.create_run(experiment, START)  # is running, and has nothing
    return there


def test_the_client_reads_the_same_runs(store: Store) -> None:
    by_client = ClientReader(database.client(store.tracking_uri))
    with opened(store.tracking_uri) as by_sql:
        assert by_sql.experiments() == by_client.experiments()
        experiment = by_sql.experiments()["two"].id
        results = by_client.results(experiment)
        assert len(results) == len(FAKES) + len(POOLED) + 2 + 1
        chosen = [result.run_id for result in results[::2]]
        for tags in (None, [Tag.KEY, Tag.SEED]):
            for ids in ([], chosen):
                ours, theirs = (one.results(experiment, ids, tags) for one in (by_sql, by_client))
                assert len(ours) == len(ids or results)
                assert list(map(repr, map(in_order, ours))) == list(map(repr, map(in_order, theirs)))


def read(store: Store) -> list[str]:
    """All runs of the suite."""
    with opened(store.tracking_uri) as reader:
        return [repr(in_order(result)) for result in reader.results(reader.experiments()["two"].id)]


def in_order(result: RunResult) -> tuple[object, ...]:
    """The fields of a result, the contents of its tables sorted; NaN is equal to NaN in its text."""
    tables = [sorted(table.items()) for table in (result.tags, result.params, result.metrics)]
    times = result.start_time, result.end_time
    return (result.run_id, result.experiment_id, result.state, *times, result.artifact_uri, *tables)


@pytest.fixture
def server(store: Store) -> Iterator[Store]:
    """The same database behind `mlflow server`."""
    from mlflow_server import MlflowServer

    running = MlflowServer(store.tracking_uri, store.artifacts)
    try:
        running.start()
        yield Store(store.folder, running.uri)
    finally:
        running.kill()


@pytest.mark.slow
@pytest.mark.timeout(4 * PATIENCE)
def test_a_server_says_the_same(store: Store, server: Store) -> None:
    assert read(store) == read(server)


def test_a_file_of_other_tables_is_read_through_the_client(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read(store)
    with closing(sqlite3.connect(store.database)) as opened_file, opened_file:
        opened_file.execute("ALTER TABLE experiment_tags RENAME COLUMN value TO content")
    with pytest.raises(Exception, match="experiment_tags"):
        read(store)
    assert "MLflow's table 'experiment_tags' has no column 'value'" in capsys.readouterr().err
    with closing(sqlite3.connect(store.database)) as opened_file, opened_file:
        opened_file.execute("ALTER TABLE experiment_tags RENAME COLUMN content TO value")
    assert read(store) == before
