"""Hyper-parameters of a strategy by dotted key, such as `local.steps`: values, defaults, search spaces.

Searches (`tuning/`) and the leaderboard take points of a `Space`; a suite of tuned strategies (`tuned.py`)
sets the chosen values by `with_parameters`.

Fixed: dotted keys, which tuned values, studies and boards store; and the points of `grid` and `sobol`, which
studies of the leaderboard have tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, get_args

from fl_core.parts import Candidates, Part, Tune, find
from fl_core.recorded_names import end_near
from fl_core.scenario import Scenario
from fl_core.server.optimizers import ServerOptimizer
from fl_core.strategies.strategy import Strategy
from fl_core.text import nearest

Values = dict[str, Any]  # parameter → its value

FACTOR = "c"  # the parameter that sets a local rate of c·√(n/T)
OPTIMIZER = "server.name"  # the parameter that chooses the server's optimiser
UNDER = "server_lr."  # begins the key of the server's rate under one optimiser, such as `server_lr.adam`


def fields_of(strategy: Strategy) -> dict[str, Any]:
    """Return a strategy's hyper-parameters by dotted key, fractions as numbers: `local_lr`, `local.steps`."""
    fields: dict[str, Any] = {}
    for key, value in strategy:
        if isinstance(value, Part):
            fields[f"{key}.name"] = value.reference()
            fields |= {f"{key}.{inner}": part for inner, part in value}
        else:
            fields[key] = value
    return {name: _number(value) for name, value in fields.items()}


def default_of(strategy: Strategy, key: str) -> Any:
    """Return the default of a hyper-parameter by dotted key; None if missing."""
    head, dot, name = key.partition(".")
    field = type(strategy).model_fields.get(head)
    if dot and field is not None and name == "name":
        default = field.get_default()
        return default and default.reference()
    if dot:
        field = type(getattr(strategy, head)).model_fields.get(name)
    return None if field is None or field.is_required() else _number(field.get_default())


def usual_of(strategy: Strategy, key: str) -> Any:
    """Return the value of a hyper-parameter in the strategy class's defaults, also in a part's fields."""
    head, dot, name = key.partition(".")
    part = type(strategy).model_fields[head].get_default() if dot and name != "name" else None
    if part is not None and type(part) is type(getattr(strategy, head)):
        return _number(getattr(part, name))
    return default_of(strategy, key)


def _number(value: Any) -> Any:
    """Return a fraction as a float, for JSON and for search ranges; any other value unchanged."""
    return float(value) if isinstance(value, Fraction) else value


def must_be_parameters(strategy: Strategy, names: Iterable[str]) -> None:
    """Raise ValueError unless each name is the dotted key of a hyper-parameter, or `c`."""
    parameters = [*fields_of(strategy), FACTOR]
    for name in names:
        if name not in parameters:
            hint = f"{nearest(name, parameters)} Available: {', '.join(parameters)}"
            raise ValueError(f"{name}: {strategy.label()} has no such parameter{hint}")


def with_parameters(strategy: Strategy, values: Mapping[str, Any], scenario: Scenario) -> Strategy:
    """Return the strategy with other values of some hyper-parameters, by dotted key.

    `c` sets η_l = c·√(n/T), n clients and T the budget's server iterations, or its updates where it has none.

    Raises:
        ValueError: There is no such hyper-parameter, or the strategy refuses a value.
    """
    fields: dict[str, Any] = dict(strategy)
    parts: dict[str, dict[str, Any]] = {}
    must_be_parameters(strategy, values)
    for name, value in values.items():
        if name == FACTOR:
            if not isinstance(value, int | float):
                raise ValueError(f"{FACTOR}: must be a number, not {value!r}")
            horizon = scenario.budget.iterations or scenario.budget.updates
            if horizon is None:
                raise ValueError(f"{FACTOR}: needs budget.iterations or budget.updates, the T of c·√(n/T)")
            fields["local_lr"] = value * math.sqrt(scenario.problem.clients / horizon)
        else:
            head, dot, inner = name.partition(".")
            if dot:
                parts.setdefault(head, {})[inner] = value
            else:
                fields[name] = value
    for head, changes in parts.items():
        part: Part = getattr(strategy, head)
        name = changes.get("name", part.reference())
        cls = type(part) if name == part.reference() else part.family()  # parts of a family share its fields
        fields[head] = {"name": name, **{key: getattr(part, key) for key in cls.model_fields}, **changes}
    return type(strategy)(**fields)


class ServerRates(Tune):
    """The range of η_g under any of the searched server optimisers, and under each by name."""

    under: dict[str, Candidates]


@dataclass(frozen=True)
class Space:
    """The searched parameters of a strategy, each a range or a list of values."""

    strategy: Strategy
    candidates: Mapping[str, Candidates]

    def apply(self, values: Mapping[str, Any], scenario: Scenario) -> Strategy:
        """Return the strategy with the given values.

        Args:
            values: Parameter → its value.
            scenario: The setting, on which a rate c·√(n/T) depends.

        Raises:
            ValueError: The strategy refuses them.
        """
        return with_parameters(self.strategy, values, scenario)

    def grid(self) -> list[Values]:
        """Return every combination of values.

        Raises:
            ValueError: A range has no list of values.
        """
        if ranges := [name for name, candidate in self.candidates.items() if isinstance(candidate, Tune)]:
            raise ValueError(f"a grid needs a list of values for {ranges[0]}, not a range")
        lists = [candidate for candidate in self.candidates.values() if not isinstance(candidate, Tune)]
        return [dict(zip(self.candidates, values, strict=True)) for values in product(*lists)]

    def sobol(self, count: int, seed: int) -> list[Values]:
        """Return points of a scrambled Sobol sequence [count]; a power of 2 fills the space evenly.

        Source:
            Owen, "Scrambling Sobol' and Niederreiter–Xing points", J. Complexity 1998.
        """
        from scipy.stats import qmc

        power = 1 << (count - 1).bit_length()  # of fewer SciPy warns
        unit = qmc.Sobol(len(self.candidates), rng=seed).random(power)
        return [self.at(dict(zip(self.candidates, map(float, row), strict=True))) for row in unit[:count]]

    def at(self, shares: Mapping[str, float]) -> Values:
        """Return the values at shares of all ranges and lists."""
        candidates = dict(self.candidates)
        if isinstance(rates := candidates.get("server_lr"), ServerRates):
            optimizer = self._at(OPTIMIZER, candidates[OPTIMIZER], shares[OPTIMIZER])
            candidates["server_lr"] = rates.under[optimizer]
        return {name: self._at(name, candidate, shares[name]) for name, candidate in candidates.items()}

    def _at(self, name: str, candidate: Candidates, share: float) -> Any:
        """Return the value at a share of a parameter's range or list."""
        is_integer = self.whole(name)
        if not isinstance(candidate, Tune):
            return candidate[int(share * len(candidate))]
        half = is_integer / 2  # all whole numbers have ranges of length 1, the ends too
        low, high = candidate.low - half, candidate.high + half
        value = low * (high / low) ** share if candidate.log else low + (high - low) * share
        within = min(max(value, candidate.low), candidate.high)
        return round(within) if is_integer else within

    def current(self) -> Values:
        """Return the strategy's values; None for missing parameters."""
        fields = fields_of(self.strategy)
        return {name: fields.get(name) for name in self.candidates}

    def usual(self) -> Values:
        """Return the defaults of the strategy's class, from the paper."""
        return {name: usual_of(self.strategy, name) for name in self.candidates}

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether every value lies in the parameter's range or list."""
        return all(
            isinstance(values[name], int | float) and candidate.low <= values[name] <= candidate.high
            if isinstance(candidate, Tune)
            else values[name] in candidate
            for name, candidate in self.candidates.items()
        )

    def widened(self, values: Mapping[str, Any]) -> Space:
        """Return the space with ranges and lists extended to hold the given values."""
        wider = {name: _holding(candidate, values[name]) for name, candidate in self.candidates.items()}
        return replace(self, candidates=wider)

    def ends(self) -> list[Values]:
        """Return the corners of the space, all parameters lowest and all highest."""
        described = self.described().items()
        lists = {name: spec.get("choices") or (spec["low"], spec["high"]) for name, spec in described}
        return [{name: values[at] for name, values in lists.items()} for at in (0, -1)]

    def whole(self, name: str) -> bool:
        """Return whether a parameter is a whole number."""
        head, _, inner = name.rpartition(".")
        field = type(getattr(self.strategy, head) if head else self.strategy).model_fields.get(inner)
        kinds = () if field is None else (field.annotation, *get_args(field.annotation))
        return any(kind is int or get_args(kind)[:1] == (int,) for kind in kinds)

    def edge(self, name: str, value: Any) -> str:
        """Return the end of the search range near a value, `lower` or `upper`; empty if neither is near.

        The only value of a rate under an optimiser is no edge.
        """
        candidate = self.candidates[name]
        if isinstance(candidate, ServerRates) and (value,) in candidate.under.values():
            return ""
        if not isinstance(value, int | float):
            return ""
        counts = self.whole(name)
        if isinstance(candidate, Tune):
            return end_near(value, candidate.low, candidate.high, log=candidate.log, counts=counts)
        numbers = [choice for choice in candidate if isinstance(choice, int | float)]
        if len(numbers) < len(candidate):
            return ""
        return end_near(value, min(numbers), max(numbers), listed=True, counts=counts)

    def described(self) -> dict[str, dict[str, Any]]:
        """Return the space as plain data: low, high and log, or choices; only a count has whole ends."""
        described: dict[str, dict[str, Any]] = {}
        for name, candidate in self.candidates.items():
            if isinstance(candidate, Tune):
                low, high = map(int if self.whole(name) else float, (candidate.low, candidate.high))
                described[name] = {"low": low, "high": high, "log": candidate.log}
            else:
                described[name] = {"choices": list(candidate)}
        return described


def server_rates(under: Mapping[str, Candidates]) -> ServerRates:
    """Return the range of η_g, from the candidates under each server optimiser by name."""
    ends = [
        (field.low, field.high) if isinstance(field, Tune) else (min(field), max(field))
        for field in under.values()
    ]
    lows, highs = zip(*ends, strict=True)
    return ServerRates(low=min(lows), high=max(highs), under=dict(under))


def declared(strategy: Strategy, optimizers: Candidates = ()) -> Space:
    """Return the space declared by a strategy, η_g in the range of the server optimiser.

    Args:
        strategy: Its values are not looked at.
        optimizers: Names of the server optimisers that are searched; none: its own.
    """
    space = Space(strategy, {**strategy.tunable(), "server_lr": _server_rates(strategy, optimizers)})
    integer_ranges = {  # a range of whole numbers has whole ends
        name: Tune(math.ceil(candidate.low), math.floor(candidate.high), candidate.log)
        for name, candidate in space.candidates.items()
        if isinstance(candidate, Tune) and space.whole(name)
    }
    return Space(strategy, {**space.candidates, **integer_ranges})


def _server_rates(strategy: Strategy, optimizers: Candidates) -> Candidates:
    """Return the candidates for η_g under the given server optimisers; none: under the strategy's own."""
    range_of_class = strategy.tunable()["server_lr"]
    if not optimizers or isinstance(optimizers, Tune) or not isinstance(range_of_class, Tune):
        return strategy.server.rates or range_of_class
    under = {str(name): find(ServerOptimizer, name).rates or range_of_class for name in optimizers}
    return server_rates(under)


def _holding(candidate: Candidates, value: Any) -> Candidates:
    """Return the candidates extended to hold a value; unchanged for a missing value or another kind."""
    if not isinstance(candidate, Tune):
        return candidate if value is None or value in candidate else (*candidate, value)
    if not isinstance(value, int | float) or (value <= 0 and candidate.log):
        return candidate
    return Tune(min(candidate.low, value), max(candidate.high, value), candidate.log)
