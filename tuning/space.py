"""What is searched for one strategy: its parameters, and what becomes of the strategy when they are set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from benchmarks.suite.tuning_section import Span
from fl_core.parts import Candidates, Tune
from fl_core.scenario import Scenario
from fl_core.strategies.hyperparameters import (
    FACTOR,
    default_of,
    fields_of,
    must_be_parameter,
    with_parameters,
)
from fl_core.strategies.strategy import Strategy

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Values = dict[str, Any]  # parameter → its value


@dataclass(frozen=True)
class Space:
    """The parameters of a strategy that are searched, each a range or a list of values."""

    strategy: Strategy
    candidates: Mapping[str, Candidates]

    def apply(self, values: Mapping[str, Any], scenario: Scenario) -> Strategy:
        """The strategy with these values; raises ValueError where it refuses them."""
        return with_parameters(self.strategy, values, scenario)

    def grid(self) -> list[Values]:
        """Every combination of values; ValueError if a range has no list of them."""
        if ranges := [name for name, of in self.candidates.items() if isinstance(of, Tune)]:
            raise ValueError(f"a grid needs a list of values for {ranges[0]}, not a range")
        lists = [of for of in self.candidates.values() if not isinstance(of, Tune)]
        return [dict(zip(self.candidates, values, strict=True)) for values in product(*lists)]

    def own(self) -> Values:
        """The values that the strategy has; None for what it has not."""
        fields = fields_of(self.strategy)
        return {name: fields.get(name) for name in self.candidates}

    def usual(self) -> Values:
        """The defaults of its class, which are the paper's."""
        return {name: default_of(self.strategy, name) for name in self.candidates}

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether values lie inside."""
        return all(
            isinstance(values[name], int | float) and of.low <= values[name] <= of.high
            if isinstance(of, Tune)
            else values[name] in of
            for name, of in self.candidates.items()
        )

    def widened(self, values: Mapping[str, Any]) -> Space:
        """The space, widened until it holds these values."""
        wider = {name: _holding(of, values[name]) for name, of in self.candidates.items()}
        return replace(self, candidates=wider)

    def ends(self) -> list[Values]:
        """The corners at which everything is least, and greatest."""
        lists = {name: of.get("choices") or (of["low"], of["high"]) for name, of in self.described().items()}
        return [{name: values[at] for name, values in lists.items()} for at in (0, -1)]

    def whole(self, name: str) -> bool:
        """Whether a parameter is a whole number."""
        return isinstance(fields_of(self.strategy).get(name), int)

    def distributions(self) -> dict[str, BaseDistribution]:
        """The space in Optuna's words."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        found: dict[str, BaseDistribution] = {}
        for name, of in self.described().items():
            if "choices" in of:
                found[name] = CategoricalDistribution(of["choices"])
            else:
                found[name] = IntDistribution(**of) if self.whole(name) else FloatDistribution(**of)
        return found

    def described(self) -> dict[str, dict[str, Any]]:
        """The space as plain data: low, high and log, or choices; only the ends of counts are integers."""
        found: dict[str, dict[str, Any]] = {}
        for name, of in self.candidates.items():
            if isinstance(of, Tune):
                low, high = map(int if self.whole(name) else float, (of.low, of.high))
                found[name] = {"low": low, "high": high, "log": of.log}
            else:
                found[name] = {"choices": list(of)}
        return found


def space_of(
    strategy: Strategy, names: Sequence[str], written: Mapping[str, Span | tuple[Any, ...]]
) -> Space:
    """The space of a strategy: what a suite writes of its parameters, or else what the strategy declares.

    What is declared is widened until it holds the values that the strategy has, and the paper's. `names` are
    those of all strategies of the suite: `fedbuff.buffer` is FedBuff's alone, and without effect in a suite
    that lacks FedBuff. Raises ValueError with a sentence about the key that is wrong.
    """
    stated = Space(strategy, _stated(strategy, names, written))
    if stated.candidates:
        return stated
    own = declared(strategy)
    return own.widened(own.own()).widened(own.usual())


def declared(strategy: Strategy) -> Space:
    """What a strategy says may be searched."""
    space = Space(strategy, strategy.tunable())
    whole = {  # a range of whole numbers has whole ends
        name: Tune(math.ceil(of.low), math.floor(of.high), of.log)
        for name, of in space.candidates.items()
        if isinstance(of, Tune) and space.whole(name)
    }
    return Space(strategy, {**space.candidates, **whole})


def _stated(
    strategy: Strategy, names: Sequence[str], written: Mapping[str, Span | tuple[Any, ...]]
) -> dict[str, Candidates]:
    owners = {*names, *Strategy.members()}
    chosen: dict[str, Candidates] = {}
    for key, of in written.items():
        owner = next((name for name in owners if key.startswith(f"{name}.")), None)
        if owner not in (None, strategy.reference()):
            continue
        name = key.removeprefix(f"{owner}.")
        must_be_parameter(strategy, name)
        chosen[name] = Tune(of.low, of.high, of.log) if isinstance(of, Span) else tuple(dict.fromkeys(of))
    if FACTOR in chosen and "local_lr" in chosen:
        raise ValueError(f"{FACTOR} sets the local rate: leave out either it or local_lr")
    return chosen


def _holding(of: Candidates, value: Any) -> Candidates:
    if isinstance(of, Tune):
        fits = isinstance(value, int | float) and (value > 0 or not of.log)
        return replace(of, low=min(of.low, value), high=max(of.high, value)) if fits else of
    return of if value is None or value in of else (*of, value)
