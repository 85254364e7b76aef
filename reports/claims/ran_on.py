"""What readings are based on: data and network, as suites name them, or the test of a theorem."""

from benchmarks.claims.kinds import Theorem
from benchmarks.claims.plan import ClaimPlan
from benchmarks.errors import UserError
from reports.claims.readings import Reading


class RanOn:
    """The data and the network of readings; each scenario is read once."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str], ClaimPlan] = {}

    def __call__(self, reading: Reading) -> str:
        """Return them, such as `mnist, logistic`; empty if they need code to be allowed.

        Of a theorem, the name of its test.
        """
        if isinstance(reading.claim, Theorem):
            return reading.claim.function
        paper, scale = reading.paper, reading.scale
        plan = self._plans.setdefault((paper.name, scale), ClaimPlan(paper, scale, ()))
        try:
            return "; ".join(plan.problems(reading.claim))
        except UserError:
            return ""
