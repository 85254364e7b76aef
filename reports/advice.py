"""Advice for a population of clients: nearest measured population, leading strategies, a suite to check.

`asyncfl advise` calls these functions in turn. Measured populations are those of the leaderboard.

Free: no stored number or published page depends on the advice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

from fl_core.scenario import Scenario, Timing
from fl_core.text import listed, many
from fl_core.timing.characteristics import Characteristics, Links, characteristics
from reports.leaderboard.scores import REFERENCE, PopulationScores

NEAR = log(2)  # largest distance of a near population: a factor of two in one characteristic
SEEDS = range(8)
NOTHING = "Nothing near was measured"
CANDIDATES = 5  # strategies that the suite compares
MOST = 1000  # clients that the data of `digits` suffice for
WORDS = {
    "spread": "typical ratio between the mean job times of two clients",
    "slowest": "mean job time, slowest client over median client",
    "tail": "job times of a client, 99th percentile over mean",
    "absence": "number of clients, all over present",
    "transfers": "time of a job, with over without transfers",
    "idleness": "number of clients, present over at work",
}
ASSUMED = {
    **dict.fromkeys(("spread", "slowest"), "clients alike"),
    "tail": "exponential",
    "absence": "all present",
    "transfers": "instantaneous",
    "idleness": "all at work",
}
# One strategy of each kind, where nothing near was measured
KINDS = {
    "FedAvg": "synchronous",
    "Async FedAvg": "steps at every arrival",
    "FedBuff": "steps when a buffer is full",
    "ACE": "keeps the newest update of every client",
    "FedFix": "steps at fixed times",
}


@dataclass(frozen=True)
class Neighbour:
    """A measured population and the distance to the user's clients."""

    population: str  # as the board names it
    name: str  # for readers
    measured: Characteristics
    distance: float  # of logarithms

    @property
    def near(self) -> bool:
        """True if the user's clients are near enough to expect similar results."""
        return self.distance <= NEAR


def of_timing(
    timing: Timing, clients: int, horizon: float, message: float | None = None, at_work: int | None = None
) -> Characteristics:
    """Return the characteristics of a timing. ValueError if the timing does not fit the clients.

    Args:
        timing: The laws of durations, availability and links.
        clients: How many there are.
        horizon: Virtual time up to which absences count.
        message: Bytes of a model, if there are links and these do not say it.
        at_work: Clients at work at a time; None: all that are present.
    """
    links, size = None, timing.network and (timing.network.message or message)
    if timing.network and size:
        links = Links(timing.network, size, float(timing.unit))
    return characteristics(
        timing.durations,
        timing.availability,
        clients,
        SEEDS,
        horizon,
        ids=timing.ids,
        links=links,
        at_work=at_work,
    )


def neighbours(
    characteristics: Characteristics, measured: Mapping[str, tuple[str, Scenario, float]]
) -> list[Neighbour]:
    """Return the measured populations, nearest first.

    Args:
        characteristics: The characteristics of the user's clients.
        measured: Population → its name for readers, a scenario of it, and the bytes of a model there.
    """
    nearby = []
    for population, (name, scenario, message) in measured.items():
        horizon = float(scenario.budget.time or 100)
        theirs = of_timing(scenario.timing, scenario.problem.clients, horizon, message)
        nearby.append(Neighbour(population, name, theirs, characteristics.distance(theirs)))
    return sorted(nearby, key=lambda neighbour: neighbour.distance)


def message(scores: PopulationScores) -> float:
    """Return the bytes of an update in a measured population."""
    runs = scores.final_runs(REFERENCE)
    return float((runs["uploads"] / runs["updates"].clip(lower=1)).max())


def characteristics_table(
    characteristics: Characteristics, neighbours: Sequence[Neighbour], given_names: Collection[str]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return headings and rows of a table: characteristics of the clients and of the nearest population.

    Args:
        characteristics: The characteristics of the user's clients.
        neighbours: The measured populations, nearest first.
        given_names: Names of the characteristics that the user's options determine; others are assumed.
    """
    nearest = [neighbour.measured for neighbour in neighbours[:1]]
    rows = []
    for name, value in asdict(characteristics).items():
        yours = _factor(value) if name in given_names else f"{_factor(value)} assumed: {ASSUMED[name]}"
        rows.append([WORDS[name], yours, *(_factor(getattr(population, name)) for population in nearest)])
    return ["Ratio", "Yours", *(neighbour.name.capitalize() for neighbour in neighbours[:1])], rows


def nearness(neighbours: Sequence[Neighbour]) -> str:
    """Return the sentence on the distance of the nearest population, the first of the list."""
    if not neighbours:
        return f"{NOTHING}, so no strategy is recommended."
    nearest = neighbours[0]
    distance = f"{nearest.name} (distance {_factor(nearest.distance)}; near is up to 2 ×)"
    if nearest.near:
        return f"Nearest population of the leaderboard: {distance}."
    return f"{NOTHING}, so no strategy is recommended. The nearest population is {distance}."


def from_board(scores: PopulationScores | None) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return sentences on the rank groups of a population, and strategies worth a comparison.

    The strategies are labels with reasons, the best first.

    Args:
        scores: The population's scores; None if nothing near was measured: then nothing is recommended,
            and the suite compares one strategy of each kind.
    """
    if scores is None:
        return (), KINDS
    never = [name for name in scores.order() if scores.never(name)]
    rest = [name for name in scores.order() if not scores.never(name) and name not in scores.leaders]
    sentences = [
        (
            f"The leaderboard has {many(len(scores.entries), 'entry')} there. It cannot tell entries of the "
            f"same rank group apart; ratios of times below {scores.resolution:.3g} × may be luck."
        ),
        f"First rank group: {listed(scores.leaders)}.",
    ]
    if rest:
        sentences.append(f"Later: {listed([f'{name} ({scores.groups[name]})' for name in rest])}.")
    if never:
        sentences.append(f"Most runs never meet the target: {listed(never)}.")
    reasons = {
        name: f"rank group {scores.groups[name]} there, "
        f"{scores.sooner(name):.2g} × as fast as tuned {REFERENCE}"
        for name in (*scores.leaders, *rest)
        if name != REFERENCE
    }
    return sentences, reasons


def candidates(reasons: Mapping[str, str], labels: Collection[str]) -> dict[str, str]:
    """Return the first few strategies of `reasons` that are among `labels`, with the reasons, and FedAvg."""
    best = [label for label in reasons if label in labels and label != REFERENCE][:CANDIDATES]
    chosen = {label: reasons[label] for label in best}
    return chosen | {REFERENCE: "synchronous, what others are compared with"}


def suite_to_check(
    timing: Mapping[str, Any],
    clients: int,
    time: float,
    strategies: Mapping[str, str],
    neighbours: Sequence[Neighbour],
    *,
    written: Mapping[str, Any],
    at_work: int | None = None,
) -> dict[str, Any]:
    """Return a suite without a name to compare strategies; the user replaces the problem.

    `strategies` are labels with reasons, `written` the entries of the board as a suite writes them.
    """
    is_near = neighbours and neighbours[0].near
    nearest = f"Nearest population measured: {neighbours[0].name}. " if is_near else f"{NOTHING}. "
    reasons = "; ".join(f"{label}: {reason}" for label, reason in strategies.items())
    return {
        "description": "What asyncfl advise suggests; put your own problem in place of digits, "
        "and leave out the grid if your data are given per client. "
        f"{nearest}{reasons}.",
        "seeds": 8,
        "problem": {"name": "digits", "clients": clients, "target": 0.9},
        "timing": dict(timing),
        "budget": {"time": time},
        "local": {"steps": 2, "batch": 32},
        "lr": 0.1,
        "strategies": [
            _working("fedavg" if label == REFERENCE else written[label], at_work) for label in strategies
        ],
        # The mix of labels of class_dirichlet with alpha 0.1, which leaves some of many clients without data.
        "grid": {"problem.partition": ["iid", {"name": "client_dirichlet", "alpha": 1}]},
    }


def _working(strategy: Any, at_work: int | None) -> Any:
    """Return a suite's strategy entry, limited to `at_work` clients at a time, or per round for FedAvg."""
    if at_work is None:
        return strategy
    entry = strategy if isinstance(strategy, dict) else {"name": strategy}
    if entry["name"] == "fedavg":
        return {"sampling": {"name": "uniform", "sample": at_work}, **entry}
    return {**entry, "concurrency": at_work}


def _factor(value: float) -> str:
    """Return a logarithm of a ratio as a factor in words."""
    return f"{exp(value):.3g} ×"
