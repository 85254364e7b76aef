"""The search space of a study: parameters, each in a range or among choices."""

from dataclasses import dataclass
from math import isfinite, log, nan, sqrt
from typing import Any

from fl_core.schema import EDGE_FRACTION
from reports.records.values import clean, number

Value = float | str | bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A searched parameter: a range from `low` to `high`, or `choices`, sorted if numbers."""

    name: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    choices: tuple[Value, ...] = ()
    counts: bool = False  # whether it counts something: whole, and 1 is the least there is

    @property
    def ordered(self) -> bool:
        """True if the values are numbers, hence the parameter has ends."""
        return all(map(is_number, self.choices))

    def read(self, text: str) -> Value | None:
        """Return the value stored as text in MLflow; None if not a value of the parameter."""
        if self.choices:
            return next((choice for choice in self.choices if str(choice) == text), None)
        value = number(text)
        return None if value is None or (self.log and value <= 0) else value

    def place(self, value: Value) -> float:
        """Return a value's place from 0 to 1: in the range, linear or log, or by rank among choices."""
        if self.choices:
            return self.choices.index(value) / max(1, len(self.choices) - 1)
        at = float(value)
        if self.log:
            return log(at / self.low) / log(self.high / self.low)
        return (at - self.low) / (self.high - self.low)

    def coordinates(self, value: Value) -> list[float]:
        """Return a value in a space with distances: 1 from end to end, and between any two names."""
        if self.ordered:
            return [self.place(value)]
        return [(choice == value) / sqrt(2) for choice in self.choices]

    def at(self, share: float) -> list[float]:
        """Return the coordinates of the quantile `share`, in [0, 1), of the range or choices."""
        if not self.choices:
            return [share]
        return self.coordinates(self.choices[int(share * len(self.choices))])

    def to_edge(self, value: Value) -> float:
        """Return the share of the range between a value and the nearest end; NaN without two ends."""
        if not self.ordered or len(self.choices) == 1:
            return nan
        place = self.place(value)
        return max(0.0, min(place, 1 - place))

    def edge(self, value: Value) -> str:
        """Return `lower` or `upper` for a value within 5 % of an end, or at a list's end; otherwise empty.

        A count's 1 is no edge: there is nothing below it that could be better.
        """
        if not self.to_edge(value) <= (0 if self.choices else EDGE_FRACTION) or (self.counts and value == 1):
            return ""
        return "lower" if self.place(value) < 0.5 else "upper"


def read_parameter(name: str, spec: Any) -> Parameter | None:
    """Return a parameter from the description of the study; None without a valid description."""
    if not isinstance(spec, dict):
        return None
    if isinstance(choices := spec.get("choices"), list) and choices:
        values = tuple(clean(value) if isinstance(value, str) else value for value in choices)
        ordered = tuple(sorted(values)) if all(map(is_number, values)) else values
        return Parameter(clean(name), choices=ordered)
    low, high, in_log = (spec.get(key, 0) for key in ("low", "high", "log"))
    if not (is_number(low) and is_number(high)) or not low < high or (in_log and low <= 0):
        return None
    counts = isinstance(low, int) and isinstance(high, int) and low >= 1
    return Parameter(clean(name), float(low), float(high), bool(in_log), counts=counts)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
