"""The conformance suite of `fl_core.testing` for everything that this package ships, present and future."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
from worlds import ONE_OF_EACH_KIND

from fl_core.arrangements import Arrangement
from fl_core.compression import QSGD, Coding, TopK
from fl_core.local_work import AdamW, LocalWork
from fl_core.parts import Part
from fl_core.problems.partitions import Partition
from fl_core.problems.problem import Problem
from fl_core.problems.quadratic import Quadratic
from fl_core.recording.recorder import run
from fl_core.server.jobs import Update
from fl_core.server.optimizers import ServerOptimizer
from fl_core.server.server import Server
from fl_core.strategies.aced import ACED
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.ca2fl import CA2FL
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.sampling import Sampling
from fl_core.strategies.strategy import Strategy
from fl_core.testing import conformance, strategy_checks
from fl_core.testing.check_experiments import CENTRES, changed, experiment, scenario
from fl_core.timing.availability import Availability
from fl_core.timing.durations import Durations
from fl_core.timing.network import PerClient

FAMILIES: tuple[type[Part], ...] = (
    *(Strategy, Sampling, LocalWork, ServerOptimizer, Coding, Arrangement),
    *(Problem, Partition, Durations, Availability, PerClient),
)
FITTING: dict[str, dict[str, Any]] = {  # what has no default, or must fit six clients
    "uniform": {"sample": 2},
    "md": {"sample": 2},
    "fastest": {"sample": 2},
    "highest_loss": {"sample": 2},
    "dropouts": {"share": 0.5, "at": 3, "back": 9},
    "spells": {"mean_on": 6, "mean_off": 2},
    "quadratic": {"centres": CENTRES, "noise": 0.3},
}
FITTING_LINKS: dict[str, dict[str, Any]] = {  # some have the names of durations
    "constant": {"value": 3},
    "lognormal": {"median": 10},
    "two_classes": {"share": 0.5, "less": 1, "more": 20},
    "table": {"table": [1, 2, 3, 4, 5, 6]},
}
# Need a file, data that come from clients, or a Flower app
LEFT_OUT = ("trace", "column", "file", "natural", "given", "client_app")


def fitting(family: type[Part]) -> list[Part]:
    """The members of a family, with fields that fit six clients."""
    members, fields = family.members().items(), FITTING_LINKS if family is PerClient else FITTING
    return [one.model_validate(fields.get(name, {})) for name, one in members if name not in LEFT_OUT]


# A defect of published code: a run learns what some of the clients know, which need not be much.
STARVED: list[Part] = [
    FedBuff(selection="starved", concurrency=3, buffer=3),
    CA2FL(selection="starved", concurrency=3, buffer=3),
]
PARTS = [
    *fitting(Strategy),
    *STARVED,
    ACED(trigger="n_arrivals"),
    *fitting(Sampling),
    *fitting(LocalWork),
    *fitting(ServerOptimizer),
    *fitting(Coding),
    TopK(feedback="ef14"),
    QSGD(feedback="ef21"),
    AdamW(keep_state=True),
    *fitting(Durations),
    *fitting(Availability),
    *fitting(PerClient),
    *fitting(Partition),
    Quadratic.model_validate(FITTING["quadratic"]),
]


# Seen by oracles and golden runs as well.
BY_OTHERS = (strategy_checks.a_run_learns, strategy_checks.a_run_repeats_bit_for_bit)
# Thousands of arrivals; test_participation.py has each kind of formula.
COUNTED = strategy_checks.clients_take_part_as_often_as_it_says


def quick_or_slow(check: conformance.Check) -> Any:
    """What other tests show of every strategy is slow here, but for one of each kind."""
    slow = (
        check.requirement is COUNTED
        or (check.requirement is conformance.rounds_go_through and check.part.name != "uniform")
        or (check.requirement in BY_OTHERS and check.part.name not in ONE_OF_EACH_KIND)
    )
    return pytest.param(check, marks=pytest.mark.slow if slow else ())


def checks(part: Part) -> list[conformance.Check]:
    """The checks of a part; clients that are starved are not learned from."""
    learns = strategy_checks.a_run_learns
    return [one for one in conformance.checks(part) if part not in STARVED or one.requirement is not learns]


@pytest.mark.parametrize("check", [quick_or_slow(check) for part in PARTS for check in checks(part)])
def test_conformance(check: conformance.Check) -> None:
    """Whatever a suite can name passes."""
    check()


def test_every_shipped_part_says_what_it_is() -> None:
    """A first line for `asyncfl list`; what is published names its paper; the name finds the class."""
    for member in (member for family in FAMILIES for member in family.members().values()):
        first = (member.__doc__ or "").partition("\n")[0]
        assert first.endswith(".") and len(first) > 20, member
        assert member.family().members()[member.name] is member
        if issubclass(member, Strategy | LocalWork):
            assert re.search(r"\(.*\d{4}.*\)", first), f"{member.name}: the first line names no paper"


NEEDS_ALL = ("malenia", "ringleader")  # a client's update is needed again and again
MAY_STALL = [
    name for name, member in Strategy.members().items() if member.stalled_by is not Strategy.stalled_by
]


@pytest.mark.parametrize("name", MAY_STALL)
def test_permanent_drop_outs_end_early_only_who_needs_all(name: str) -> None:
    """Half of the clients leave for good. Strategies that may not stall are looked at by the suite."""
    away = {"name": "dropouts", "share": 0.5, "at": 4}
    strategy = changed(Strategy.members()[name].model_validate({}))
    record = run(experiment(scenario(availability=away), strategy))
    if name in NEEDS_ALL:
        assert record.status == "stalled"
        assert record.curve[-1]["iteration"] > 0
        return
    assert (record.status, record.reason) == ("done", "budget of client updates")
    assert len(set(record.arrivals["client"][-30:])) == 3


# -- what is wrong is found ----------------------------------------------------------------------------


class Forgetful(ASGD):
    """Counts its steps outside of the server, where no checkpoint looks."""

    taken: ClassVar[list[int]] = [0]

    def receive(self, server: Server, update: Update) -> None:
        self.taken[0] += 1
        server.step(update.delta / self.taken[0] ** 0.5)


class Clipped(ASGD):
    """Shortens long updates and does not say that this is not linear."""

    def receive(self, server: Server, update: Update) -> None:
        server.step(update.delta / update.delta.norm().clamp(min=0.05))


class Stubborn(ASGD):
    """Never steps, so it learns nothing."""

    def receive(self, server: Server, update: Update) -> None:
        pass


class Waiting(ASGD):
    """Waits for everyone and does not say so."""

    def receive(self, server: Server, update: Update) -> None:
        if server.in_flight == 0 and len(server.idle) == server.n:
            server.step(update.delta)


class Pausing(ASGD):
    """Steps at every fourth arrival, until which its clients have nothing to do."""

    def begin(self, server: Server) -> None:
        server.memory.total, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        server.memory.total += update.delta
        server.memory.count += 1
        if server.memory.count == 4:
            server.step(server.memory.total / 4)
            self.begin(server)


class Untuned(ASGD):
    """Declares a rate anew without its range."""

    server_lr: float = 1.0


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (Forgetful, "a_run_repeats_bit_for_bit"),
        (Clipped, "its_steps_are_as_linear_as_it_says"),
        (Stubborn, "a_run_learns"),
        (Waiting, "lost_clients_end_nothing_early"),
        (Pausing, "clients_take_part_as_often_as_it_says"),
        (Untuned, "its_rates_are_tuned"),
    ],
)
def test_what_is_wrong_is_found(wrong: type[Strategy], check: str) -> None:
    """Each fault by the check that is meant for it."""
    [found] = [one for one in conformance.checks(wrong) if one.requirement.__name__ == check]
    with pytest.raises(AssertionError):
        found()


def test_a_wrong_gradient_is_found() -> None:
    """The quadratic's gradient, larger by a hundredth."""

    class Wrong(Quadratic):
        """A quadratic whose full gradient is too long."""

        def world(self, seed: int) -> Any:
            world = super().world(seed)
            right = world.full_gradient
            world.full_gradient = lambda model, client: 1.01 * right(model, client)  # type: ignore[method-assign]
            return world

    found = {
        check.requirement.__name__: check
        for check in conformance.checks(Wrong.model_validate({"centres": CENTRES}))
    }
    found["worlds_of_one_seed_are_equal"]()
    with pytest.raises(AssertionError):
        found["full_gradients_are_those_of_the_losses"]()


def test_a_law_with_another_mean_than_it_says_is_found() -> None:
    """Jobs that take a tenth longer than declared."""

    class Late(Durations.members()["exponential"]):  # type: ignore[misc]
        """Exponential lengths, a tenth too long."""

        def draw(self, mean: float, rng: Any) -> float:
            return 1.1 * super().draw(mean, rng)

    found = {check.requirement.__name__: check for check in conformance.checks(Late)}
    with pytest.raises(AssertionError):
        found["lengths_have_the_means_that_it_says"]()


def test_a_law_that_is_not_exponential_is_found() -> None:
    """Its mean is right, and it inherits that it has no memory."""

    class Even(Durations.members()["exponential"]):  # type: ignore[misc]
        """Uniform lengths, as a kind of exponential ones."""

        def draw(self, mean: float, rng: Any) -> float:
            return rng.uniform(0, 2 * mean)

    found = {check.requirement.__name__: check for check in conformance.checks(Even)}
    found["lengths_have_the_means_that_it_says"]()
    with pytest.raises(AssertionError):
        found["lengths_are_exponential_where_it_says_so"]()
