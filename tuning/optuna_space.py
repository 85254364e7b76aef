"""The search space of a strategy, from suite and strategy; the first points; the form for Optuna.

`tuning/plan.py` calls it for each study. Ranges come from the suite's `tuning.space`, or from the `Tune(...)`
of the fields (of rates: `fl_core/tuning_ranges.py`). `Space` itself is in
`fl_core/strategies/hyperparameters.py`.

Fixed: the space and the first points, which are part of the identity of stored studies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from benchmarks.suite.fields import Tuning
from benchmarks.suite.validation_errors import reason
from fl_core.experiment import Experiment
from fl_core.parts import Candidates, Tune
from fl_core.recorded_names import Origin
from fl_core.scenario import Scenario
from fl_core.strategies.hyperparameters import (
    FACTOR,
    OPTIMIZER,
    UNDER,
    Space,
    Values,
    declared,
    must_be_parameters,
    server_rates,
)
from fl_core.strategies.strategy import Strategy

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def space_of(
    strategy: Strategy,
    names: Sequence[str],
    written: Mapping[str, Candidates],
    *,
    declared_too: bool = False,
) -> Space:
    """Return the search space of a strategy: the suite's, or by default the strategy's declared space.

    A declared space is widened until it holds the strategy's values in the suite, and the paper's.

    Args:
        strategy: As in the suite.
        names: Of all strategies of the suite, to tell a key of another strategy, such as `fedbuff.buffer`.
        written: `tuning.space` of the suite: parameter, or strategy.parameter → candidates.
        declared_too: Whether the suite's parameters are searched in addition to the declared ones.

    Raises:
        ValueError: A key is wrong; the message is a sentence about it.
    """
    stated = Space(strategy, _stated(strategy, names, written))
    if stated.candidates and not declared_too:
        return stated
    space = declared(strategy, stated.candidates.get(OPTIMIZER, ()))
    if stated.candidates:
        return Space(strategy, {**space.candidates, **stated.candidates})
    return space.widened(space.current()).widened(space.usual())


def _stated(
    strategy: Strategy, names: Sequence[str], written: Mapping[str, Candidates]
) -> dict[str, Candidates]:
    """Return the candidates in the suite for the parameters of a strategy; ValueError for an invalid key."""
    owners = {*names, *Strategy.members()}
    chosen: dict[str, Candidates] = {}
    under: dict[str, Candidates] = {}  # server optimiser → candidates of η_g
    for key, candidates in written.items():
        owner = next((name for name in owners if key.startswith(f"{name}.")), None)
        if owner not in (None, strategy.reference()):
            continue
        name = key.removeprefix(f"{owner}.")
        if name.startswith(UNDER):
            under[name.removeprefix(UNDER)] = candidates
            continue
        if name == OPTIMIZER and strategy.refuses_optimizer:
            continue
        chosen[name] = candidates if isinstance(candidates, Tune) else tuple(dict.fromkeys(candidates))
    must_be_parameters(strategy, chosen)
    if under and not strategy.refuses_optimizer:
        if lacking := sorted({*map(str, chosen.get(OPTIMIZER, ()))} ^ {*under}):
            raise ValueError(
                f"{UNDER}{lacking[0]}: give a rate for each optimiser of {OPTIMIZER}, and for no other"
            )
        chosen["server_lr"] = server_rates(under)
    if FACTOR in chosen and "local_lr" in chosen:
        raise ValueError(f"{FACTOR} and local_lr both set the local rate: leave out one of them")
    return chosen


def first_points(space: Space, spec: Tuning) -> Iterator[tuple[Origin, Values]]:
    """Return the points to try before the sampler draws: the suite's values, then the paper's.

    For the samplers grid and sobol these are all points. Raises ValueError for a grid with a range.
    """
    if spec.sampler == "grid":
        yield from ((Origin.GRID, values) for values in space.grid())
        return
    if spec.sampler == "sobol":
        yield from ((Origin.SAMPLER, values) for values in space.sobol(spec.trials, spec.scramble))
        return
    current, usual = space.current(), space.usual()
    if space.holds(current):
        yield Origin.PAPER, current
    if space.holds(usual) and usual != current:
        yield Origin.PAPER, usual


def must_fit(space: Space, values: Values, scenario: Scenario, seed: int) -> None:
    """Raise ValueError if the strategy cannot be simulated with the given values."""
    try:
        Experiment(scenario=scenario, strategy=space.apply(values, scenario), seed=seed)
    except ValidationError as error:
        message = reason(error.errors(include_url=False)[0])
        parameters = ", ".join(f"{name} {value}" for name, value in values.items())
        raise ValueError(f"{space.strategy.label()} with {parameters}: {message}") from None
    except ValueError as error:
        raise ValueError(f"{space.strategy.label()}: {error}") from None


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return a space in Optuna's words."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    distributions: dict[str, BaseDistribution] = {}
    for name, candidates in space.described().items():
        if "choices" in candidates:
            distributions[name] = CategoricalDistribution(candidates["choices"])
        else:
            kind = IntDistribution if space.whole(name) else FloatDistribution
            distributions[name] = kind(**candidates)
    return distributions
