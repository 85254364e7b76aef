"""Hyper-parameters of a strategy by dotted key, such as `local.steps`: values, defaults, replacements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fl_core.parts import Part
from fl_core.scenario import Scenario
from fl_core.strategies.strategy import Strategy
from fl_core.text import nearest

FACTOR = "c"  # the parameter that sets a local rate of c·√(n/T)


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
    """Return the default of a hyper-parameter by dotted key; None where there is none."""
    head, dot, name = key.partition(".")
    field = type(strategy).model_fields.get(head)
    if dot and field is not None and name == "name":
        return field.get_default().reference()
    if dot:
        field = type(getattr(strategy, head)).model_fields.get(name)
    return None if field is None or field.is_required() else _number(field.get_default())


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def must_be_parameter(strategy: Strategy, name: str) -> None:
    """Raise ValueError unless `name` is the dotted key of a hyper-parameter, or `c`."""
    known = [*fields_of(strategy), FACTOR]
    if name not in known:
        raise ValueError(f"{name}: {strategy.label()} has no such parameter{nearest(name, known)}")


def with_parameters(strategy: Strategy, values: Mapping[str, Any], scenario: Scenario) -> Strategy:
    """The strategy with other values of some hyper-parameters, by dotted key; ValueError if it refuses them.

    `c` sets η_l = c·√(n/T), n clients and T the budget's server iterations, or its updates where it has none.
    """
    own: dict[str, Any] = strategy.model_dump()
    for name, value in values.items():
        must_be_parameter(strategy, name)
        if name == FACTOR:
            if not isinstance(value, int | float):
                raise ValueError(f"{FACTOR}: must be a number, not {value!r}")
            horizon = scenario.budget.iterations or scenario.budget.updates
            if horizon is None:
                raise ValueError(f"{FACTOR}: needs a budget of iterations or updates, the T of c·√(n/T)")
            own["local_lr"] = value * math.sqrt(scenario.problem.clients / horizon)
        else:
            head, dot, inner = name.partition(".")
            target = own[head] if dot else own
            target[inner if dot else name] = value
    return Strategy.model_validate(own)
