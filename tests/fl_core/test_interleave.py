"""Many simulations at once: the same events exactly, the same models to rounding, in bounded memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from side_by_side import RecorderSlot, run_together
from worlds import scenario

from fl_core.execution.auto import Auto
from fl_core.execution.execution import ComputeRequest
from fl_core.execution.one_by_one import OneByOne, work
from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.execution.stacked import AllInFlight, work_together
from fl_core.experiment import Experiment
from fl_core.local_work import LocalWork
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording import checkpoint
from fl_core.recording.interleave import interleave
from fl_core.recording.recorder import Record, Recorder, run
from fl_core.strategies.strategy import Strategy

TIMES = [1, "11/15", "7/15", "1/5", 2, 2]
CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [0.0, 2.0], [2.0, -2.0]]

# Of float32 weights after some hundred updates of the digits problem; the weights are of order 0.1.
FLOAT32_BOUND = 1e-5


def quadratics(
    strategy: str, local: Any = "sgd", seed: int = 1, lr: float = 0.05, **where: Any
) -> Experiment:
    """A strategy on six noisy quadratics, some of them slow, some going away for a while."""
    away = {"name": "dropouts", "share": 0.4, "at": 3, "back": 5}
    where = {"times": TIMES, "centres": CENTRES, "noise": 0.3, "updates": 60, "availability": away} | where
    chosen = {"name": strategy, "local_lr": lr, "local": local}
    return Experiment.model_validate({"scenario": scenario(**where), "strategy": chosen, "seed": seed})


def digits(strategy: str, seed: int, model: str, updates: int) -> Experiment:
    """A strategy on scikit-learn's digits, split unevenly, under exponential job lengths."""
    return Experiment.model_validate(
        {
            "scenario": {
                "problem": {
                    "name": "digits",
                    "clients": 12,
                    "partition": {"name": "client_dirichlet", "alpha": 0.3},
                    "model": model,
                },
                "timing": {"durations": "exponential"},
                "budget": {"updates": updates},
                "evaluations": 1,
            },
            "strategy": {"name": strategy, "local_lr": 0.05, "local": {"name": "sgd", "batch": 16}},
            "seed": seed,
        }
    )


def assert_same(record: Record, plain: Record, bound: float) -> None:
    """The same arrivals and clocks exactly; everything measured within `bound` of a value's size."""
    assert record.arrivals == plain.arrivals
    assert (record.status, record.reason) == (plain.status, plain.reason)
    assert len(record.curve) == len(plain.curve)
    for row, other in zip(record.curve, plain.curve, strict=True):
        assert row.keys() == other.keys()
        for clock in ("iteration", "updates", "time", "uploads_bytes"):
            assert row[clock] == other[clock]
        assert list(row.values()) == pytest.approx(list(other.values()), rel=bound, abs=bound)


MOMENTUM = {"name": "sgd", "momentum": 0.9, "clip": 1.0}


@pytest.mark.parametrize(
    ("name", "local"),
    [
        *((name, {"name": "scaffold"}) for name in ("ace", "fedavg", "quafl")),
        *(("fedbuff", local) for local in (MOMENTUM, {"name": "adamw"}, {"name": "prox", "mu": 0.5})),
    ],
    ids=lambda part: part if isinstance(part, str) else part["name"],
)
def test_every_strategy_runs_as_if_alone(name: str, local: Any) -> None:
    """Seeds and rates of each strategy side by side, in float64."""
    grid = [
        quadratics(name, {**local, "steps": steps}, seed, lr)
        for seed, lr, steps in ((1, 0.05, 3), (1, 0.02, 3), (3, 0.01, 2))
    ]
    together = dict(run_together(grid, at_once=2, execution=AllInFlight(max_batch=5)))
    assert sorted(together) == [0, 1, 2]
    for place, experiment in enumerate(grid):
        assert_same(together[place], run(experiment), 1e-10)


@pytest.mark.slow
def test_strategies_and_delays_mix() -> None:
    """One campaign of all strategies under two timings."""
    timings = (TIMES, [1, 2, 3, 4, 5, 6])
    grid = [quadratics(name, times=times) for name in Strategy.members() for times in timings]
    for place, record in run_together(grid, at_once=8):
        assert_same(record, run(grid[place]), 1e-10)


def test_jobs_of_different_numbers_of_steps_share_a_stack() -> None:
    """A stack gets shorter when jobs with fewer steps are done."""
    grid = [quadratics("afa_cd", {"name": "sgd", "steps": 3, "dynamic": True}, seed) for seed in range(4)]
    for place, record in run_together(grid):
        assert_same(record, run(grid[place]), 1e-10)


@pytest.mark.parametrize(
    ("name", "model", "updates"),
    [
        ("fedbuff", "logistic", 60),
        pytest.param("fedbuff", "cnn", 24, marks=pytest.mark.slow),
    ],
)
def test_models_of_real_data_in_single_precision(name: str, model: str, updates: int) -> None:
    """Worlds of different seeds, so of different splits, share calls; the weights stay within rounding."""
    grid = [digits(name, seed, model, updates) for seed in range(3)]
    final = {}
    for slot, _ in interleave(map(RecorderSlot, started(grid), count())):
        final[slot.place] = slot.recorder.simulation.server.model
    for place, experiment in enumerate(grid):
        simulation = Simulation(experiment)
        for _ in simulate(simulation, OneByOne()):
            pass
        torch.testing.assert_close(final[place], simulation.server.model, rtol=0, atol=FLOAT32_BOUND)


def started(grid: list[Experiment]) -> Iterator[Recorder]:
    """Recorders of experiments, each made when it is asked for."""
    for experiment in grid:
        recorder = Recorder(Simulation(experiment))
        recorder.start()
        yield recorder


def test_interrupted_runs_go_on_together(tmp_path: Path) -> None:
    """Each saved at another point of its own run, and taken up side by side."""
    grid = [quadratics("quafl", "scaffold", seed) for seed in (1, 2, 3)]
    for place, experiment in enumerate(grid):
        recorder = next(started([experiment]))
        for number, event in enumerate(simulate(recorder.simulation, AllInFlight())):
            recorder.see(event)
            if number == 7 * place:
                break
        checkpoint.save(recorder, tmp_path / f"{place}.pt")
    loaded = [Recorder(Simulation(experiment)) for experiment in grid]
    for place, recorder in enumerate(loaded):
        checkpoint.load(recorder, tmp_path / f"{place}.pt")
    for _ in interleave(map(RecorderSlot, loaded)):
        pass
    for experiment, recorder in zip(grid, loaded, strict=True):
        assert_same(recorder.record, run(experiment), 1e-10)


def test_only_so_many_are_open_at_once() -> None:
    """However many there are: what ended is let go before the next is made."""
    alive: list[weakref.ref[Simulation]] = []
    most = 0

    def grid() -> Iterator[RecorderSlot]:
        for seed in range(12):
            recorder = next(started([quadratics("fedbuff", seed=seed, updates=10 + seed % 7)]))
            alive.append(weakref.ref(recorder.simulation))
            yield RecorderSlot(recorder)
            del recorder

    ended = 0
    for slot, event in interleave(grid(), at_once=4):
        ended += event is None
        del slot
        most = max(most, sum(ref() is not None for ref in alive))
    assert ended == 12
    assert most <= 4 + 1  # the last that ended may still be in the consumer's hands


@dataclass
class Faulty:
    """An execution that cannot compute the jobs of one world."""

    world: object
    plain: AllInFlight = field(default_factory=AllInFlight)

    @property
    def label(self) -> str:
        return self.plain.label

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        if any(request.world is self.world for request in requests):
            raise ValueError("a world that cannot be stacked")
        return self.plain.execute(requests)


def test_an_error_ends_one_lane_alone() -> None:
    """In a shared call, too: whose error it is shows when each is computed by itself."""
    grid = [quadratics("asgd", seed=seed) for seed in range(4)]
    recorders = list(started(grid))
    ended = {}
    for slot, event in interleave(
        map(RecorderSlot, recorders, count()), execution=Faulty(recorders[2].simulation.world)
    ):
        if event is None:
            ended[slot.place] = slot.error
    assert [place for place, error in ended.items() if error is not None] == [2]
    for place in (0, 1, 3):
        assert_same(recorders[place].record, run(grid[place]), 1e-10)


def test_an_iterable_may_have_none_now_and_one_later() -> None:
    """The second slot is there only after the first has been under way for a while."""
    grid = [quadratics("asgd", seed=seed) for seed in range(2)]
    first, second = map(RecorderSlot, started(grid))

    def slots() -> Iterator[RecorderSlot | None]:
        yield first
        yield from [None] * 20
        yield second

    ended = [slot for slot, event in interleave(slots()) if event is None]
    assert ended == [first, second]
    assert (first.beside, second.beside) == (2, 2)
    for slot, experiment in zip(ended, grid, strict=True):
        assert_same(slot.recorder.record, run(experiment), 1e-10)


def test_stacks_are_no_wider_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen simulations that each need a job, `max_batch` 4: stacks of four."""
    widths: list[int] = []

    def counted(pairs: Any, local: LocalWork) -> None:
        widths.append(len(pairs))
        work_together(pairs, local)

    monkeypatch.setattr("fl_core.execution.stacked.work_together", counted)
    grid = [quadratics("asgd", seed=seed) for seed in range(16)]
    assert len(list(run_together(grid, execution=AllInFlight(max_batch=4)))) == 16
    assert max(widths) == 4
    assert widths.count(4) > len(widths) / 2


def test_worlds_of_other_data_do_not_share_a_stack() -> None:
    """Two problems with models of one size: each is computed on its own data."""
    moved = [[x + 1, y] for x, y in CENTRES]
    grid = [quadratics("asgd", centres=centres, seed=seed) for centres in (CENTRES, moved) for seed in (1, 2)]
    for place, record in run_together(grid):
        assert_same(record, run(grid[place]), 1e-10)


@pytest.mark.parametrize("many", [0, 1000])
def test_computable_jobs_come_in_the_order_of_their_arrival(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The needed one first; the rest as a sort of all jobs in flight has them."""
    monkeypatch.setattr("fl_core.loop.simulation.MAX_SORTED_ENTRIES", many)
    simulation = Simulation(quadratics("fedbuff", times=[5, 3, 3, "1/2", 8, 2] * 3, centres=CENTRES * 3))
    requests = 0
    for event in simulation.events():
        if isinstance(event, ComputeRequest):
            requests += 1
            missing = [job for job in simulation.server.jobs if job.ends is not None and job.delta is None]
            assert list(event.jobs()) == sorted(missing, key=lambda job: (job.ends, job.client))
            assert next(event.jobs()) is event.job
            work(event.job, event.world, event.local)
    assert requests == 60


@pytest.mark.parametrize("name", ["favas", "fedbuff"])
def test_schedule_only_meets_the_same_events(name: str) -> None:
    """Strategies that do not look at what they receive: no gradient, the same schedule."""
    described = quadratics(name)
    plain = list(simulate(Simulation(described)))
    simulation = Simulation(described)
    assert list(simulate(simulation, ScheduleOnly())) == plain
    assert torch.equal(simulation.server.model, simulation.world.initial())


def test_auto_gives_the_same_runs() -> None:
    """Whatever it picks, alone or side by side."""
    for name in ("fedbuff", "rennala"):
        described = quadratics(name)
        assert_same(run(described, execution=Auto()), run(described), 1e-10)
        ((_, record),) = run_together([described], execution=Auto())
        assert_same(record, run(described), 1e-10)
