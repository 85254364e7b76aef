"""What is searched for one strategy: what a suite writes of its parameters, and the space for Optuna."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fl_core.parts import Candidates, Tune
from fl_core.strategies.hyperparameters import FACTOR, OPTIMIZER, Space, declared, must_be_parameter
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
    """The space of a strategy: what a suite writes of its parameters, or else what the strategy declares.

    With `declared_too`, both; of a parameter in both, what the suite writes.

    What is declared is widened until it holds the values that the strategy has, and the paper's. `names` are
    those of all strategies of the suite: `fedbuff.buffer` is FedBuff's alone, and without effect in a suite
    that lacks FedBuff. Raises ValueError with a sentence about the key that is wrong.
    """
    stated = Space(strategy, _stated(strategy, names, written))
    if stated.candidates and not declared_too:
        return stated
    own = declared(strategy, stated.candidates.get(OPTIMIZER, ()))
    if stated.candidates:
        return Space(strategy, {**own.candidates, **stated.candidates})
    return own.widened(own.own()).widened(own.usual())


def _stated(
    strategy: Strategy, names: Sequence[str], written: Mapping[str, Candidates]
) -> dict[str, Candidates]:
    owners = {*names, *Strategy.members()}
    chosen: dict[str, Candidates] = {}
    for key, candidates in written.items():
        owner = next((name for name in owners if key.startswith(f"{name}.")), None)
        if owner not in (None, strategy.reference()):
            continue
        name = key.removeprefix(f"{owner}.")
        must_be_parameter(strategy, name)
        if name == OPTIMIZER and strategy.refuses_optimizer:
            continue
        chosen[name] = candidates if isinstance(candidates, Tune) else tuple(dict.fromkeys(candidates))
    if FACTOR in chosen and "local_lr" in chosen:
        raise ValueError(f"{FACTOR} sets the local rate: leave out either it or local_lr")
    return chosen


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
