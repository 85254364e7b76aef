"""The marks of a budget for evaluating a run (docs/rules.md, rule 13)."""

from fractions import Fraction
from math import ceil, floor, inf


class Marks:
    """The marks k/E, k = 1 … E, of a budget."""

    def __init__(self, budget: Fraction | int | None, evaluations: int, *, before: bool = False) -> None:
        self.step = None if budget is None else Fraction(budget) / evaluations
        self.before = before  # whether a mark is passed only by a value strictly above it
        self.reached = 0

    @property
    def reached(self) -> int:
        """The number of marks passed."""
        return self._reached

    @reached.setter
    def reached(self, count: int) -> None:
        """Go on from `count` marks passed."""
        self._reached = count
        # No smaller value passes the next mark; compared at every event, an integer is ten times as fast.
        self._next = inf if self.step is None else ceil(self.step * (count + 1))

    def passed(self, clock: int) -> bool:
        """Return whether a mark was passed since the last call."""
        if self.step is None or clock < self._next:
            return False
        reached = ceil(clock / self.step) - 1 if self.before else floor(clock / self.step)
        passed = reached > self.reached
        self.reached = reached
        return passed
