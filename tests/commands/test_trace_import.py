"""Logs of jobs in columns of all kinds: what is read, what is left out, which absences are inferred."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks import trace_import as logs
from benchmarks.commands import advise, trace
from benchmarks.errors import UserError
from benchmarks.trace_import import Columns
from benchmarks.yaml_io import read as read_yaml
from fl_core.timing import traces

LOG = """device;began;ended;state
b;2026-01-01 00:00:10;2026-01-01 00:00:12.5;OK
a;2026-01-01T00:00:00Z;2026-01-01T00:00:03Z;ok
b;2026-01-01 00:00:00;2026-01-01 00:00:04;ok
a;2026-01-01 00:00:05;2026-01-01 00:00:06;lost
;2026-01-01 00:00:05;2026-01-01 00:00:06;ok
a;2026-01-01 00:00:07;;ok
a;2026-01-01 00:00:09;2026-01-01 00:00:08;ok
"""
COLUMNS = Columns("device", start="began", end="ended", status="state")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(LOG)
    return path


def test_jobs_are_in_order_of_time_and_what_is_left_out_is_counted(log: Path, tmp_path: Path) -> None:
    """By hand; the trace is what the law of durations reads."""
    found = logs.read(log, COLUMNS)
    assert (found.rows, found.clients, found.seconds) == (7, 2, True)
    assert dict(found.left_out) == {
        "without a client": 1,
        "without a time that can be read": 1,
        "that did not finish": 1,
        "with a length of 0 or less": 1,
    }
    found.save(tmp_path / "trace.csv")
    assert (tmp_path / "trace.csv").read_text() == "client,seconds\na,3\nb,4\nb,2.5\n"
    digest = traces.digest(tmp_path / "trace.csv")
    assert traces.read(tmp_path / "trace.csv", digest, 2) == ((3,), (4, Fraction(5, 2)))
    assert traces.time_unit(tmp_path / "trace.csv", digest) == "seconds"


def test_parquet_and_numbers_are_read_as_csv_and_dates_are(log: Path, tmp_path: Path) -> None:
    expected = logs.read(log, COLUMNS)
    table = pd.read_csv(log, sep=";")
    for name in ("began", "ended"):
        table[name] = pd.to_datetime(table[name], utc=True, format="ISO8601")
    table.to_parquet(tmp_path / "dates")
    table["length"] = table["ended"] - table["began"]
    table.to_parquet(tmp_path / "lengths")
    for name in ("began", "ended"):
        table[name] = (table[name] - pd.Timestamp("2026-01-01", tz="UTC")).dt.total_seconds()
    table.to_csv(tmp_path / "numbers", index=False)
    of_length = Columns("device", start="began", duration="length", status="state")
    for path, columns in (("dates", COLUMNS), ("numbers", COLUMNS), ("lengths", of_length)):
        found = logs.read(tmp_path / path, columns)
        pd.testing.assert_frame_equal(found.jobs, expected.jobs)
        assert found.left_out == expected.left_out and found.absences == expected.absences


@pytest.mark.parametrize("in_a_second", [1, 10**9])
def test_dates_beside_times_since_1970(log: Path, in_a_second: int) -> None:
    """Seconds to nanoseconds, whichever the numbers are; other numbers beside dates are refused."""
    expected = logs.read(log, COLUMNS)
    table = pd.read_csv(log, sep=";")
    since = pd.to_datetime(table["ended"], utc=True, format="ISO8601") - pd.Timestamp(0, tz="UTC")
    table["ended"] = since.dt.total_seconds() * in_a_second
    table.to_csv(log, index=False)
    pd.testing.assert_frame_equal(logs.read(log, COLUMNS).jobs, expected.jobs)
    table["ended"] = 5 * table.index
    table.to_csv(log, index=False)
    with pytest.raises(UserError, match="column 'ended'"):
        logs.read(log, COLUMNS)


def test_time_zones_on_one_side_are_refused_and_one_number_makes_no_dates_unreadable(log: Path) -> None:
    """Both would be wrong in silence: lengths by hours, and all rows left out for a 0 in one."""
    log.write_text(LOG.replace("2026-01-01T00:00:03Z", "2026-01-01T00:00:03"))
    with pytest.raises(UserError, match=r"'began' .*'ended'"):
        logs.read(log, COLUMNS)
    table = pd.read_csv(log, sep=";").head(1)
    table["began"] = pd.to_datetime(table["began"], utc=True)
    table["ended"] = pd.to_datetime(table["ended"])
    table.to_parquet(log)
    with pytest.raises(UserError, match=r"'began' .*'ended'"):
        logs.read(log, COLUMNS)
    log.write_text(LOG.replace("00:00:07;;", "00:00:07Z;0;"))
    assert logs.read(log, COLUMNS).left_out["without a time that can be read"] == 1


def spells(mean_on: float, mean_off: float, rng: np.random.Generator) -> tuple[pd.DataFrame, list[float]]:
    """Twenty clients with exponential jobs and pauses of mean 1, that come and go; and their absences."""
    rows, absences = [], []
    for client in range(20):
        time, leaves = 0.0, rng.exponential(mean_on)
        while True:
            rows.append((client, time, length := rng.exponential()))
            time += length + rng.exponential()
            away = rng.exponential(mean_off) if time > leaves else 0.0
            if time + away > 2000:
                break
            if away:
                absences.append(away)
                time += away
                leaves = time + rng.exponential(mean_on)
    return pd.DataFrame(rows, columns=["client", "start", "length"]), absences


def test_absences_are_inferred_and_pauses_are_none(tmp_path: Path) -> None:
    """Those that made the log, but for a few short ones; exponential pauses between jobs are none."""
    rng, columns = np.random.default_rng(0), Columns("client", start="start", duration="length")
    path = tmp_path / "log.csv"
    table, away = spells(200, 200, rng)
    table.to_csv(path, index=False)
    absences = logs.read(path, columns).absences
    assert absences is not None and absences.law is not None
    assert absences.long == pytest.approx(len(away), rel=0.15)
    assert absences.long * absences.mean_off == pytest.approx(sum(away), rel=0.05)
    observed = absences.long * (absences.mean_on + absences.mean_off)
    ends = (table["start"] + table["length"]).groupby(table["client"])
    assert observed == pytest.approx(ends.max().sum() - table.groupby("client")["start"].min().sum())
    wider = logs.read(path, columns, gap=1e6).absences
    assert wider is not None and wider.long == 0 and wider.law is None
    spells(1e9, 1, rng)[0].to_csv(path, index=False)
    absences = logs.read(path, columns).absences
    assert absences is not None and absences.law is None
    assert logs.read(path, Columns("client", duration="length")).absences is None


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (Columns("devise", duration="began"), "'devise'"),
        (Columns("device", duration="state"), "'state'"),
        (Columns("device", start="began", end="ended", status="device"), "'b', 'a'"),  # no word for done
    ],
)
def test_mistakes_are_one_line(log: Path, columns: Columns, named: str) -> None:
    with pytest.raises(UserError, match=r"^\S+jobs\.csv: ") as caught:
        logs.read(log, columns)
    assert len(caught.value.lines) == 1 and named in str(caught.value)


def test_words_for_a_finished_job_may_be_given(log: Path) -> None:
    columns = Columns("device", start="began", end="ended", status="state", done=("lost", "x"))
    assert len(logs.read(log, columns).jobs) == 1


def test_an_infinite_length_is_none(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("who,took\na,inf\na,2\n")
    found = logs.read(tmp_path / "log.csv", Columns("who", duration="took"))
    assert dict(found.left_out) == {"without a time that can be read": 1} and found.jobs[
        "length"
    ].tolist() == [2]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"PAR1 and no more", b"a,b\n1,2,3\n", b"a\n"])
def test_what_is_no_log(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(UserError):
        logs.read(path, Columns("a", duration="a"))
    with pytest.raises(UserError, match="cannot be read"):
        logs.read(tmp_path / "none", Columns("a", duration="a"))


def test_the_command_shows_what_it_found_and_how_a_suite_uses_it(log: Path) -> None:
    words = ["import", str(log), "--client", "device", "--start", "began", "--end", "ended"]
    done = CliRunner().invoke(trace.command, [*words, "--status", "state"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "7 rows, 3 jobs of 2 clients" in done.output and "1 row that did not finish" in done.output
    made = log.with_name("suite.yaml")
    made.write_text(done.output.partition("In a suite:\n")[2])
    durations = {"name": "trace", "path": str(log.with_name("jobs-trace.csv")), "clients": "random"}
    assert read_yaml(made) == {"problem": {"clients": 2}, "timing": {"durations": durations}}
    assert "</svg>" in log.with_name("jobs-trace.svg").read_text()
    same = CliRunner().invoke(trace.command, [*words, "--status", "state"], catch_exceptions=False)
    assert same.output == done.output  # it may be repeated
    kept = log.with_name("jobs-trace.csv").read_text()
    for wrong, said in (
        (words, "another file of this name exists. Delete it, or choose another with --out"),
        (words[:4], "name the columns with the times"),
        (words[:2], r"jobs\.csv has: device, began, ended"),
        ([*words, "--done", "ok"], "--done needs --status COL"),
    ):
        with pytest.raises(UserError, match=said):
            CliRunner().invoke(trace.command, wrong, catch_exceptions=False)
    assert log.with_name("jobs-trace.csv").read_text() == kept
    log.with_name("other.svg").write_text("of the user's own")
    with pytest.raises(UserError, match=r"other\.svg"):
        CliRunner().invoke(
            trace.command, [*words, "--out", str(log.with_name("other.csv"))], catch_exceptions=False
        )
    assert not log.with_name("other.csv").exists()


def test_advice_takes_a_log(log: Path, tmp_path: Path) -> None:
    """Shown first; the suite has its durations and absences."""
    out = tmp_path / "mine.yaml"
    columns = ("--client", "device", "--start", "began", "--end", "ended")
    words = ["--trace", str(log), *columns, "--out", str(out)]
    done = CliRunner().invoke(advise.command, [*words, "--gap", "2"], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.output.index("4 jobs of 2 clients") < done.output.index("Ratio")
    suite = read_yaml(out)
    assert suite["name"] == "mine" and suite["problem"]["clients"] == 2
    assert suite["timing"]["durations"]["path"] == str(tmp_path / "mine-trace.csv")
    presence = tmp_path / "mine-presence.csv"
    assert suite["timing"]["availability"] == {"name": "trace", "path": str(presence), "clients": "random"}
    with pytest.raises(UserError, match="--trace is missing: name the log"):
        CliRunner().invoke(advise.command, ["--client", "x", "--out", "y"], catch_exceptions=False)
