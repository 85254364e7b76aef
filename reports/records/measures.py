"""Metrics as pages and tables show them, by the declarations that were recorded with the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from fl_core.metrics import Metric, named
from reports import numbers


@dataclass(frozen=True, slots=True)
class Measure(Metric):
    """A metric with its values as text."""

    def text(self, value: float) -> str:
        """A value, without its unit."""
        return numbers.percent(value) if self.share else numbers.number(value)

    def round_text(self, value: float) -> str:
        """A round value, such as a target, with its unit: 85 %, 0.05."""
        return (
            f"{numbers.short(round(100 * value, 10))}\N{NO-BREAK SPACE}%"
            if self.share
            else numbers.short(value)
        )


def measure(name: str, declared: Sequence[Metric] = (), higher: bool | None = None) -> Measure:
    """The metric of that name as the runs declare it; `higher` is the direction in older runs."""
    if all(one.name != name for one in declared) and higher is not None:
        return Measure(**asdict(replace(named(name), higher=higher)))
    return Measure(**asdict(named(name, declared)))
