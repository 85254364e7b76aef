"""First paragraphs of the page: runs and dates, differences between strategies, and leading strategies."""

from collections import Counter
from collections.abc import Sequence
from math import inf, isfinite

from fl_core.schema import Clock, Status, Total
from fl_core.text import duration, many
from reports import numbers
from reports.comparisons import PairedContrast, Question, seeds_to_show
from reports.numbers import Measure
from reports.rankings import Standings
from reports.records.cells import Cell
from reports.records.records import RecordedSuite
from reports.records.runs import RecordedRun
from reports.sections.paired_differences import seeds_text
from reports.sections.section import Results

ONE_SEED = "One seed: chance may have put them in this order."
MEASURED = "problem.measured"  # the parameter of runs whose job lengths were measured
MESSAGE = "timing.network.message"  # the parameter of runs with messages of a given size
SMALL_TRANSFER_SHARE = 0.01  # of the clients' working time, below which links hardly matter
NAMED = 3  # strategies named in a caption; of more, their number
MAX_HEADLINE_WORDS = 20  # in each sentence


def what_ran(suite: RecordedSuite) -> str:
    """Return the suite in a sentence or two."""
    scenarios = len({run.scenario for run in suite.runs})
    wall = sum(run.wall_seconds for run in suite.runs)
    return (
        f"{many(len(suite.runs), 'run')}: {many(len(suite.strategies), 'strategy')} × "
        f"{many(scenarios, 'scenario')} × {many(len(suite.seeds), 'seed')}. "
        f"{when(suite.runs)}{f', {duration(wall)} of computing in all' if wall else ''}."
    )


def what_was_tuned(suite: RecordedSuite) -> str:
    """Return the suite's campaign in a sentence; empty without a campaign."""
    if not suite.studies:
        return ""
    strategies = len({study.strategy for study in suite.studies})
    scenarios = len({study.scenario for study in suite.studies})
    return (
        f"{many(sum(len(study.counted) for study in suite.studies), 'trial')} of a tuning campaign: "
        f"{many(strategies, 'strategy')} × {many(scenarios, 'scenario')}."
    )


def when(runs: Sequence[RecordedRun]) -> str:
    """Return the time from the first start to the last end, in universal time."""
    starts = [run.started for run in runs if run.started]
    if not starts:
        return "No time was recorded"
    first, last = min(starts), max([run.ended for run in runs if run.ended] or starts)
    begun, ended = (f"{moment.day} {moment:%B %Y}" for moment in (first, last))
    if first.date() == last.date():
        return f"Run on {begun}, {first:%H:%M} to {last:%H:%M} UTC"
    return f"Run from {begun} to {ended}"


def remarks(suite: RecordedSuite) -> list[str]:
    """Return caveats for the tables, a caption for each."""
    status = Counter(run.status for run in suite.runs)
    unread, older = len(suite.unread), len(suite.older)
    counts = {
        "Runs of the grid not recorded yet: {}.": suite.missing,
        "Runs in progress: {}.": status[Status.RUNNING],
        "Diverged runs, counted and shown without a final value: {}.": status[Status.DIVERGED],
        "Stalled runs, in which no step would have followed: {}.": status[Status.STALLED],
        "Failed runs: {}.": status[Status.ERROR],
        "Damaged records, left out: {}; see Provenance.": len(suite.damaged),
        "Runs with files that cannot be read: {}; see Provenance. Delete them in MLflow, run again.": unread,
        "Older runs of the same names, repeated or with other hyper-parameters, left out: {}.": older,
    }
    captions = [caption.format(f"{count:,}") for caption, count in counts.items() if count]
    doubts = (
        suite.unequal_budgets,
        suite.unequal_data,
        measured_times(suite),
        idle_links(suite),
        one_seed(suite),
        suite.untuned,
    )
    return [*filter(None, doubts), *captions]


def measured_times(suite: RecordedSuite) -> str:
    """Return a warning if job lengths were measured; otherwise empty."""
    if all(run.params.get(MEASURED) != "true" for run in suite.runs):
        return ""
    return "Job lengths were measured: times depend on the machine and do not repeat."


def idle_links(suite: RecordedSuite) -> str:
    """Return a warning if links were given and messages are too small to need time; otherwise empty."""
    shares = [share for run in suite.runs if (share := run.totals.get(Total.TRANSFER_SHARE)) is not None]
    if (
        not shares
        or max(shares) >= SMALL_TRANSFER_SHARE
        or any(run.params.get(MESSAGE) for run in suite.runs)
    ):
        return ""
    return (
        f"Links hardly matter: transfers take at most {numbers.percent(max(shares))} % of the clients' "
        "working time. Give the size of your own model: --set 'timing.network.message=40 MB'."
    )


def one_seed(suite: RecordedSuite) -> str:
    """Return a warning if strategies are compared on a single seed; otherwise empty."""
    if len(suite.seeds) != 1 or len(suite.strategies) < 2:
        return ""
    return (
        "One seed only: nothing here shows that one strategy is better than another. "
        "More seeds: the same command with --set seeds=5."
    )


def headline(results: Results) -> list[str]:
    """Return at most two sentences: the largest difference that holds, and the leader; empty without either.

    Each has at most `MAX_HEADLINE_WORDS` words if a name of a strategy or scenario counts as a single word.
    """
    sentences = [_largest_difference(results), who_leads(results)]
    return [sentence for sentence in sentences if sentence]


def _largest_difference(results: Results) -> str:
    """Return the largest contrast that holds, times to target first; empty where none was tested."""
    contrasts = results.contrasts
    if not contrasts:
        return ""
    if not (contrast := _foremost(contrasts)):
        return "No difference between two strategies is shown."
    text = _times(contrast) if contrast.question is Question.TARGET else _finals(contrast)
    return f"By {contrast.question}: {text}{_place(contrast, results)}."


def _foremost(contrasts: Sequence[PairedContrast]) -> PairedContrast | None:
    """Return the largest contrast that holds, times to target first; None where none holds."""
    holding = [contrast for contrast in contrasts if contrast.holds]
    return min(holding, key=lambda contrast: [*Question].index(contrast.question), default=None)


def who_leads(results: Results) -> str:
    """Return the leader, by the number ordering all tables; empty without a comparison."""
    standings = results.standings
    if standings is None:
        return ""
    ranks = {scenario.columns[0] for scenario in results.scenarios}
    metric = ranks.pop() if len(ranks) == 1 else None
    best = standings.leader.score.mean
    names = _named([line.strategy for line in standings.lines if line.score.mean == best], "strategies")
    if standings.by_rank:
        metric_text = f" in {metric.in_text}" if metric else ""
        scenarios, n = many(standings.scenarios, "scenario"), len(standings.lines)
        return f"Best mean rank{metric_text} over {scenarios}: {names} ({best:.1f} of {n}){_open(standings)}."
    assert metric is not None
    extreme = "Highest" if metric.higher else "Lowest"
    return f"{extreme} mean {metric.in_text}: {names} ({metric.with_unit(best)}){_open(standings)}."


def _open(standings: Standings) -> str:
    """Return the strategies not separated from the leader; empty without any."""
    names = [line.strategy for line in standings.open]
    return f", not separated from {names[0] if len(names) == 1 else f'{len(names)} others'}" if names else ""


def how_sure(results: Results) -> str:
    """Return the separation of strategies from the leader, and the seeds needed; empty without standings."""
    standings = results.standings
    if standings is None:
        return ""
    compared, unseparated, leader = standings.compared, standings.open, standings.leader
    if not compared:
        return "" if standings.seeds > 1 else ONE_SEED
    apart = [line.strategy for line in compared if not line.open]
    captions = []
    if apart:
        captions.append(f"Separated: {_named(apart, 'others')}.")
    if unseparated:
        captions.append(f"Not separated: {_named([line.strategy for line in unseparated], 'others')}.")
        if needed := seeds_text(unseparated[0].gap):
            captions.append(f"To separate {unseparated[0].strategy}: {needed}.")
    measure = "mean rank" if standings.by_rank else "final value"
    over = f"compared in {measure} over {many(standings.seeds, 'seed')}"
    return f"{leader.strategy} {over}. {' '.join(captions)}"


def _named(names: Sequence[str], noun: str) -> str:
    """Return a few strategies by name, or the number of many."""
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} {noun}"


def how_tested(results: Results) -> str:
    """Return the number of tested and of significant contrasts, and the test; empty without any test."""
    contrasts = results.contrasts
    if not contrasts:
        return ""
    holding = sum(contrast.holds for contrast in contrasts)
    first = _foremost(contrasts)
    statistics = (
        f"{first.question.capitalize()}: {many(first.effect.n, 'seed')}, {numbers.p_value(first.p)}. "
        if first
        else ""
    )
    return (
        f"{statistics}{holding} of {many(len(contrasts), 'difference')} between two strategies hold: "
        "paired t-tests at 5\N{NO-BREAK SPACE}%, Holm’s adjustment for all."
    )


def what_is_open(results: Results) -> str:
    """Return the scenarios without a contrast that holds, or the seeds that would show the largest."""
    contrasts = results.contrasts
    if any(contrast.holds for contrast in contrasts):
        return _where_nothing_holds(contrasts)
    if not contrasts or not (needed := seeds_to_show(contrasts)):
        return ""
    largest, seeds = needed
    names = f"{largest.first.strategy} ahead of {largest.second.strategy}"
    place = _place(largest, results)
    return (
        f"To show the largest difference, {names} in {largest.question}{place}: {numbers.about_seeds(seeds)}."
    )


def _place(contrast: PairedContrast, results: Results) -> str:
    """Return the scenario; empty for a single scenario."""
    return f", in {contrast.scenario.label}" if len(results.scenarios) > 1 else ""


def _where_nothing_holds(contrasts: Sequence[PairedContrast]) -> str:
    """Return the scenarios without a significant contrast, in a sentence; empty without any."""
    tested = list(dict.fromkeys(contrast.scenario.label for contrast in contrasts))
    decided = {contrast.scenario.label for contrast in contrasts if contrast.holds}
    quiet = [label for label in tested if label not in decided]
    if not quiet:
        return ""
    places = quiet[0] if len(quiet) == 1 else f"{len(quiet)} of {len(tested)} scenarios"
    return f"No difference holds in {places}."


def _times(contrast: PairedContrast) -> str:
    """Return the times of both strategies to the target, or the numbers of seeds."""
    scenario = contrast.scenario
    assert scenario.target is not None
    target = _stated(scenario.metric, scenario.metric.round_text(scenario.target))
    unit = contrast.first.runs[0].time_unit or "units of time"
    first, second = _time(contrast.first, contrast, f" {unit}"), _time(contrast.second, contrast)
    return f"{contrast.first.strategy} meets {target} {first}, {contrast.second.strategy} {second}"


def _time(cell: Cell, contrast: PairedContrast, unit: str = "") -> str:
    reach = cell.reach(Clock.TIME)
    if isfinite(reach.median):
        return f"at {numbers.moment(reach.median)}{unit}"
    if reach.reached:
        return f"in {reach.reached} of {many(reach.of, 'seed')}"
    runs = [run for run in cell.runs if run.status.terminated and Clock.TIME in run.files.curve]
    last = min(run.observed_until(inf, Clock.TIME) for run in runs)
    return "never" if last == inf else f"never within {numbers.moment(last)}"


def _finals(contrast: PairedContrast) -> str:
    """Return the mean final values of both strategies."""
    metric = contrast.scenario.columns[0]
    first, second = (
        metric.with_unit(cell.final[metric.name].mean) for cell in (contrast.first, contrast.second)
    )
    ends = f"ends at {_stated(metric, first)}"
    return f"{contrast.first.strategy} {ends}, {contrast.second.strategy} at {second}"


def _stated(metric: Measure, value: str) -> str:
    """Return a value with the metric in words: 85 % test accuracy, training loss 0.05."""
    return f"{value} {metric.in_text}" if metric.share else f"{metric.in_text} {value}"
