"""Virtual time as an integer of ticks, so that ties and ⌈τ_i/Δt⌉ never depend on rounding.

The loop counts in ticks (docs/rules.md, rule 11); records and pages show units of virtual time. `Lengths`
(`durations`) chooses a tick for which all exact times of a run are whole numbers.

Fixed: `MICRO` and both roundings, from which the ticks of all runs follow.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from numbers import Rational

# The tick of laws that draw their times, in units of virtual time.
MICRO = Fraction(1, 1_000_000)


class VirtualClock:
    """Virtual time in ticks of length `unit`."""

    def __init__(self, unit: Fraction) -> None:
        if unit <= 0:
            raise ValueError(f"a clock's unit must be positive, not {unit}")
        self.unit = unit
        self._numerator, self._denominator = unit.as_integer_ratio()

    def ticks(self, time: Fraction) -> int:
        """Return `time` in ticks, exactly.

        Raises:
            ValueError: `time` is not a whole number of ticks.
        """
        ticks, rest = divmod(time.numerator * self._denominator, time.denominator * self._numerator)
        if rest:
            raise ValueError(f"time {time} is no whole number of ticks of {self.unit}")
        return int(ticks)  # of NumPy's integers as well

    def round(self, time: float | Fraction) -> int:
        """Return `time` in ticks, to the nearest (a half up), and at least 1."""
        numerator, denominator = time.as_integer_ratio()
        dividend, divisor = 2 * numerator * self._denominator, denominator * self._numerator
        return max(1, (dividend + divisor) // (2 * divisor))

    def time(self, ticks: int) -> float:
        """Return ticks as virtual time, to the nearest float."""
        return ticks * self._numerator / self._denominator


def exact(times: Iterable[Fraction], giver: str) -> tuple[Fraction, ...]:
    """Return checked times for the clock to hit exactly.

    Raises:
        TypeError: One is neither a whole number nor a Fraction, or below 0; the text names the giver.
    """
    values = tuple(times) if isinstance(times, Iterable) else (times,)
    for time in values:
        if not (isinstance(time, Rational) and time >= 0):
            raise TypeError(f"{giver} gives {time!r}: must be whole numbers or Fractions, 0 or more")
    return values


def common_unit(times: Iterable[Fraction]) -> Fraction:
    """Return the largest unit with whole multiples for all `times`.

    Raises:
        ValueError: All times are 0.
    """
    fractions = set(times)
    unit = Fraction(
        math.gcd(*(time.numerator for time in fractions)),
        math.lcm(*(time.denominator for time in fractions)),
    )
    if not unit:
        raise ValueError("no unit: there is no time other than 0")
    return unit
