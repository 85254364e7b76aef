"""A fleet from its log to the page: ids, links, nights and sizes of messages, end to end."""

from __future__ import annotations

import base64
import gzip
import io
import random
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

import asyncfl
from benchmarks.commands import trace
from benchmarks.trace_import import Columns, read
from fl_core.scenario import Timing
from fl_core.timing.availability import checked

DEVICES, DAYS, HOUR = 12, 4, 3600
DEVICE_SECONDS = {f"dev-{number:02}": 60.0 * (1 + number) for number in range(DEVICES)}  # of a job


def fleet_log() -> pd.DataFrame:
    """Jobs of all devices one after the other from 8 to 20 o'clock, four days long; rows shuffled."""
    start = pd.Timestamp("2026-03-02")
    rows = []
    for device, seconds in DEVICE_SECONDS.items():
        for day in range(DAYS):
            at = start + pd.Timedelta(days=day, hours=8)
            while at < start + pd.Timedelta(days=day, hours=20):
                rows.append((device, at, at + pd.Timedelta(seconds=seconds)))
                at += pd.Timedelta(seconds=seconds + 5)
    return pd.DataFrame(rows, columns=["device", "began", "ended"]).sample(frac=1, random_state=0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the log, and links in another order of ids: device k has (k + 1) / 2 Mbit/s."""
    fleet_log().to_csv(tmp_path / "jobs.csv", index=False)
    ids = list(DEVICE_SECONDS)
    random.Random(5).shuffle(ids)
    links = pd.DataFrame({"id": ids, "up": [(int(name[-2:]) + 1) / 2 for name in ids]})
    links.to_csv(tmp_path / "links.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported_suite(folder: Path) -> Path:
    """Return a suite with the timing that `asyncfl trace import` prints, links, and a model of 1 MB."""
    words = ["jobs.csv", "--client", "device", "--start", "began", "--end", "ended"]
    done = CliRunner().invoke(trace.command, ["import", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    timing = yaml.safe_load(done.output.partition("In a suite:")[2])["timing"]
    uplink = {"name": "column", "path": "links.csv", "column": "up", "client": "id"}
    suite = {
        "name": "fleet",
        "problem": {"name": "digits", "clients": 8},
        "timing": timing | {"network": {"uplink": uplink, "message": "1 MB"}},
        "budget": {"time": 2 * 24 * HOUR},
        "strategies": ["fedbuff", "asgd"],
        "lr": 0.01,
        "seeds": 2,
    }
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(suite))
    return path


def test_nights_are_common_to_all_devices(folder: Path) -> None:
    """By the written presence all are there at noon of each day and none at midnight."""
    timing = Timing.model_validate(yaml.safe_load(imported_suite(folder).read_text())["timing"])
    for client in range(DEVICES):
        away = []
        for leaves, returns in checked(timing.availability, client, DEVICES, 0, timing.ids(DEVICES, 0)):
            away.append((float(leaves), float(returns or 1e9)))
            if leaves > DAYS * 24 * HOUR:
                break
        for day in range(DAYS - 1):  # times count from the first job, at 8 o'clock
            noon, midnight = (day * 24 + 4) * HOUR, (day * 24 + 16) * HOUR
            assert not any(leaves <= noon < returns for leaves, returns in away)
            assert any(leaves <= midnight < returns for leaves, returns in away)


def test_presence_of_failed_jobs_and_of_single_jobs(tmp_path: Path) -> None:
    """By hand: `a` is there in two spells, of which a job that failed makes the first longer."""
    path = tmp_path / "log.csv"
    path.write_text(
        "who,from,took,state\n"
        "a,100,2,ok\na,103,2,ok\na,106,4,failed\na,500,2,ok\na,503,2,ok\nb,200,5,ok\nc,300,5,failed\n"
    )
    absences = read(path, Columns("who", "from", duration="took", status="state"), gap=50).absences
    assert absences is not None
    assert absences.presence.to_numpy().tolist() == [
        ["a", 0, 10, 405],
        ["a", 400, 405, 405],
        ["b", 100, 105, 405],
    ]


@pytest.mark.slow
def test_results_are_read_by_the_ids_of_devices(folder: Path) -> None:
    """Speeds and upload times of each device, in a run of eight that are drawn, fit its own log and link."""
    store = str(folder / "store")
    runs = asyncfl.run(str(imported_suite(folder)), store=store)
    assert (runs["transfer_share"] > 0.01).all()
    by_run = [table for _, table in asyncfl.clients("fleet", store=store).groupby(["strategy", "seed"])]
    assert len(by_run) == 4
    for table in by_run:
        assert len(table) == 8 and table["device"].isin(DEVICE_SECONDS).all()
        for row in table.itertuples():
            link_seconds = 8e6 / ((int(row.device[-2:]) + 1) / 2 * 1e6)
            assert row.mean_time == pytest.approx(DEVICE_SECONDS[row.device] + link_seconds)
    devices = [frozenset(table["device"]) for table in by_run]
    assert len(set(devices)) == 2  # each seed draws its own
    page = asyncfl.report("fleet", store=store).read_text()
    (link,) = (tag for tag in re.findall("<a [^>]*>", page) if "fleet-clients.csv" in tag)
    (data,) = re.findall('base64,([^"]*)', link)
    text = base64.b64decode(data)
    listed = pd.read_csv(io.BytesIO(gzip.decompress(text) if "csv.gz" in link else text))
    pd.testing.assert_frame_equal(listed, asyncfl.clients("fleet", store=store), check_dtype=False)
