"""Workloads and networks behind the outcomes of main results, and readings to be gained with a GPU.

The pages of claims (`html`, `markdown`) list main results by these.

Fixed: order and counts, which stand on published pages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.claims.claim import Need
from benchmarks.claims.kinds import Theorem
from benchmarks.claims.plan import plan_of_seed
from benchmarks.errors import UserError
from reports.claims.main_results import SCOPES, Outcome, Scope, scope, tally
from reports.claims.readings import Reading

NO_NETWORK = {"logistic", "linear"}


def ran_on(reading: Reading) -> str:
    """Return data and network of a reading (`mnist, logistic`), or the name of a theorem's test.

    Empty if the suite uses code of the user's that is not allowed.
    """
    if isinstance(reading.claim, Theorem):
        return reading.claim.function
    try:
        return "; ".join(plan_of_seed(reading.paper, reading.scale).problems(reading.claim))
    except UserError:
        return ""


@dataclass(frozen=True, slots=True)
class Basis:
    """Best workload of a main result's decided readings, with counts of holding and decided readings."""

    outcome: Outcome
    scope: Scope | None  # None without decided readings
    network: bool = False  # whether a neural network was trained
    holding: int = 0
    decided: int = 0

    def __str__(self) -> str:
        words = self.outcome.result.words
        return f"{words}: {self.holding} of {self.decided}" if self.decided else words


def basis(outcome: Outcome) -> Basis:
    """Return the best workload of decided readings; within a scope, a neural network ranks first."""
    if not outcome.decided:
        return Basis(outcome, None)
    by_workload: dict[tuple[int, bool], list[Reading]] = {}
    for reading in outcome.decided:
        workload = SCOPES.index(scope(reading)), not _has_network(ran_on(reading))
        by_workload.setdefault(workload, []).append(reading)
    best, without = min(by_workload)
    return Basis(outcome, SCOPES[best], not without, *tally(by_workload[best, without]))


def _has_network(problems: str) -> bool:
    """Return whether `mnist, logistic; cifar10, resnet8` has a network; problems without a model do not."""
    models = [problem.partition(", ")[2] for problem in problems.split("; ")]
    return any(model and model not in NO_NETWORK for model in models)


def groups(results_of_papers: Sequence[Outcome]) -> Iterator[tuple[str, list[Basis]]]:
    """Yield captions and main results by best workload and network, the closest to the papers first."""
    captions: dict[tuple[Scope | None, bool], str] = {
        ("paper's workload", True): "The paper's workload, a neural network",
        ("paper's workload", False): "The paper's workload, without a neural network",
        ("stand-ins", True): "Stand-ins, a neural network",
        ("stand-ins", False): "Stand-ins, without a neural network",
        ("toy", False): "Toys: quadratics, and tests of theorems",
        (None, False): "No decided reading",
    }
    results = [basis(outcome) for outcome in results_of_papers]
    for key, caption in captions.items():
        if mine := [result for result in results if (result.scope, result.network) == key]:
            yield caption, mine


def missing(results: Sequence[Outcome]) -> list[tuple[str, Need, list[tuple[Outcome, int]]]]:
    """Return paper, need (a GPU, for example), and main results with the number of readings not run."""
    needs: dict[tuple[str, Need], dict[str, tuple[Outcome, int]]] = {}
    for outcome in results:
        for reading in outcome.readings:
            if not reading.ran and reading.needs:
                mine = needs.setdefault((outcome.paper.title, reading.needs), {})
                _, n = mine.get(outcome.result.id, (outcome, 0))
                mine[outcome.result.id] = outcome, n + 1
    return [(title, need, list(mine.values())) for (title, need), mine in needs.items()]
