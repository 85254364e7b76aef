"""Results of a campaign in sentences, each counted or computed from its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan, nan
from statistics import fmean

from fl_core.schema import TrialState
from fl_core.text import listed, many, natural
from reports import numbers
from reports.records.records import RecordedSuite
from reports.records.studies import RecordedStudy
from reports.statistics.sensitivity import Sensitivity

SAMPLERS = {"tpe": "TPE", "gp": "Gaussian processes", "cmaes": "CMA-ES"}

Found = Mapping[str, Sensitivity]  # by id of the study


def leads(studies: Sequence[RecordedStudy], found: Found) -> str:
    """Which strategies have wide basins, and which diverge; means over their scenarios."""
    basins = _means(studies, lambda study: found[study.id].near)
    scenarios = set(Counter(study.strategy for study in studies).values())  # of each strategy
    which = f"{max(scenarios)} scenarios" if len(scenarios) == 1 else "its scenarios"
    over = f", mean over {which}" if max(scenarios) > 1 else ""
    where = {one.of_space for one in found.values()}
    of = "the space" if where == {True} else "the trials" if where == {False} else "what was searched"
    said = []
    if len(basins) > 1:
        widest, narrowest = max(basins, key=basins.__getitem__), min(basins, key=basins.__getitem__)
        said.append(
            f"{widest} has the widest basin: {percent(basins[widest])} of {of} comes within 5 % of its best"
            f"{over}; {narrowest} has the narrowest, {percent(basins[narrowest])}."
        )
    elif basins:
        (only,) = basins
        said.append(f"{percent(basins[only])} of {of} comes within 5 % of the best of {only}{over}.")
    return " ".join([*said, _who_diverges(studies)])


def _who_diverges(studies: Sequence[RecordedStudy]) -> str:
    lost = _means(studies, lambda study: len(study.diverged) / len(study.counted) if study.counted else nan)
    some = sorted((name for name in lost if lost[name] > 0), key=lambda name: -lost[name])
    if not lost:
        return ""
    if not some:
        return "No trial diverged."
    told = [f"{name} in {percent(lost[name])} of trials" for name in some]
    never = [name for name in lost if name not in some]
    rest = f"; {listed(never)} never did" if never else ""
    return f"Diverged: {listed(told)}{rest}."


def shares(suite: RecordedSuite) -> str:
    """The tuning budget of every strategy, counted from the stored trials."""
    studies = [study for study in suite.studies if study.trials]
    total = sum(len(study.counted) for study in studies)
    simulations = sum(len(study.counted) * len(study.seeds) for study in studies)
    trials = _range((len(study.counted) for study in studies), "trial")
    seeds = _range((len(study.seeds) for study in studies), "seed")
    budgets, same = _all(studies, "budget"), "" if unequal(studies) else ", the same for every strategy"
    which = sorted({seed for study in studies for seed in study.seeds})
    own = ""
    if suite.runs and not set(which) & set(suite.seeds):
        own = ", none of them a seed of the suite’s own runs"
    asks = " or ".join(dict.fromkeys(study.measure.in_text for study in studies))
    data = " or ".join(_all(studies, "judged_on"))
    pruners = [one for one in _all(studies, "pruner") if one != "none"]
    return (
        f"Each strategy had, in each scenario, {trials} × {seeds} × {' or '.join(budgets)}{same}"
        f": {many(total, 'trial')} of {many(len(studies), 'study')}, {many(simulations, 'simulation')}. "
        f"Objective: {asks}, on {data}. Seeds {', '.join(map(str, which))}{own}. "
        f"Sampler: {', '.join(SAMPLERS.get(one, one) for one in _all(studies, 'sampler'))}; "
        f"{f'pruned by {listed(pruners)}' if pruners else 'no pruner'}."
    )


def unequal(studies: Sequence[RecordedStudy]) -> list[str]:
    """The resources of which strategies of the same scenario had unequal shares."""
    shared: dict[str, Callable[[RecordedStudy], object]] = {
        "trials": lambda one: len(one.counted),
        "seeds": lambda one: one.seeds,
        "budget": lambda one: one.budget,
        "objective": lambda one: (one.objective, one.measure.title),
        "sampler": lambda one: one.sampler,
        "data": lambda one: one.judged_on,
    }
    groups: dict[str, list[RecordedStudy]] = {}
    for study in studies:
        groups.setdefault(study.scenario, []).append(study)
    return [
        what for what, of in shared.items() if any(len(set(map(of, group))) > 1 for group in groups.values())
    ]


def remarks(suite: RecordedSuite) -> list[str]:
    """Caveats for the results: one sentence each."""
    studies = suite.studies
    parts = []
    if differ := unequal(studies):
        parts.append(f"Strategies of the same scenario had unequal shares: {listed(differ)}.")
    missing = sum(max(0, study.planned - len(study.counted)) for study in studies)
    if missing:
        parts.append(f"{many(missing, 'planned trial')} {'has' if missing == 1 else 'have'} not ended yet.")
    failed = sum(one.state is TrialState.FAILED for study in studies for one in study.counted)
    if failed:
        parts.append(f"{many(failed, 'trial')} failed; counted, but without a value.")
    if shared := sorted({seed for study in studies for seed in study.seeds} & set(suite.seeds)):
        parts.append(f"Tuned on seeds of the suite’s own runs: {', '.join(map(str, shared))}.")
    edges = sum(any(study.edge(one) for one in study.space) for study in studies)
    if edges:
        parts.append(
            f"In {edges} of {many(len(studies), 'study')} the best lies at an edge of the space: "
            "better values may lie beyond."
        )
    return parts


def at_edges(studies: Sequence[RecordedStudy]) -> str:
    """Strategies whose best lies at an edge, with parameter and edge; empty if there are none."""
    told = [
        f"{study.strategy} ({', '.join(f'{name}: {edge}' for name, edge in of)})"
        for study in studies
        if (of := [(one.name, edge) for one in study.space if (edge := study.edge(one))])
    ]
    return f"At an edge of the space: {listed(told)}." if told else ""


def _means(studies: Sequence[RecordedStudy], of: Callable[[RecordedStudy], float]) -> dict[str, float]:
    """A value for each strategy, mean over the scenarios in which it is known."""
    known: dict[str, list[float]] = {}
    for study in sorted(studies, key=lambda one: natural(one.strategy)):
        if not isnan(value := of(study)):
            known.setdefault(study.strategy, []).append(value)
    return {name: fmean(values) for name, values in known.items()}


def _all(studies: Sequence[RecordedStudy], name: str) -> list[str]:
    return list(dict.fromkeys(getattr(study, name) for study in studies))


def _range(counts: Iterable[int], thing: str) -> str:
    found = sorted(set(counts))
    return many(found[0], thing) if len(found) == 1 else f"{found[0]} to {many(found[-1], thing)}"


def percent(share: float) -> str:
    """A share in per cent, two digits where it is small: 7.2 %, 84 %."""
    return f"{numbers.number(100 * share, 2) if 0 < share < 0.1 else f'{100 * share:.0f}'} %"
