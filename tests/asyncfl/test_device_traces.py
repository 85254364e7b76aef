"""Public traces of phones: made-up files of FedScale's and FLASH's layouts, damaged and malicious ones."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result
from pydantic import ValidationError

from asyncfl.advice import devices
from asyncfl.commands import trace
from benchmarks.errors import UserError
from fl_core.scenario import Timing
from fl_core.timing.availability import Availability
from fl_core.timing.durations import Lengths
from fl_core.timing.network.network import Way

BEHAVIOUR: dict[int, dict[str, Any]] = {
    7: {"duration": 1, "active": [10, 40, 90], "inactive": [30, 60, 120], "finish_time": 100, "model": "A"},
    9: {"duration": 1, "active": [5, 5], "inactive": [5, 6], "finish_time": 50, "model": "B"},
    11: {"duration": 1, "active": [3], "inactive": [3], "finish_time": 50, "model": "never present"},
    12: {"duration": 1, "active": [3, 4], "inactive": [9], "finish_time": 50, "model": "of two lengths"},
}
CAPACITY = {
    1: {"computation": 162.0, "communication": 5648.0},
    2: {"computation": 40.5, "communication": 1e3},
}


def imported(path: Path, *options: str) -> Result:
    return CliRunner().invoke(trace.command, ["import", str(path), *options], catch_exceptions=False)


def test_fedscales_clients_are_present_as_its_rule_says(tmp_path: Path) -> None:
    """Present at t if active[i] ≤ t mod finish_time < inactive[i] for some i."""
    path = tmp_path / "client_behave_trace"
    path.write_bytes(pickle.dumps(BEHAVIOUR))
    said = imported(path).output
    assert "2 clients" in said and "Left out: 2 clients" in said and "present for 26 %" in said
    assert "another file than FedScale's client_behave_trace as published, which has 25,640,150 bytes" in said
    law = Availability.model_validate({"name": "trace", "path": tmp_path / "client_behave_trace-trace.csv"})
    for client, record in enumerate(list(BEHAVIOUR.values())[:2]):
        absences = list(islice(law.absences(client, 2, 0), 30))
        for t in range(300):
            norm = t % record["finish_time"]
            there = any(a <= norm < b for a, b in zip(record["active"], record["inactive"], strict=True))
            away = any(leaves <= t < returns for leaves, returns in absences if returns is not None)
            assert away != there, (client, t)


def test_fedscales_capacities_are_its_rule(tmp_path: Path) -> None:
    """3 · batch · steps · computation / 1000 + (up + down) / communication, sizes in units of 1024 bits."""
    path = tmp_path / "client_device_capacity"
    path.write_bytes(pickle.dumps(CAPACITY | {3: {"computation": 0, "communication": 1}}))
    said = imported(path, "--batch", "20").stdout
    assert "2 jobs of 2 clients" in said and "1 row without two numbers above 0" in said
    timing = Timing.model_validate(yaml.safe_load(said.partition("In a suite:")[2])["timing"])
    assert timing.network is not None
    rates = timing.network.rates(Way.UP, 2, 0)
    assert timing.network.rates(Way.DOWN, 2, 0) == rates
    lengths = Lengths(timing.durations, 2, 0)
    for client, record in enumerate(CAPACITY.values()):
        computed = lengths.clock.time(lengths(client, 0, 5))
        assert computed == pytest.approx(3 * 20 * 5 * record["computation"] / 1000)
        kbits = 2 * 80_000 * 8 / 1024
        sent = 2 * 80_000 * 8 / (float(rates[client]) * 1e6)
        assert sent == pytest.approx(kbits / record["communication"], rel=1e-5)
    with pytest.raises(UserError, match="--batch: give the size"):
        imported(path)
    with pytest.raises(UserError, match=r"--status: .* whose columns are known"):
        imported(path, "--batch", "20", "--status", "state")


@pytest.mark.parametrize("drawn", ["random", "first"])
@pytest.mark.parametrize("n", [50, 200])
def test_every_device_of_a_log_keeps_its_own_uplink(tmp_path: Path, drawn: str, n: int) -> None:
    """Links are in order of ids, the log of time; device k has jobs of length k + 1, and that rate."""
    rng = np.random.default_rng(5)
    order = rng.permutation(200)
    jobs = "".join(f"dev-{k},{time},{time + k + 1}\n" for time, k in enumerate(order.tolist()))
    (tmp_path / "jobs.csv").write_text(f"device,began,ended\n{jobs}")
    rows = "".join(f"dev-{k},{k + 1}\n" for k in sorted(range(200), key=str))
    (tmp_path / "links.csv").write_text(f"device,up\n{rows}dev-without-jobs,7\n")
    said = imported(tmp_path / "jobs.csv", "--client", "device", "--start", "began", "--end", "ended").stdout
    written = yaml.safe_load(said.partition("In a suite:")[2])["timing"]
    links = {"name": "column", "path": str(tmp_path / "links.csv"), "column": "up", "client": "device"}
    durations = written["durations"] | {"clients": drawn}
    timing = Timing.model_validate({"durations": durations, "network": {"uplink": links}})
    assert timing.network is not None
    for seed in range(3):
        assert timing.network.rates(Way.UP, n, seed) == timing.durations.means(n, seed)
    again = Timing.model_validate(timing.model_dump(mode="json"))
    assert again == timing and pickle.loads(pickle.dumps(timing)) == timing
    with pytest.raises(ValidationError, match=r"name the column of .* with the ids of clients"):
        Timing.model_validate({"durations": durations, "network": {"uplink": links | {"client": None}}})
    (tmp_path / "links.csv").write_text(f"device,up\n{rows.replace('dev-17,', 'dev-x,')}")
    timing = Timing.model_validate({"durations": durations, "network": {"uplink": links}})
    assert timing.network is not None
    with pytest.raises(ValueError, match=r"has no row for client 'dev-17' of .*jobs-trace.csv"):
        timing.network.rates(Way.UP, 200, 0)


@pytest.mark.parametrize("seen", ["b,0,5\na,0,5\n", "a,0,5\nc,0,5\n", "a,0,5\n"])
def test_traces_that_name_clients_differently_are_refused(tmp_path: Path, seen: str) -> None:
    """Numbered in order of appearance, b of one file would be a of the other."""
    (tmp_path / "lengths.csv").write_text("a,1\nb,2\na,3\n")
    durations = {"name": "trace", "path": tmp_path / "lengths.csv"}
    presence = {"name": "trace", "path": tmp_path / "seen.csv", "period": 10}
    (tmp_path / "seen.csv").write_text("a,0,5\nb,0,5\n")
    Timing.model_validate({"durations": durations, "availability": presence})
    with pytest.raises(ValidationError, match="only one of them is drawn from"):
        Timing.model_validate({"durations": durations | {"clients": "random"}, "availability": presence})
    (tmp_path / "seen.csv").write_text(seen)
    with pytest.raises(ValidationError, match="name other clients, or the same in another order"):
        Timing.model_validate({"durations": durations, "availability": presence})


@pytest.mark.parametrize(("ids", "said"), [("-1,2", "must not begin with"), ("7,07", "are the same number")])
def test_ids_that_a_trace_cannot_hold_are_refused(tmp_path: Path, ids: str, said: str) -> None:
    (tmp_path / "jobs.csv").write_text("device,took\n" + "".join(f"{one},1\n" for one in ids.split(",")))
    with pytest.raises(UserError, match=said):
        imported(tmp_path / "jobs.csv", "--client", "device", "--duration", "took")


def test_flashs_phones_are_present_while_locked_charging_and_on_wifi(tmp_path: Path) -> None:
    """By hand, in seconds of a record of 100; what is still so at its end is left out, as in FLASH's code."""
    states = [
        *("00:10\tScreen_lock", "00:20\tBATTERY_CHARGED_ON", "00:30\tWifi", "00:45\t4G", "00:50\twifi"),
        *(
            "00:55\t93.0%",
            "01:00\tscreen_on",
            "01:05\tscreen_unlock",
            "01:20\tscreen_lock",
            "01:50\tscreen_on",
        ),
    ]
    text = "\n".join(f"2020-01-02 00:{state}" for state in states)
    record = {"guid": "x", "model": "Redmi Note 8", "messages": text}
    path = tmp_path / "state_traces.json"
    path.write_text(json.dumps({"1": record, "2": {**record, "messages": "yesterday\tWifi"}}))
    assert "1 client\nLeft out: 1 client never present" in imported(path).output
    written = (tmp_path / "state_traces-trace.csv").read_text().split()
    assert written == ["client,from,to,period", "0,30,45,100", "0,50,65,100"]
    later = text.replace("2020-01-02 00:", "2020-01-02 01:")  # 3600 s = 36 periods later: the same
    path.write_text(json.dumps({"1": {**record, "messages": later}}))
    assert devices.read(path).clients == [(100, [(30, 45), (50, 65)])]  # type: ignore[union-attr]


class Malicious:
    """What a pickle may hold: any call."""

    def __init__(self, call: Callable[..., Any], *args: Any) -> None:
        self.call, self.args = call, args

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call, self.args


def test_nothing_that_a_pickle_names_is_called(tmp_path: Path) -> None:
    path, mark = tmp_path / "client_behave_trace", tmp_path / "called"
    for call in (
        Malicious(os.mkdir, str(mark)),
        Malicious(eval, f"open({str(mark)!r}, 'w')"),
        Fraction(1, 2),
    ):
        for protocol in range(2, 6):
            path.write_bytes(pickle.dumps({7: {**BEHAVIOUR[7], "model": call}}, protocol))
            with pytest.raises(
                UserError, match=r"is a pickle that cannot be read: names \S+\.\w+; only"
            ) as raised:
                devices.read(path)
            assert "\n" not in str(raised.value) and not mark.exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (pickle.dumps(BEHAVIOUR)[:90], "is a pickle that cannot be read"),
        (b"\x80\x04\x95", "is a pickle that cannot be read"),
        (pickle.dumps([1, 2]), r"is neither FedScale's client_behave_trace \(active"),
        (pickle.dumps({}), "is neither FedScale's"),
        (b'{"a": 1}', "is neither FedScale's"),
        (b'{"a": ', "is no JSON"),
        (pickle.dumps({1: {**BEHAVIOUR[11]}}), "has no client that is ever present"),
        (pickle.dumps({1: {"computation": "x", "communication": 1}}), "has no client with two numbers"),
    ],
)
def test_other_files_get_one_clear_line(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UserError, match=complaint) as raised:
        devices.read(path)
    assert "\n" not in str(raised.value)
