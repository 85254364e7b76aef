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

import pytest
import yaml
from click.testing import CliRunner, Result

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
