"""Results of a campaign in sentences, each counted or computed from its trials."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan, nan
from statistics import fmean

from fl_core.schema import TrialState
from fl_core.text import listed, many, natural
from reports import numbers
from reports.records.records import RecordedSuite
from reports.records.studies import RecordedStudy, Sensitivity

SAMPLERS = {"tpe": "TPE", "gp": "Gaussian processes", "cmaes": "CMA-ES"}

Sensitivities = Mapping[str, Sensitivity]  # by id of the study


def leads(studies: Sequence[RecordedStudy], sensitivities: Sensitivities) -> str:
    """Return which strategies have wide basins, and which diverge; means over their scenarios."""
    basins = _means(studies, lambda study: sensitivities[study.id].near)
    scenarios = set(Counter(study.strategy for study in studies).values())  # of each strategy
    which = f"{max(scenarios)} scenarios" if len(scenarios) == 1 else "its scenarios"
    over = f", mean over {which}" if max(scenarios) > 1 else ""
    ways = {basin.of_space for basin in sensitivities.values()}
    searched = "what was searched" if len(ways) > 1 else "the space" if ways == {True} else "the trials"
    widest, narrowest = (end(basins, key=basins.__getitem__, default="") for end in (max, min))
    sentences = []
    if len(basins) > 1:
        sentences.append(
            f"{widest} has the widest basin: {percent(basins[widest])} of {searched} comes within 5 % of its "
            f"best{over}; {narrowest} has the narrowest, {percent(basins[narrowest])}."
        )
    elif basins:
        share = percent(basins[widest])
        sentences.append(f"{share} of {searched} comes within 5 % of the best of {widest}{over}.")
    return " ".join([*sentences, _who_diverges(studies)])


def _who_diverges(studies: Sequence[RecordedStudy]) -> str:
    lost = _means(studies, lambda study: len(study.diverged) / len(study.counted) if study.counted else nan)
    if not any(lost.values()):
        return "No trial diverged." if lost else ""
    some = sorted((name for name in lost if lost[name] > 0), key=lambda name: -lost[name])
    never = [name for name in lost if name not in some]
    rest = f"; {listed(never)} never did" if never else ""
    return f"Diverged: {listed([f'{name} in {percent(lost[name])} of trials' for name in some])}{rest}."


def shares(suite: RecordedSuite) -> str:
    """Return the tuning budget of every strategy, counted from the stored trials."""
    studies = [study for study in suite.studies if study.trials]
    total = sum(len(study.counted) for study in studies)
    simulations = sum(len(trial.runs) for study in studies for trial in study.counted)
    trials = _range((len(study.counted) for study in studies), "trial")
    seeds = _range((len(study.seeds) for study in studies), "seed")
    budgets = " or ".join(dict.fromkeys(study.budget for study in studies))
    alike = "" if unequal(studies) else ", the same for every strategy"
    which = sorted({seed for study in studies for seed in study.seeds})
    apart = suite.runs and not set(which) & set(suite.seeds)
    objectives = " or ".join(dict.fromkeys(study.measure.in_text for study in studies))
    data = " or ".join(dict.fromkeys(study.judged_on for study in studies))
    samplers = ", ".join(dict.fromkeys(SAMPLERS.get(study.sampler, study.sampler) for study in studies))
    pruners = list(dict.fromkeys(study.pruner for study in studies if study.pruner != "none"))
    return (
        f"Each strategy had, in each scenario, {trials} × {seeds} × {budgets}{alike}"
        f": {many(total, 'trial')} of {many(len(studies), 'study')}, {many(simulations, 'simulation')}. "
        f"Objective: {objectives}, on {data}. Seeds {', '.join(map(str, which))}"
        f"{', none of them a seed of the suite’s own runs' if apart else ''}. "
        f"Sampler: {samplers}; {f'pruned by {listed(pruners)}' if pruners else 'no pruner'}."
    )


def unequal(studies: Sequence[RecordedStudy]) -> list[str]:
    """Return the resources of which strategies of the same scenario had unequal shares."""
    shared: dict[str, Callable[[RecordedStudy], object]] = {
        "trials": lambda study: len(study.counted),
        "seeds": lambda study: study.seeds,
        "budget": lambda study: study.budget,
        "objective": lambda study: (study.objective, study.measure.title),
        "sampler": lambda study: study.sampler,
        "data": lambda study: study.judged_on,
    }
    scenarios = {study.scenario for study in studies}
    return [
        what
        for what, share in shared.items()
        if len({(study.scenario, share(study)) for study in studies}) > len(scenarios)
    ]


def remarks(suite: RecordedSuite) -> list[str]:
    """Return caveats for the results: one sentence each."""
    studies = suite.studies
    differ = unequal(studies)
    missing = sum(max(0, study.planned - len(study.counted)) for study in studies)
    failed = sum(trial.state is TrialState.FAILED for study in studies for trial in study.counted)
    shared = sorted({seed for study in studies for seed in study.seeds} & set(suite.seeds))
    edges = sum(any(map(study.edge, study.space)) for study in studies)
    sentences = {
        f"Strategies of the same scenario had unequal shares: {listed(differ or [''])}.": differ,
        f"{many(missing, 'planned trial')} {'has' if missing == 1 else 'have'} not ended yet.": missing,
        f"{many(failed, 'trial')} failed; counted, but without a value.": failed,
        f"Tuned on seeds of the suite’s own runs: {', '.join(map(str, shared))}.": shared,
        f"In {edges} of {many(len(studies), 'study')} the best lies at an edge of the space: "
        "better values may lie beyond.": edges,
    }
    return [sentence for sentence, applies in sentences.items() if applies]


def at_edges(studies: Sequence[RecordedStudy]) -> str:
    """Return the strategies whose best lies at an edge, with parameter and edge; empty if there are none."""
    strategies = []
    for study in studies:
        edges = [f"{parameter.name}: {edge}" for parameter in study.space if (edge := study.edge(parameter))]
        if edges:
            strategies.append(f"{study.strategy} ({', '.join(edges)})")
    return f"At an edge of the space: {listed(strategies)}." if strategies else ""


def _means(studies: Sequence[RecordedStudy], share: Callable[[RecordedStudy], float]) -> dict[str, float]:
    """Return a value for each strategy, mean over the scenarios in which it is known."""
    known: dict[str, list[float]] = {}
    for study in sorted(studies, key=lambda study: natural(study.strategy)):
        if not isnan(value := share(study)):
            known.setdefault(study.strategy, []).append(value)
    return {name: fmean(values) for name, values in known.items()}


def _range(counts: Iterable[int], thing: str) -> str:
    ordered = sorted(counts)
    least, most = ordered[0], ordered[-1]
    return many(least, thing) if least == most else f"{least} to {many(most, thing)}"


def percent(share: float) -> str:
    """Return a share in per cent, two digits where it is small: 7.2 %, 84 %."""
    return f"{numbers.number(100 * share, 2) if 0 < share < 0.1 else f'{100 * share:.0f}'} %"
