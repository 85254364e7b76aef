"""Metrics for pages and tables, as declared in the recorded runs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from fl_core.metrics import Metric, named
from reports import numbers


@dataclass(frozen=True, slots=True)
class Measure(Metric):
    """A metric with methods to write values as text."""

    def text(self, value: float) -> str:
        """Return a value as text, without the unit."""
        return numbers.percent(value) if self.share else numbers.number(value)

    def with_unit(self, value: float) -> str:
        """Return a value as text, with the sign of per cent for a share."""
        return f"{self.text(value)} %" if self.share else self.text(value)

    def round_text(self, value: float) -> str:
        """Return a round value, for example a target, as text with the unit: 85 %, 0.05."""
        if not self.share:
            return numbers.short(value)
        return f"{numbers.short(round(100 * value, 10))}\N{NO-BREAK SPACE}%"


def measure(name: str, declared: Sequence[Metric] = (), higher: bool | None = None) -> Measure:
    """Return the metric of a name as declared by the runs; `higher` is the direction if undeclared."""
    metric = named(name, declared)
    if all(other.name != name for other in declared) and higher is not None:
        metric = replace(metric, higher=higher)
    return Measure(**asdict(metric))
