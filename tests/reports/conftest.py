"""One MLflow store for all tests that read one, and one browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic import POOLED, Fake, curve, write_store

from reports.records.records import Pooled

CHROMIUM = Path("/usr/bin/chromium")
NOTHING_EXTRA = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


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
    pooled = [*POOLED, Pooled("another problem", 0, {"test/accuracy": 0.5})]
    write_store(uri, (folder / "two").as_uri(), "two", fakes, pooled)
    write_store(uri, (folder / "empty").as_uri(), "empty", [])
    return uri


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    if not CHROMIUM.is_file():
        pytest.skip(f"no browser: {CHROMIUM} is not there")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=str(CHROMIUM), args=NOTHING_EXTRA)
        yield opened
        opened.close()
