"""What the words rest on: workloads and networks that have run, and what a GPU would add."""

from collections.abc import Iterator, Sequence

from asyncfl.claims.claim import Need
from asyncfl.claims.pages.ran_on import RanOn
from asyncfl.claims.verdicts.main import SCOPES, Outcome, Scope, scope

NO_NETWORK = {"logistic", "linear"}


def rests_on(outcome: Outcome, ran_on: RanOn) -> tuple[Scope, bool] | None:
    """Return the best workload of decided readings, and whether it has a network; None without any."""
    if not outcome.decided:
        return None
    each = [(scope(reading), reading) for reading in outcome.decided]
    best = min((how for how, _ in each), key=SCOPES.index)
    return best, any(how == best and _has_network(ran_on(reading)) for how, reading in each)


def _has_network(problems: str) -> bool:
    """Whether any of `mnist, logistic; cifar10, resnet8` is a network; problems without a model are none."""
    models = [problem.partition(", ")[2] for problem in problems.split("; ")]
    return any(model and model not in NO_NETWORK for model in models)


def groups(every: Sequence[Outcome], ran_on: RanOn) -> Iterator[tuple[str, list[Outcome]]]:
    """Return main results by what their decided readings were run on, the nearest to the papers first."""
    captions = {
        ("paper's workload", True): "The paper's workload, a neural network",
        ("paper's workload", False): "The paper's workload, without a neural network",
        ("stand-ins", True): "Stand-ins, a neural network among them",
        ("stand-ins", False): "Stand-ins, logistic regression alone",
        ("toy", False): "Toys: quadratics, and tests of theorems",
    }
    found = [(rests_on(outcome, ran_on), outcome) for outcome in every]
    for key, caption in captions.items():
        if mine := [outcome for basis, outcome in found if basis == key]:
            yield caption, mine
    if mine := [outcome for basis, outcome in found if basis is None]:
        yield "Nothing that is decided", mine


def missing(every: Sequence[Outcome]) -> list[tuple[str, Need, list[tuple[Outcome, int]]]]:
    """Return what needs a GPU: paper, need, and the main results that get readings, with their number."""
    needs: dict[tuple[str, Need], dict[str, tuple[Outcome, int]]] = {}
    for outcome in every:
        for reading in outcome.readings:
            if not reading.ran and reading.needs:
                mine = needs.setdefault((outcome.paper.title, reading.needs), {})
                _, n = mine.get(outcome.result.id, (outcome, 0))
                mine[outcome.result.id] = outcome, n + 1
    return [(title, need, list(mine.values())) for (title, need), mine in needs.items()]
