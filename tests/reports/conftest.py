"""One MLflow store for all tests that read one."""

from __future__ import annotations

import pytest
from synthetic import POOLED, Fake, baseline, curve, write_store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a store with the suites 'two' (two strategies, three seeds) and 'empty'."""
    folder = tmp_path_factory.mktemp("store")
    uri = f"sqlite:///{folder}/mlflow.db"
    fakes = [
        Fake(strategy=strategy, seed=seed, curve=curve([0.1, 0.5, final], [0, 10, 20]))
        for strategy, finals in (("FedBuff", (0.9, 0.8, 0.85)), ("ACE", (0.7, 0.75, 0.8)))
        for seed, final in enumerate(finals)
    ]
    pooled = [*POOLED, baseline("another problem", 0, {"test/accuracy": 0.5})]
    write_store(uri, (folder / "two").as_uri(), "two", fakes, pooled)
    write_store(uri, (folder / "empty").as_uri(), "empty", [])
    return uri
