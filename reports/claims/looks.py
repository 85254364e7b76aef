"""Looks: at which numbers of seeds a claim is judged, and how much of the error each look may spend.

Looking at 8, 16, 32 and 64 seeds and stopping as soon as something is decided gives four chances to be wrong.
So the 5 % are spent over the looks, in proportion to the new seeds at each: at look k of K with
n₁ < … < n_K seeds, α·(n_k − n_{k−1})/n_K (Lan and DeMets, Biometrika 70, 1983, with a linear spending
function). The shares are simply added up (Bonferroni), which is slightly conservative and leaves Student's t
exact at every look.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.inference import ERROR

SEEDS = (8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Looks:
    """Numbers of seeds, increasing; decisions at one of them are final."""

    seeds: Sequence[int] = SEEDS

    def reached(self, n: int) -> tuple[int, ...]:
        """The looks that n seeds allow, 0 the first."""
        return tuple(look for look, seeds in enumerate(self.seeds) if seeds <= n)

    def share(self, look: int) -> float:
        """The share of the error that a look may spend; the shares of all looks add up to 1."""
        before = self.seeds[look - 1] if look else 0
        return (self.seeds[look] - before) / self.seeds[-1]

    def level(self, look: int) -> float:
        """The level of an interval at that look."""
        return 1 - ERROR * self.share(look)

    def p(self, p: float, look: int) -> float:
        """A p-value at that look, adjusted for the whole plan: the smallest of them over looks is valid."""
        return min(1.0, p / self.share(look))
