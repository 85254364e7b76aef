"""Advice for a population of clients: nearest measured population, leading strategies, a suite to check."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.suite import labels
from benchmarks.suite.suite import Suite
from benchmarks.yaml_io import read
from fl_core.scenario import Timing
from fl_core.text import listed
from fl_core.timing.characteristics import Characteristics, Links, characteristics
from reports.inference import percentiles
from reports.leaderboard import held_out, printed
from reports.leaderboard.standing import BOUNDS, Standing, standing
from reports.leaderboard.tables import Tables
from reports.leaderboard.workloads import place

NEAR = log(2)  # a population is near if it is no farther than a factor of two in one characteristic
SEEDS = range(8)
NOTHING = "Nothing near was measured"
REFERENCE = "FedAvg"
CANDIDATES = 5  # strategies that the suite compares
MOST = 1000  # clients among whom digits can be dealt out
WORDS = {
    "spread": "typical ratio of one client's mean time to another's",
    "slowest": "slowest client's mean time over the median client's",
    "tail": "a client's longest jobs (99th percentile) over their mean",
    "absence": "all clients over those that are present",
    "transfers": "a job's time with download and upload over that without",
    "idleness": "clients present over those at work",
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

    timing: str  # its label
    measured: Characteristics
    distance: float  # of logarithms

    @property
    def near(self) -> bool:
        """True if the user's clients are near enough to expect similar results."""
        return self.distance <= NEAR


@dataclass(frozen=True)
class Candidate:
    """A strategy worth comparing."""

    written: Any  # as a suite writes it
    label: str
    why: str


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


def messages(tables: Tables) -> dict[str, float]:
    """Return the bytes of an update in each measured population, by label of the population."""
    runs = pd.concat([tables.finals, tables.held_out])
    size = runs["bytes"] / runs["updates"].where(runs["updates"] > 0)
    return {str(timing): float(bytes_) for timing, bytes_ in size.groupby(runs["timing"]).max().items()}


def neighbours(
    own: Characteristics, suites: Iterable[Suite], measured: Mapping[str, float]
) -> list[Neighbour]:
    """Return the measured populations of suites, nearest first.

    Args:
        own: The characteristics of the user's clients.
        suites: The suites that were measured.
        measured: The label of each population → bytes of an update there.
    """
    scenarios = {place(run)[-1]: run.experiment.scenario for suite in suites for run in suite.runs()}
    nearby = []
    for label in dict.fromkeys(measured):
        if label in scenarios:
            scenario = scenarios[label]
            horizon = float(scenario.budget.time or 100)
            theirs = of_timing(scenario.timing, scenario.problem.clients, horizon, measured[label])
            nearby.append(Neighbour(label, theirs, own.distance(theirs)))
    return sorted(nearby, key=lambda neighbour: neighbour.distance)


@dataclass(frozen=True)
class Known:
    """A leaderboard's knowledge of strategies for a population of clients."""

    said: Sequence[str]  # sentences
    why: Mapping[str, str]  # label of a strategy worth comparing → the reason, the best first


def near(own: Characteristics, neighbours: Sequence[Neighbour]) -> Iterator[str]:
    """Yield lines on the clients' characteristics, the nearest population and the distance."""
    theirs = neighbours[0].measured if neighbours else own
    yield "Your clients, and the nearest population measured, as factors:"
    for name, value in asdict(own).items():
        yield f"  {WORDS[name]}: {_factor(value)}, there {_factor(getattr(theirs, name))}"
    if neighbours and neighbours[0].near:
        away = f"{neighbours[0].timing}, {_factor(neighbours[0].distance)} away"
        yield f"Nearest: {away} (2 would still count as near)."
        return
    away = f"{neighbours[0].timing}, is {_factor(neighbours[0].distance)} away" if neighbours else ""
    nearest = away and f": the nearest, {away}"
    yield f"{NOTHING}{nearest}; a factor of 2 would count as near. So no strategy is recommended."


def known(tables: Tables, timing: str | None) -> Known:
    """Return the leaderboard's knowledge of a population.

    Args:
        tables: The kept tables.
        timing: The population's label, of the board or of its held-out scenarios; None: nothing near was
            measured, so nothing is known, and the suite compares one strategy of each kind.
    """
    if timing is None:
        return Known((), KINDS)
    board = standing(tables)
    here = np.asarray(board.costs.scenarios.get_level_values("timing")) == timing
    return _of_board(board, here) if here.any() else _of_held_out(tables, timing)


def _of_board(board: Standing, here: np.ndarray) -> Known:
    """Return the strategies soonest at the target in some scenarios of the board, with uncertainty."""
    there, splits = board.within(here), np.asarray(board.costs.scenarios.get_level_values("partition"))
    names, first = there.costs.strategies, there.order[0]
    level = [names[a] for a in there.order[1:] if not there.behind[a]]
    alone = f"not separated: {listed(level)}" if level else "all others are shown to be behind"
    over_seeds, over_scenarios = (
        _between(draws[:, first]) for draws in (there.over_seeds, there.over_scenarios)
    )
    overall = (
        f"Leaderboard ({_workloads(there.costs.scenarios.get_level_values('problem'))}): "
        f"{_sooner(there, first)}, over seeds {over_seeds}, over scenarios {over_scenarios}, and is first "
        f"with a probability of {there.first[first]:.2f}; {alone}."
    )
    said = [overall]
    why: dict[str, str] = {}
    for split in dict.fromkeys(splits[here]):
        own = board.within(here & (splits == split))
        leads = own.order[0]
        said.append(
            f"{split}: {_sooner(own, leads)}, over seeds {_between(own.over_seeds[:, leads])}, first with a "
            f"probability of {own.first[leads]:.2f}."
        )
        why.setdefault(names[leads], f"leads with {split} data there")
    return Known(said, why | _sooner_than_reference(there, "there") | why)  # leaders first, for their reasons


def _of_held_out(tables: Tables, timing: str) -> Known:
    """Return the strategies soonest at the target in held-out scenarios, where nothing was tuned."""
    runs = tables.held_out[tables.held_out["timing"] == timing]
    scores = held_out.scores(replace(tables, held_out=runs))
    reference = tables.rules.reference
    times = {str(name): printed.times(exp(score)) for name, score in scores.items()}
    first = next(iter(times))
    bound = BOUNDS[held_out.bounds(replace(tables, held_out=runs))[first]]
    said = (
        f"Leaderboard, held-out scenarios ({_workloads(runs['problem'])}), where nothing was tuned: {first} "
        f"reaches the hard target {bound}{times[first]} sooner than {reference}, each with the one setting "
        "that is best elsewhere."
    )
    why = {name: f"{own} sooner than {reference} there" for name, own in times.items() if name != reference}
    return Known([said], why)


def _workloads(problems: Iterable[str]) -> str:
    return listed(list(dict.fromkeys(problems)))


def _sooner_than_reference(standing: Standing, where: str) -> dict[str, str]:
    """Return each strategy's speed-up over the reference as a reason to compare, best strategy first."""
    names, bounds = standing.costs.strategies, standing.bounds
    return {
        names[a]: f"{BOUNDS[bounds[a]]}{printed.times(exp(standing.scores[a]))} sooner than tuned "
        f"{standing.reference} {where}"
        for a in standing.order
        if names[a] != standing.reference
    }


def _sooner(standing: Standing, at: int) -> str:
    speedup = f"{BOUNDS[standing.bounds[at]]}{printed.times(exp(standing.scores[at]))}"
    name = standing.costs.strategies[at]
    return f"{name} reaches the hard target {speedup} sooner than tuned {standing.reference}"


def _between(draws: np.ndarray) -> str:
    return printed.between(*np.exp(percentiles(draws)))


def candidates(known: Known, suite: Suite) -> list[Candidate]:
    """Return the strategies most worth comparing, each with the reason, and FedAvg.

    Args:
        known: What a leaderboard knows.
        suite: The suite that was measured, which says how each strategy is written.
    """
    names = labels.strategies(suite.spec, suite.labels)
    written = dict(zip(names, read(suite.source)["strategies"], strict=True))
    best = [label for label in known.why if label in written and label != REFERENCE][:CANDIDATES]
    chosen = [Candidate(written[label], label, known.why[label]) for label in best]
    return [*chosen, Candidate("fedavg", REFERENCE, "synchronous, what others are compared with")]


def suite_to_check(
    timing: Mapping[str, Any],
    clients: int,
    time: float,
    strategies: Sequence[Candidate],
    neighbours: Sequence[Neighbour],
    *,
    at_work: int | None = None,
) -> dict[str, Any]:
    """Return a suite without a name to compare strategies; the user replaces the problem."""
    is_near = neighbours and neighbours[0].near
    nearest = f"Nearest population measured: {neighbours[0].timing}. " if is_near else f"{NOTHING}. "
    reasons = "; ".join(f"{candidate.label}: {candidate.why}" for candidate in strategies)
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
        "strategies": [_working(candidate.written, at_work) for candidate in strategies],
        # The mix of labels of class_dirichlet with alpha 0.1, which leaves some of many clients without data.
        "grid": {"problem.partition": ["iid", {"name": "client_dirichlet", "alpha": 1}]},
    }


def _working(strategy: Any, at_work: int | None) -> Any:
    """Return a suite's strategy entry, limited to `at_work` clients at a time, or per round for FedAvg."""
    if at_work is None:
        return strategy
    given = strategy if isinstance(strategy, dict) else {"name": strategy}
    if given["name"] == "fedavg":
        return {"sampling": {"name": "uniform", "sample": at_work}, **given}
    return {**given, "concurrency": at_work}


def _factor(value: float) -> str:
    return f"{exp(value):.3g} ×"
