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

from benchmarks import phone_traces as devices
from benchmarks.commands import trace
from benchmarks.errors import UserError
from fl_core.experiment import Experiment
from fl_core.recording.recorder import run
from fl_core.scenario import Timing
from fl_core.timing.availability import Availability, checked
from fl_core.timing.durations import DurationTrace, Lengths
from fl_core.timing.network import Way

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
    assert "differs from the published FedScale's client_behave_trace, which has 25,640,150 bytes" in said
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
    with pytest.raises(UserError, match="--batch"):
        imported(path)
    with pytest.raises(UserError, match="--status: "):
        imported(path, "--batch", "20", "--status", "state")


def test_every_device_of_a_log_keeps_its_own_uplink(tmp_path: Path) -> None:
    """Links are in order of ids, the log of time; device k has jobs of length k + 1, and that rate."""
    n = 50
    rng = np.random.default_rng(5)
    order = rng.permutation(200)
    jobs = "".join(f"dev-{k},{time},{time + k + 1}\n" for time, k in enumerate(order.tolist()))
    (tmp_path / "jobs.csv").write_text(f"device,began,ended\n{jobs}")
    rows = "".join(f"dev-{k},{k + 1}\n" for k in sorted(range(200), key=str))
    (tmp_path / "links.csv").write_text(f"device,up\n{rows}dev-without-jobs,7\n")
    said = imported(tmp_path / "jobs.csv", "--client", "device", "--start", "began", "--end", "ended").stdout
    written = yaml.safe_load(said.partition("In a suite:")[2])["timing"]
    links = {"name": "column", "path": str(tmp_path / "links.csv"), "column": "up", "client": "device"}
    durations = written["durations"]
    timing = Timing.model_validate({"durations": durations, "network": {"uplink": links}})
    assert timing.network is not None
    for seed in range(3):
        rates = timing.network.rates(Way.UP, n, seed, timing.ids(n, seed))
        assert rates == timing.durations.means(n, seed)
    again = Timing.model_validate(timing.model_dump(mode="json"))
    assert again == timing and pickle.loads(pickle.dumps(timing)) == timing
    with pytest.raises(ValidationError, match="column"):
        Timing.model_validate({"durations": durations, "network": {"uplink": links | {"client": None}}})
    (tmp_path / "links.csv").write_text(f"device,up\n{rows.replace('dev-17,', 'dev-x,')}")
    timing = Timing.model_validate({"durations": durations, "network": {"uplink": links}})
    assert timing.network is not None
    with pytest.raises(ValueError, match=r"'dev-17' of .*jobs-trace\.csv"):
        timing.check_ids(200)


@pytest.mark.parametrize(("drawn", "name"), [("random", "dev-{}"), ("first", "{}"), ("random", "0{}")])
def test_every_device_keeps_its_own_presence_and_link(tmp_path: Path, drawn: str, name: str) -> None:
    """Of 200 devices in three orders, device k has jobs of length k + 1 and that rate, and leaves then."""
    rng = np.random.default_rng(5)

    def shuffled(header: str, row: str, spelling: str = name) -> str:
        rows = [row.format(spelling.format(k), k + 1) for k in rng.permutation(200).tolist()]
        return f"{header}\n" + "".join(f"{line}\n" for line in rows)

    (tmp_path / "jobs.csv").write_text(shuffled("client,length", "{0},{1}"))
    other = "{}" if name == "0{}" else name  # 07 and 7 are one client
    (tmp_path / "seen.csv").write_text(
        shuffled("client,from,to", "{0},0,{1}", other) + "visitor,0,1\n" * ("{" in name[1:])
    )
    (tmp_path / "links.csv").write_text(shuffled("device,rate", "{0},{1}", other))
    link = {"name": "column", "path": tmp_path / "links.csv", "column": "rate", "client": "device"}
    timing = Timing.model_validate(
        {
            "durations": {"name": "trace", "path": tmp_path / "jobs.csv", "clients": drawn},
            "availability": {"name": "trace", "path": tmp_path / "seen.csv", "clients": drawn},
            "network": {"uplink": link, "latency": link},
        }
    )
    copied = timing.model_copy()
    for n in (50, 200):
        timing.check_ids(n)
        for seed in range(3):
            means, ids = timing.durations.means(n, seed), copied.ids(n, seed)
            assert timing.network is not None
            assert timing.network.rates(Way.UP, n, seed, ids) == means
            assert timing.network.latencies(n, seed, ids) == means
            for client, mean in enumerate(means):
                assert list(checked(timing.availability, client, n, seed, ids)) == [(mean, None)]


def test_a_copy_with_another_trace_is_joined_to_that_trace(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,1\nb,2\n")
    (tmp_path / "other.csv").write_text("b,2\na,1\n")
    (tmp_path / "links.csv").write_text("device,up\na,1\nb,2\n")
    links = {"name": "column", "path": tmp_path / "links.csv", "column": "up", "client": "device"}
    one, other = (DurationTrace(path=tmp_path / f"{name}.csv") for name in ("one", "other"))
    timing = Timing.model_validate({"durations": one, "network": {"uplink": links}})
    copied = timing.model_copy(update={"durations": other})
    assert timing.network is not None
    for changed in (copied, timing):
        rates = timing.network.rates(Way.UP, 2, 0, changed.ids(2, 0))
        assert rates == changed.durations.means(2, 0)


def test_columns_of_two_files_are_joined_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "down.csv").write_text("device,rate\na,1\nb,2\nc,3\n")
    (tmp_path / "up.csv").write_text("device,rate\nc,3\nb,2\na,1\n")
    down, up = (
        {"name": "column", "path": tmp_path / f"{way}.csv", "column": "rate", "client": "device"}
        for way in ("down", "up")
    )
    timing = Timing.model_validate({"network": {"downlink": down, "uplink": up}})
    assert timing.network is not None
    ids = timing.ids(2, 0)
    assert ids == ["a", "b"]
    assert timing.network.rates(Way.DOWN, 2, 0, ids) == timing.network.rates(Way.UP, 2, 0, ids) == (1, 2)


def test_a_suite_gives_the_results_of_files_ordered_by_hand(tmp_path: Path) -> None:
    """Trace, links and presence in three orders, against all in the order of the trace."""
    order = [3, 0, 4, 1, 2]

    def written(folder: Path, orders: dict[str, list[int]]) -> Experiment:
        folder.mkdir()
        rows = {
            "jobs": "d{0},{1},1/2",
            "seen": "d{0},{0},{2},20",
            "links": "d{0},{1},{2}",
        }
        for file, row in rows.items():
            lines = [row.format(k, k + 1, 19 - k) for k in orders[file]]
            header = "device,down,up" if file == "links" else "client,from,to"
            (folder / f"{file}.csv").write_text("\n".join([header, *lines]) + "\n")
        link = {"name": "column", "path": folder / "links.csv", "client": "device"}
        scenario = {
            "problem": {"name": "quadratic", "clients": 4, "centres": [[1], [2], [3], [5]]},
            "timing": {
                "durations": {"name": "trace", "path": folder / "jobs.csv"},
                "availability": {"name": "trace", "path": folder / "seen.csv"},
                "network": {"downlink": link | {"column": "down"}, "uplink": link | {"column": "up"}},
                "unit": "1/100000",
            },
            "budget": {"updates": 60},
        }
        return Experiment.model_validate(
            {
                "scenario": scenario,
                "strategy": {"name": "fedbuff", "buffer": 2, "local_lr": 0.1},
                "seed": 1,
            }
        )

    by_hand = run(written(tmp_path / "by_hand", dict.fromkeys(("jobs", "seen", "links"), order)))
    orders = {"jobs": order, "seen": sorted(order), "links": sorted(order, reverse=True)}
    joined = run(written(tmp_path / "joined", orders))
    assert joined.arrivals == by_hand.arrivals
    assert joined.curve == by_hand.curve
    assert joined.clients == by_hand.clients


@pytest.mark.parametrize("drawn", ["random", "first"])
@pytest.mark.parametrize(("names", "seen"), [("a b", "a,0,5\nc,0,5\n"), ("0 3", "0,0,5\n1,0,5\n2,0,5\n")])
def test_presence_that_lacks_a_client_is_refused(tmp_path: Path, drawn: str, seen: str, names: str) -> None:
    one, other = names.split()
    (tmp_path / "lengths.csv").write_text(f"{one},1\n{other},2\n{one},3\n")
    (tmp_path / "seen.csv").write_text(seen)
    timing = Timing.model_validate(
        {
            "durations": {"name": "trace", "path": tmp_path / "lengths.csv", "clients": drawn},
            "availability": {"name": "trace", "path": tmp_path / "seen.csv", "clients": drawn},
        }
    )
    with pytest.raises(ValueError, match=r"seen\.csv|lengths\.csv"):
        timing.check_ids(2)


def test_fedscales_files_are_paired_by_number_and_not_drawn_from_together(tmp_path: Path) -> None:
    """The capacity has more phones than the behaviour; its trace may be cut to them."""
    timing: dict[str, Any] = {}
    capacity = CAPACITY | {3: {"computation": 20.0, "communication": 1e3}}
    for name, content in (("behaviour", BEHAVIOUR), ("capacity", capacity)):
        (tmp_path / name).write_bytes(pickle.dumps(content))
        said = imported(tmp_path / name, *(("--batch", "20") if name == "capacity" else ())).stdout
        timing |= yaml.safe_load(said.partition("In a suite:")[2])["timing"]
    with pytest.raises(ValidationError):
        Timing.model_validate(timing)  # the behaviour is drawn from, the capacity is not
    timing["durations"]["clients"] = "random"
    with pytest.raises(ValueError, match="client '2'"):
        Timing.model_validate(timing).check_ids(2)
    lengths = tmp_path / "capacity-trace.csv"
    lengths.write_text("".join(lengths.read_text().splitlines(keepends=True)[:3]))
    Timing.model_validate(timing).check_ids(2)
    timing["durations"]["clients"] = timing["availability"]["clients"] = "first"
    Timing.model_validate(timing).check_ids(2)


@pytest.mark.parametrize(("names", "drawn"), [("ab", "durations"), ("01", "availability")])
def test_of_two_traces_both_are_drawn_from_or_none(tmp_path: Path, names: str, drawn: str) -> None:
    (tmp_path / "lengths.csv").write_text("".join(f"{name},1\n" for name in names))
    (tmp_path / "seen.csv").write_text("".join(f"{name},0,5\n" for name in names))
    timing: dict[str, dict[str, Any]] = {
        "durations": {"name": "trace", "path": tmp_path / "lengths.csv"},
        "availability": {"name": "trace", "path": tmp_path / "seen.csv"},
    }
    timing[drawn]["clients"] = "random"
    with pytest.raises(ValidationError, match="draws"):
        Timing.model_validate(timing)


def test_a_client_written_in_two_ways_beside_names_is_refused(tmp_path: Path) -> None:
    """7 and 07 would be two clients of one id."""
    (tmp_path / "lengths.csv").write_text("a,1\n7,2\n")
    (tmp_path / "seen.csv").write_text("a,0,5\n7,0,5\n07,6,7\n")
    timing = Timing.model_validate(
        {
            "durations": {"name": "trace", "path": tmp_path / "lengths.csv"},
            "availability": {"name": "trace", "path": tmp_path / "seen.csv"},
        }
    )
    with pytest.raises(ValueError, match=r"seen.csv: .*'7'.*'07'"):
        timing.check_ids(2)


@pytest.mark.parametrize(("ids", "said"), [("-1,2", "must not begin with"), ("7,07", "are the same number")])
def test_ids_that_a_trace_cannot_hold_are_refused(tmp_path: Path, ids: str, said: str) -> None:
    (tmp_path / "jobs.csv").write_text("device,took\n" + "".join(f"{one},1\n" for one in ids.split(",")))
    with pytest.raises(UserError, match=said):
        imported(tmp_path / "jobs.csv", "--client", "device", "--duration", "took")


def test_flashs_phones_are_present_while_locked_charging_and_on_wifi(tmp_path: Path) -> None:
    """By hand, in seconds of a record of 100; what is still so at its end is left out, as in FLASH's code."""
    states = [
        *("00:10\tScreen_lock", "00:20\tBATTERY_CHARGED_ON", "00:30\tWifi", "00:45\t4G", "00:50\twifi"),
        *("00:55\t93.0%", "01:00\tscreen_on", "01:05\tscreen_unlock", "01:20\tscreen_lock"),
        "01:50\tscreen_on",
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
            with pytest.raises(UserError, match=r"names \S+\.\w+") as raised:
                devices.read(path)
            assert "\n" not in str(raised.value) and not mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        *(pickle.dumps(BEHAVIOUR)[:90], pickle.dumps([1, 2]), pickle.dumps({}), b'{"a": 1}', b'{"a": '),
        pickle.dumps({1: {**BEHAVIOUR[11]}}),  # never present
        pickle.dumps({1: {"computation": "x", "communication": 1}}),
    ],
)
def test_other_files_get_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UserError, match=str(path)) as raised:
        devices.read(path)
    assert len(raised.value.lines) == 1
