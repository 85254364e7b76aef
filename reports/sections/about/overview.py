"""The first paragraph: what was run, when, and which strategies lead."""

from collections import Counter
from collections.abc import Sequence

from fl_core.schema import Status
from fl_core.text import duration, listed, many
from reports import numbers
from reports.records.records import RecordedSuite
from reports.records.runs import RecordedRun
from reports.sections.behind import seeds_text
from reports.sections.section import Results

ONE_SEED = "One seed: chance may have put them in this order."
NAMED = 3  # strategies named in a sentence; of more, their number


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
    """Return caveats for the tables: one sentence each."""
    status = Counter(run.status for run in suite.runs)
    diverged, missing, running = status[Status.DIVERGED], suite.missing, status[Status.RUNNING]
    stalled, failed = status[Status.STALLED], status[Status.ERROR]
    edited, unread = len(suite.older), len(suite.unread)
    they = "it is counted and shown, but has" if diverged == 1 else "they are counted and shown, but have"
    sentences = {
        suite.unequal_budgets: 1,
        suite.unequal_data: 1,
        one_seed(suite): 1,
        f"{many(missing, 'run')} of the grid {_is(missing)} not recorded yet.": missing,
        f"{many(running, 'run')} {_is(running)} still running.": running,
        f"{many(diverged, 'run')} diverged; {they} no final value.": diverged,
        f"{many(stalled, 'run')} stalled: no step would have followed.": stalled,
        f"{many(failed, 'run')} failed.": failed,
        f"Left out: {many(len(suite.damaged), 'damaged record')}; see Provenance.": len(suite.damaged),
        f"{many(unread, 'run')} left files that cannot be read; see Provenance. "
        "Runs that are deleted in MLflow are made again.": unread,
        f"{many(edited, 'older run')} of the same names {_is(edited)} left out: "
        "their hyper-parameters differ, or they were repeated.": edited,
    }
    return [sentence for sentence, applies in sentences.items() if sentence and applies]


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
    names = [line.strategy for line in standings.lines if line.score.mean == best]
    subject, verb = listed(names), "has" if len(names) == 1 else "have"
    if standings.by_rank:
        metric_text = f" in {metric.in_text}" if metric else ""
        where, n = many(standings.scenarios, "scenario"), len(standings.lines)
        return f"{subject} {verb} the best mean rank{metric_text} over {where}: {best:.1f} of {n}."
    assert metric is not None
    extreme = "highest" if metric.higher else "lowest"
    return f"{subject} {verb} the {extreme} mean {metric.in_text}: {metric.with_unit(best)}."


def how_sure(results: Results) -> str:
    """Return from whom the seeds separate the leader, and how many would; empty without a comparison."""
    standings = results.standings
    if standings is None:
        return ""
    compared, left, leader = standings.compared, standings.open, standings.leader
    if not compared:
        return "" if standings.seeds > 1 else ONE_SEED
    # Of several with the same score the first one is compared with the others.
    tied = sum(line.score.mean == leader.score.mean for line in standings.lines) > 1
    head = f"Over {many(standings.seeds, 'seed')} {leader.strategy if tied else 'it'} is"
    apart = [line.strategy for line in compared if not line.open]
    if not left:
        n = len(compared)
        others = "both others" if n == 2 else f"all {numbers.spelt(n)} others" if n > 2 else apart[0]
        return f"{head} separated from {others}."
    whom = _whom([line.strategy for line in left])
    if apart:
        text = f"{head} separated from {_whom(apart)}, but not from {whom}"
    else:
        text = f"{head} not separated from {'any other' if len(left) > 1 else whom}"
    nearest = left[0]
    needed = seeds_text(nearest.gap)
    if not needed:
        return f"{text}."
    which = f" it from the nearest, {nearest.strategy}" if len(left) > 1 else " it"
    return f"{text}; {needed} would separate{which}."


def _whom(names: Sequence[str]) -> str:
    """Return a few strategies by name, more by their number."""
    return listed(names) if len(names) <= NAMED else f"{numbers.spelt(len(names))} others"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
