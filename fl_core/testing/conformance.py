"""The conformance suite: requirements on every part, shipped or a user's own.

    @pytest.mark.parametrize("check", conformance.checks(MyStrategy))
    def test_my_strategy(check):
        check()

A failed check raises an AssertionError with a sentence. No module of this folder needs pytest.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fl_core.compression import Coding
from fl_core.local_work import LocalWork
from fl_core.parts import Part
from fl_core.problems.partitions import Partition
from fl_core.problems.problem import Problem
from fl_core.server.optimizers import ServerOptimizer
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.sampling import Sampling
from fl_core.strategies.strategy import Strategy
from fl_core.testing import law_checks, problem_checks, strategy_checks
from fl_core.testing.check_experiments import experiment, must, scenario, without_name
from fl_core.timing.availability import Availability
from fl_core.timing.durations import Durations
from fl_core.timing.network import PerClient

SHORTEST = 20  # characters of an informative first line


@dataclass(frozen=True)
class Check:
    """A requirement applied to a part, as a test without arguments."""

    requirement: Callable[[Any], None]
    part: Part

    def __call__(self) -> None:
        """Run the check; raise AssertionError for a failure."""
        self.requirement(self.part)

    @property
    def __name__(self) -> str:
        """The part and the requirement: pytest's name of the case."""
        return f"{self.part.reference().rpartition(':')[2]}: {self.requirement.__name__.replace('_', ' ')}"


def checks(part: Part | type[Part]) -> list[Check]:
    """Return all checks of a part; a class stands for its defaults.

    Raises:
        ValueError: A field of the class has no default.
    """
    chosen = part if isinstance(part, Part) else part.model_validate({})
    requirements = (says_what_it_is, its_fields_are_json, *_of_family(chosen))
    return [Check(requirement, chosen) for requirement in requirements]


def _of_family(part: Part) -> tuple[Callable[[Any], None], ...]:
    """Return the checks of the family of a part."""
    families: dict[type[Part], tuple[Callable[[Any], None], ...]] = {
        Strategy: strategy_checks.CHECKS,
        Sampling: (rounds_go_through,),
        LocalWork: (jobs_go_through,),
        ServerOptimizer: (steps_go_through,),
        Coding: (law_checks.messages_have_the_mean_and_variance_that_it_says, messages_go_through),
        Durations: law_checks.DURATIONS,
        Availability: (
            law_checks.absences_follow_one_another,
            law_checks.runs_go_through_with_these_absences,
        ),
        PerClient: (law_checks.each_client_has_its_number,),
        Partition: (law_checks.data_are_dealt_out_as_promised,),
        Problem: problem_checks.CHECKS,
    }
    return families.get(part.family(), ())


def says_what_it_is(part: Part) -> None:
    """The first line of the docstring is a sentence, for `asyncfl list` and for the pages."""
    first = (inspect.getdoc(type(part)) or "").partition("\n")[0]
    must(
        len(first) > SHORTEST and first.endswith("."),
        f"{type(part).__name__} needs a docstring: a first line of more than {SHORTEST} characters, "
        "with a full stop",
    )
    must(bool(part.label()), "its label is empty")


def its_fields_are_json(part: Part) -> None:
    """Fields → JSON data → fields is the identity."""
    must(type(part).model_validate(without_name(part)) == part, "its fields as JSON data give another part")


def rounds_go_through(sampling: Sampling) -> None:
    """FedAvg with the sampling passes the checks of a strategy, except on the limit, possibly biased."""
    strategy = FedAvg(sampling=sampling)
    for check in strategy_checks.CHECKS:
        if check is not strategy_checks.a_run_learns:
            check(strategy)


def jobs_go_through(local: LocalWork) -> None:
    """Asynchronous SGD with the local work repeats, equally in stacks and after a resume."""
    _goes_through(local=local)


def steps_go_through(optimizer: ServerOptimizer) -> None:
    """Asynchronous SGD with the server optimiser repeats, with steps as linear as declared."""
    _goes_through(server=optimizer)
    strategy_checks.its_steps_are_as_linear_as_it_says(ASGD(server=optimizer))


def messages_go_through(coding: Coding) -> None:
    """Asynchronous SGD with coded updates, and coded models where possible, repeats."""
    models = {} if coding.refuses_models() else {"downlink": coding}
    _goes_through(uplink=coding, **models)


def _goes_through(**fields: Part) -> None:
    """Check a run of asynchronous SGD with the given fields: repeated, in stacks, resumed."""
    described = experiment(scenario())
    strategy = described.strategy.model_copy(update=fields)
    strategy_checks.a_run_repeats_bit_for_bit(strategy)
    strategy_checks.is_the_same_in_stacks(described.model_copy(update={"strategy": strategy}))
    strategy_checks.is_the_same_when_resumed(strategy)
