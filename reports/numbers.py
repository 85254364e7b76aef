"""Numbers as text for pages and the terminal, and `Measure`: a metric with methods that write its values.

Fixed: the forms of numbers on published pages, byte for byte (`tox run -e reproduce`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import floor, inf, isfinite, isnan, log10

from benchmarks.mlflow_store.run_result import RunResult
from fl_core.metrics import Metric, named

MISSING = "–"
INFINITE = "∞"
MAX_SEEDS = 1000  # needed seeds that are written as a number; more are impractical


def number(value: float, digits: int = 4) -> str:
    """Return a number with significant digits, thousands set apart: 0.01235, 12.35, 12,346, 1.2e-07."""
    if isnan(value):
        return MISSING
    if not isfinite(value):
        return INFINITE if value > 0 else f"−{INFINITE}"
    if value == 0:
        return "0"
    size = floor(log10(abs(value)))
    if size < -4 or size > 9:
        return minus(f"{value:.{digits - 1}e}")
    return minus(f"{value:,.{max(0, digits - 1 - size)}f}")


def interval(low: float, high: float, write: Callable[[float], str] = number) -> str:
    """Return an interval in brackets; `[no interval]` where both ends are infinite."""
    return "[no interval]" if low == -inf and high == inf else f"[{write(low)}, {write(high)}]"


def count(value: float) -> str:
    """Return a number of things: 1,240, or 1,240.5 where the median lies between two."""
    if isnan(value) or not isfinite(value):
        return number(value)
    return minus(f"{value:,.0f}" if value == int(value) else f"{value:,.1f}")


def moment(value: float) -> str:
    """Return a time read off an evaluation, as text: 7, 12.5, 0.125."""
    return count(value) if isfinite(value) and value == int(value) else number(value, 3)


def percent(share: float) -> str:
    """Return a share in per cent, without the sign: 93.4."""
    return MISSING if isnan(share) else minus(f"{100 * share:.1f}")


def p_value(p: float) -> str:
    """Return a p-value in words: p = 0.012, p < 0.001."""
    return "p < 0.001" if p < 0.001 else f"p = {number(p, 2)}"


def short(value: float) -> str:
    """Return a number with as few digits as needed: 0.85, 85, 1e-06."""
    return INFINITE if value == inf else minus(f"{value:g}")


def tick(value: float) -> str:
    """Return a number at an axis: 0.05, 500, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return minus(f"{value / (1e3 if letter == 'k' else size):g}{letter}")
    return short(value)


def minus(text: str) -> str:
    """Return a number written with a real minus sign."""
    return text.replace("-", "−")


def rough(n: int) -> str:
    """Return an estimated number with two digits: 7, 34, 1,200."""
    size = max(0, len(str(n)) - 2)
    return f"{round(n, -size):,}"


def size(count: float) -> str:
    """Return bytes in readable units: 0, 640 B, 31 kB, 4.2 MB, 1.5 GB."""
    return _with_prefix(count, "B", ".0f")


def energy(joules: float) -> str:
    """Return joules in readable units: 0, 640 J, 31 kJ, 4.2 MJ."""
    return _with_prefix(joules, "J", ".3g")


def _with_prefix(amount: float, unit: str, small: str) -> str:
    """Return an amount with the unit's prefix; `small` is the format of amounts below a thousand."""
    if not isfinite(amount):
        return number(amount)
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= factor:
            value = amount / factor
            return f"{value:.1f} {prefix}{unit}" if value < 10 else f"{value:,.0f} {prefix}{unit}"
    return f"{amount:{small}} {unit}" if amount else "0"


def about_seeds(needed: int) -> str:
    """Return an estimated number of seeds in words."""
    return f"about {rough(needed)} seeds" if needed <= MAX_SEEDS else f"more than {MAX_SEEDS:,} seeds"


@dataclass(frozen=True, slots=True)
class Measure(Metric):
    """A metric with methods to write values as text."""

    def text(self, value: float) -> str:
        """Return a value as text, without the unit."""
        return percent(value) if self.share else number(value)

    def with_unit(self, value: float) -> str:
        """Return a value as text, with the sign of per cent for a share."""
        return f"{self.text(value)} %" if self.share else self.text(value)

    def round_text(self, value: float) -> str:
        """Return a round value, for example a target, as text with the unit: 85 %, 0.05."""
        if not self.share:
            return short(value)
        return f"{short(round(100 * value, 10))}\N{NO-BREAK SPACE}%"


def measure(name: str, declared: Sequence[Metric] = (), higher: bool | None = None) -> Measure:
    """Return the metric of a name as declared by the runs; `higher` is the direction if undeclared."""
    metric = named(name, declared)
    if higher is not None and name not in {declaration.name for declaration in declared}:
        metric = replace(metric, higher=higher)
    return Measure(**asdict(metric))


def measure_of(run: RunResult, name: str) -> Measure:
    """Return a metric of a run."""
    return measure(name, run.declared, run.higher_is_better if name == run.metric else None)
