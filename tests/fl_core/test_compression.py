"""Codings against real messages of bits, closed forms, and slow references written from the papers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from fl_core.compression import QSGD, Coding, Float16, Lattice, RandomK, TopK, bytes_of
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.strategies.strategy import Strategy
from fl_core.streams import stream
from fl_core.testing.check_experiments import CLIENTS, LOCAL_LR, experiment, scenario

RNG = np.random.default_rng(0)


def vector(d: int, dtype: torch.dtype = torch.double) -> torch.Tensor:
    return torch.from_numpy(RNG.standard_normal(d) * RNG.exponential(size=d)).to(dtype)


def bits(numbers: list[int], width: int) -> str:
    return "".join(format(number, f"0{width}b") if width else "" for number in numbers)


@pytest.mark.parametrize(("width", "bucket", "d"), [(2, None, 17), (4, 5, 17), (8, 16, 33), (16, None, 5)])
def test_qsgd_is_the_papers_and_as_long_as_its_bits(width: int, bucket: int | None, d: int) -> None:
    """Each number by the paper's definition; a message of signs, levels and norms has the bytes it says."""
    coding, v = QSGD(bits=width, bucket=bucket), vector(d)
    received = coding.code(v, stream(3, "uplink", 1, 2))
    noise, s = stream(3, "uplink", 1, 2).random(d), 2 ** (width - 1) - 1
    expected, message, norms = [], "", 0
    for start in range(0, d, bucket or d):
        part = v[start : start + (bucket or d)].tolist()
        norm = math.sqrt(sum(x * x for x in part))
        norms += 1
        for place, x in enumerate(part, start):
            level = math.floor(abs(x) / norm * s)
            level += noise[place] >= 1 - (abs(x) / norm * s - level)  # with probability s|x|/‖v‖ − l
            expected.append(norm * math.copysign(1, x) * level / s)
            message += bits([int(x < 0)], 1) + bits([level], width - 1)
    assert received.tolist() == pytest.approx(expected, rel=1e-12)
    assert coding.bytes(d, 8) == math.ceil(len(message) / 8) + 8 * norms


@pytest.mark.parametrize("coding", [QSGD(bits=2), QSGD(bits=3, bucket=7)])
def test_variance_of_qsgd_is_its_closed_form_and_within_lemma_3_1(coding: QSGD) -> None:
    v, s = vector(20), coding.levels
    variance = 0.0
    for part in torch.split(v, coding.bucket or 20):
        scaled = part.abs() / part.norm() * s
        up = scaled - scaled.floor()
        variance += float((part.norm() / s) ** 2 * (up * (1 - up)).sum())
    drawn = torch.stack([coding.code(v, stream(0, "uplink", k)) for k in range(2000)])
    squares = (drawn - v).square().sum(1)
    assert abs(float(squares.mean()) - variance) < 5 * float(squares.std()) / 2000**0.5
    assert bool(((drawn.mean(0) - v).abs() <= 5 * drawn.std(0) / 2000**0.5 + 1e-12).all())
    n = coding.bucket or 20
    assert coding.variance(20) == min(n / s**2, math.sqrt(n) / s)
    assert variance <= coding.variance(20) * float(v.square().sum())


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_random_k_is_unbiased_with_variance_d_over_k_less_1(share: float) -> None:
    v, coding = vector(20), RandomK(share=share)
    k = math.ceil(share * 20)
    drawn = torch.stack([coding.code(v, stream(0, "uplink", j)) for j in range(2000)])
    assert ((drawn != 0).sum(1) == k).all()
    squares = (drawn - v).square().sum(1)
    assert abs(float(squares.mean()) - (20 / k - 1) * float(v.square().sum())) < (
        5 * float(squares.std()) / 2000**0.5 + 1e-9
    )
    assert bool(((drawn.mean(0) - v).abs() <= 5 * drawn.std(0) / 2000**0.5 + 1e-12).all())
    assert coding.bytes(20, 4) == 4 * k + 8


@pytest.mark.parametrize(("share", "d"), [(0.1, 33), (0.01, 1000), (0.9, 33), (1.0, 5), (0.5, 1)])
def test_top_k_keeps_the_largest_and_is_as_long_as_its_bits(share: float, d: int) -> None:
    v, coding = vector(d), TopK(share=share)
    v[d // 2] = v[0]  # equal ones: the first
    k = math.ceil(round(share * d, 9))
    order = sorted(range(d), key=lambda i: (-abs(float(v[i])), i))[:k]
    received = coding.code(v, stream(0, "uplink"))
    assert received.nonzero().flatten().tolist() == sorted(order)
    assert torch.equal(received[order], v[order])
    assert float((received - v).square().sum()) <= (1 - k / d) * float(v.square().sum()) + 1e-12
    places = 0 if k == d else min(len(bits(order, math.ceil(math.log2(d)))), d)
    assert coding.bytes(d, 4) == 4 * k + math.ceil(places / 8)


def test_float16_is_the_nearest_and_stays_finite() -> None:
    v = torch.tensor([1.0 + 2**-11, -1e9, 3e-8, 65504.0], dtype=torch.double)
    assert Float16().code(v, stream(0, "uplink")).tolist() == [1.0, -65504.0, 2**-24 * 1, 65504.0]
    assert bytes_of(v, Float16()) == 8
    assert bytes_of(v, None) == 32


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize(("width", "side", "d"), [(1, 0.5, 8), (3, 0.25, 13), (8, 0.01, 33)])
def test_lattice_is_decoded_right_just_where_it_should(width: int, side: float, d: int, rotate: bool) -> None:
    """The point nearest to v among all of its colour is searched one by one; it is that of v within q s/2."""
    coding, q, right = Lattice(bits=width, side=side, rotate=rotate), 2**width, []
    for draw in range(20):
        v = vector(d)
        known = v + vector(d) * (side * q * RNG.choice([0.1, 0.3, 1.0]))
        received, wrong = coding.code_near(known, v, stream(0, "downlink", draw))
        n = 2 ** math.ceil(math.log2(d)) if rotate else d
        turn = np.eye(n)
        if rotate:
            hadamard = [[(-1) ** (i & j).bit_count() for j in range(n)] for i in range(n)]
            turn = np.array(hadamard) / n**0.5 * stream(0, "downlink", draw).choice((-1.0, 1.0), n)
        turned_v, turned_known = (turn @ np.pad(x.numpy(), (0, n - d)) for x in (v, known))
        expected, as_sent = [], []
        for x, near in zip(turned_v, turned_known, strict=True):
            k = round(x / side)
            middle = round(near / side)
            same = [j for j in range(middle - 2 * q, middle + 2 * q + 1) if (j - k) % q == 0]
            best = min(same, key=lambda j: abs(side * j - near))
            as_sent.append(best == k)
            assert (best == k) == (abs(near - side * k) < q * side / 2)
            expected.append(side * best)
        assert received.tolist() == pytest.approx((turn.T @ np.array(expected))[:d], abs=1e-9)
        right.append(all(as_sent))
        assert wrong != right[-1]
        if np.abs(turned_v - turned_known).max() < (q - 1) * side / 2:
            assert right[-1]
            assert float((received - v).norm()) <= side / 2 * n**0.5 + 1e-9
    assert 0 < sum(right) < 20
    assert coding.bytes(d, 8) == math.ceil(n * width / 8) + (8 if rotate else 0)


@pytest.mark.parametrize(
    "coding",
    [TopK(share=0.1, feedback="ef14"), RandomK(share=0.2, feedback="ef14"), QSGD(bits=2, feedback="ef14")],
)
def test_ef14_loses_nothing(coding: Coding) -> None:
    """All that was sent is what was received and what is still remembered (Stich et al., 2018)."""
    memory, d = None, 30
    sent, received = torch.zeros(d, dtype=torch.double), torch.zeros(d, dtype=torch.double)
    for step in range(50):
        v = vector(d)
        got, memory = coding.send(v, memory, stream(0, "uplink", step))
        sent, received = sent + v, received + got
        assert torch.allclose(received + memory, sent, atol=1e-12)


@pytest.mark.parametrize(
    "coding",
    [TopK(share=0.1, feedback="ef21"), RandomK(share=0.2, feedback="ef21")],
)
def test_ef21_comes_as_near_as_it_should(coding: Coding) -> None:
    """For a constant vector the distance shrinks by 1 − δ at each message (Richtárik et al., 2021)."""
    v = vector(30)
    delta = 1 / (1 + coding.variance(30)) if coding.variance(30) else math.ceil(0.1 * 30) / 30
    ends = []
    for seed in range(1 if isinstance(coding, TopK) else 300):
        memory = None
        for step in range(12):
            received, memory = coding.send(v, memory, stream(seed, "uplink", step))
        ends.append(float((received - v).square().sum() / v.square().sum()))
    assert np.mean(ends) <= (1 - delta) ** 12 + 5 * np.std(ends) / len(ends) ** 0.5


def test_ef21_damps_an_unbiased_coding() -> None:
    """Random k keeps 6 of 30 numbers, 5 times as large, and 1 + ω = 5: what is received are these numbers."""
    v, memory = vector(30), None
    for step in range(3):
        before = torch.zeros_like(v) if memory is None else memory
        received, memory = RandomK(share=0.2, feedback="ef21").send(v, memory, stream(0, "uplink", step))
        came = received != before
        assert came.sum() <= 6
        assert torch.allclose(received[came], v[came])
    assert came.any()


def coded(strategy: str = "asgd", **links: Any) -> Experiment:
    fields = {"name": strategy, "local_lr": LOCAL_LR, **links}
    return experiment(scenario(noise=0.0, updates=120), Strategy.model_validate(fields))


@pytest.mark.parametrize(("feedback", "sign"), [("ef14", 1), ("ef21", -1)])
def test_a_run_hands_over_what_is_received(feedback: str, sign: int) -> None:
    """By hand: C(Δ + e), or e + C(Δ − e), of the client's own message arrives; the model is coded, too."""
    described = coded(uplink={"name": "qsgd", "bits": 3, "feedback": feedback}, downlink="float16")
    simulation, memory = Simulation(described), dict[int, torch.Tensor]()
    server, model = simulation.server, simulation.server.model
    for _ in simulate(simulation):
        job = simulation.arrived
        assert job is not None and job.delta is not None
        assert torch.equal(job.start, job.start.half().double())
        known = memory.get(job.client, torch.zeros(2, dtype=torch.double))
        whole = job.delta + sign * known
        rng = stream(1, "uplink", job.client, job.index)
        received = QSGD(bits=3).code(whole, rng) / (1 + QSGD(bits=3).variance(2))
        memory[job.client] = whole - received if feedback == "ef14" else known + received
        model = model + (received if feedback == "ef14" else memory[job.client])
        assert torch.allclose(server.model, model, atol=1e-12)


def test_with_ef21_downlink_clients_start_from_what_both_ends_know() -> None:
    simulation = Simulation(coded(downlink={"name": "top_k", "share": 0.5, "feedback": "ef21"}))
    known = dict.fromkeys(range(CLIENTS), simulation.server.model)
    versions = {0: simulation.server.model}
    for event in simulate(simulation):
        versions[event.version] = simulation.server.model
        job = simulation.arrived
        assert job is not None
        apart = versions[job.version] - known[job.client]
        known[job.client] = known[job.client] + apart * (apart.abs() == apart.abs().max())
        assert torch.allclose(job.start, known[job.client], atol=1e-12)


def test_bytes_are_counted_as_sent() -> None:
    record = run(coded(uplink={"name": "qsgd", "bits": 2}))
    assert record.curve[-1]["uploads_bytes"] == 120 * (1 + 8)
    ef21 = run(coded("fedavg", uplink={"name": "top_k", "feedback": "ef21"}))
    assert ef21.kept_bytes["clients"] == CLIENTS * 2 * 8
    assert ef21.kept_bytes["server"] == CLIENTS * 2 * 8 + 2 * 8  # and the sum of a round
    assert run(coded("fedavg", uplink={"name": "top_k", "feedback": "ef14"})).kept_bytes["server"] == 2 * 8


def test_without_coding_an_identity_says_nothing_of_it() -> None:
    plain, eight = coded(), coded(uplink="qsgd")
    assert not {"uplink", "downlink"} & plain.identity()["strategy"].keys()
    assert eight.identity()["strategy"]["uplink"] == {"name": "qsgd", "version": 1}


@pytest.mark.parametrize(
    "links",
    [
        {"downlink": {"name": "qsgd", "feedback": "ef14"}},
        {"strategy": "afa_cd", "uplink": "qsgd", "local": "scaffold"},
        {"downlink": "lattice"},
        {"strategy": "quafl", "uplink": {"name": "lattice", "feedback": "ef21"}},
        {"uplink": {"name": "qsgd", "bits": 1}},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(links: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        coded(**links)


class Own(Coding):
    """A coding of a user's own, with what its methods return."""

    received: Callable[[torch.Tensor], Any] = torch.clone
    size: Any = 8
    omega: Any = 0.0

    def code(self, vector: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        received: torch.Tensor = self.received(vector)
        return received

    def code_near(self, known: torch.Tensor, vector: torch.Tensor, rng: np.random.Generator) -> Any:
        return self.received(vector), False

    def bytes(self, entries: int, word: int) -> int:
        size: int = self.size
        return size

    def variance(self, entries: int) -> float:
        omega: float = self.omega
        return omega


@pytest.mark.parametrize(
    ("way", "fields"),
    [
        ("uplink", {"received": torch.mean}),
        ("downlink", {"received": torch.mean}),
        ("uplink", {"received": torch.Tensor.half}),
        ("uplink", {"received": torch.Tensor.numpy}),
        ("downlink", {"received": lambda vector: vector.mul_(2)}),
        ("uplink", {"received": lambda vector: vector.clone().requires_grad_()}),
        ("downlink", {"received": torch.mean, "feedback": "ef21"}),
        ("uplink", {"omega": math.nan, "feedback": "ef21"}),
        ("uplink", {"omega": -1.0, "feedback": "ef21"}),
        *((way, {"size": size}) for way in ("uplink", "downlink") for size in (-1, math.nan, None)),
    ],
)
def test_what_a_coding_of_ones_own_may_not_return(way: str, fields: dict[str, Any]) -> None:
    """Else a number would pass for a model, and no bytes, or fewer than none, for a message."""
    with pytest.raises((RuntimeError, TypeError, ValueError), match=r"^Own\."):
        run(coded(**{way: Own(**fields)}))


def test_what_a_coding_near_a_vector_may_not_return() -> None:
    """QuAFL codes both ways itself."""
    with pytest.raises(TypeError, match=r"^Own\.code_near"):
        run(coded("quafl", uplink=Own(received=torch.mean)))
    with pytest.raises(RuntimeError, match=r"^Own\.code_near"):
        run(coded("quafl", downlink=Own(received=lambda vector: vector.mul_(2))))


def test_a_run_that_diverges_says_whether_a_client_was_sent_what_is_not_finite() -> None:
    own = Own(received=lambda vector: vector * math.nan)
    record = run(coded(downlink=own))
    assert record.status == "diverged"
    assert record.reason.endswith(f"is not finite, nor is the model that it was sent in {own.reference()}")
