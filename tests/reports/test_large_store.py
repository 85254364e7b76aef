"""A real MLflow store of a thousand runs of a hundred evaluations: read, and made a page of at most 15 MB."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic import START, Fake, plausible, tables, write_store

from reports.page import write
from reports.records.store import load

STRATEGIES = ("ACE", "FedAvg", "FedBuff", "FedFix", "Vanilla ASGD")
SCENARIOS = (
    "digits · i.i.d. · F80",
    "digits · i.i.d. · two-speed",
    "digits · Dirichlet 0.1 · F80",
    "digits · Dirichlet 0.1 · two-speed",
)
SEEDS, EVALUATIONS, DIAGNOSED = 50, 100, 40


def fakes() -> list[Fake]:
    """5 strategies × 4 scenarios × 50 seeds, with diagnostics."""
    rng = np.random.default_rng(0)
    terms = ("noise_sq", "bias_sq", "delay_sq", "gradient_sq")
    return [
        plausible(
            strategy,
            scenario,
            seed,
            EVALUATIONS,
            totals={"kept_bytes/server": 2600.0, "kept_bytes/clients": 52000.0, "diagnostics/noise_sq": 1.0},
            diagnostics={
                "iteration": np.arange(DIAGNOSED) * 10,
                **{term: rng.lognormal(0, 1, DIAGNOSED) for term in terms},
            },
        )
        for strategy in STRATEGIES
        for scenario in SCENARIOS
        for seed in range(SEEDS)
    ]


def fill(database: Path, artifacts: Path, made: list[Fake]) -> None:
    """The store as the runner would leave it; by SQL, since MLflow takes minutes for so many runs."""
    write_store(f"sqlite:///{database}", artifacts.as_uri(), "large", made[:1])
    store = sqlite3.connect(database)
    (experiment,) = store.execute("select experiment_id from experiments where name = 'large'").fetchone()
    run_columns = [row[1] for row in store.execute("pragma table_info(runs)")]
    (first,) = store.execute(
        "select run_uuid from tags where key = 'asyncfl.kind' and value = 'run'"
    ).fetchone()
    template = dict(
        zip(
            run_columns,
            store.execute("select * from runs where run_uuid = ?", (first,)).fetchone(),
            strict=True,
        )
    )
    for at, fake in enumerate(made[1:], 1):
        run = f"{at:032x}"
        folder = artifacts / run / "artifacts"
        row = {**template, "run_uuid": run, "experiment_id": experiment, "artifact_uri": folder.as_uri()}
        store.execute(f"insert into runs values ({','.join('?' * len(row))})", tuple(row.values()))
        store.executemany(
            "insert into tags (key, value, run_uuid) values (?, ?, ?)",
            [(key, value, run) for key, value in fake.tags("large").items()],
        )
        store.executemany(
            "insert into params (key, value, run_uuid) values (?, ?, ?)",
            [(key, value, run) for key, value in {**fake.params, "seed": str(fake.seed)}.items()],
        )
        store.executemany(
            "insert into latest_metrics (key, value, timestamp, step, is_nan, run_uuid)"
            " values (?, ?, ?, 0, 0, ?)",
            [(key, value, START, run) for key, value in fake.totals.items()],
        )
        folder.mkdir(parents=True)
        for name, table in tables(fake).items():
            pd.DataFrame(dict(table)).to_parquet(folder / f"{name}.parquet")
    store.commit()
    store.close()


@pytest.mark.slow
def test_a_thousand_runs_in_a_real_store(tmp_path: Path) -> None:
    made = fakes()
    assert len(made) == 1000 and all(fake.curve and len(fake.curve["updates"]) == 101 for fake in made)
    fill(tmp_path / "mlflow.db", tmp_path / "artifacts", made)
    suite = load(f"sqlite:///{tmp_path}/mlflow.db", "large")
    assert len(suite.runs) == 1000 and all(
        run.status.finite and len(run.files.diagnostics["iteration"]) == DIAGNOSED for run in suite.runs
    )
    page = write(suite, tmp_path / "page.html")
    assert page.stat().st_size < 15_000_000
    text = page.read_text(encoding="utf-8")
    assert all(f'id="{part}"' in text for part in ("behind", "target", "errors", "cost"))
