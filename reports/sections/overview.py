"""The first paragraph: what was run, when, and which strategies lead."""

from collections import Counter
from collections.abc import Sequence

from fl_core.schema import Status, Total
from fl_core.text import duration, many
from reports import numbers
from reports.records.records import RecordedSuite
from reports.records.runs import RecordedRun
from reports.sections.behind import seeds_text
from reports.sections.section import Results

ONE_SEED = "One seed: chance may have put them in this order."
MEASURED = "problem.measured"  # the parameter of runs whose job lengths were measured
MESSAGE = "timing.network.message"  # the parameter of runs with messages of a given size
SMALL_TRANSFER_SHARE = 0.01  # of the clients' working time, below which links hardly matter
NAMED = 3  # strategies named in a caption; of more, their number


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
    """Return the suite's campaign in a sentence; empty without one."""
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
    """Return caveats for the tables: one caption each."""
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
    """Return a warning where job lengths were measured; else nothing."""
    if all(run.params.get(MEASURED) != "true" for run in suite.runs):
        return ""
    return "Job lengths were measured: times depend on the machine and do not repeat."


def idle_links(suite: RecordedSuite) -> str:
    """Return a warning where links were given and messages are too small to need time; else nothing."""
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
    """Return a warning where strategies are compared on a single seed; else nothing."""
    if len(suite.seeds) != 1 or len(suite.strategies) < 2:
        return ""
    return (
        "One seed only: nothing here shows that one strategy is better than another. "
        "More seeds: the same command with --set seeds=5."
    )


def who_leads(results: Results) -> str:
    """Return the leader, by the number that orders all tables; empty where nothing is compared."""
    standings = results.standings
    if standings is None:
        return ""
    ranks = {scenario.columns[0] for scenario in results.scenarios}
    metric = ranks.pop() if len(ranks) == 1 else None
    best = standings.leader.score.mean
    names = ", ".join(line.strategy for line in standings.lines if line.score.mean == best)
    if standings.by_rank:
        metric_text = f" in {metric.in_text}" if metric else ""
        where, n = many(standings.scenarios, "scenario"), len(standings.lines)
        return f"Best mean rank{metric_text} over {where}: {names} ({best:.1f} of {n})."
    assert metric is not None
    extreme = "Highest" if metric.higher else "Lowest"
    return f"{extreme} mean {metric.in_text}: {names} ({metric.with_unit(best)})."


def how_sure(results: Results) -> str:
    """Return from whom the seeds separate the leader, and how many would; empty without a comparison."""
    standings = results.standings
    if standings is None:
        return ""
    compared, left, leader = standings.compared, standings.open, standings.leader
    if not compared:
        return "" if standings.seeds > 1 else ONE_SEED
    apart = [line.strategy for line in compared if not line.open]
    captions = []
    if apart:
        captions.append(f"Separated: {_named(apart)}.")
    if left:
        captions.append(f"Not separated: {_named([line.strategy for line in left])}.")
        if needed := seeds_text(left[0].gap):
            captions.append(f"To separate {left[0].strategy}: {needed}.")
    measure = "mean rank" if standings.by_rank else "final value"
    over = f"compared in {measure} over {many(standings.seeds, 'seed')}"
    return f"{leader.strategy} {over}. {' '.join(captions)}"


def _named(names: Sequence[str]) -> str:
    """Return a few strategies by name, of more their number."""
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} others"
