"""The first paragraph: what was run, when, and which strategies lead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from fl_core.schema import Status
from fl_core.text import duration, listed, many
from reports import numbers
from reports.records.records import RecordedRun, RecordedSuite
from reports.sections.behind import seeds_text
from reports.sections.section import Results

ONE_SEED = "One seed: chance may have put them in this order."
NAMED = 3  # strategies named in a sentence; of more, their number


def what_ran(suite: RecordedSuite) -> str:
    """The suite in a sentence or two."""
    scenarios = len({run.scenario for run in suite.runs})
    text = (
        f"{many(len(suite.runs), 'run')}: {many(len(suite.strategies), 'strategy')} × "
        f"{many(scenarios, 'scenario')} × {many(len(suite.seeds), 'seed')}"
    )
    wall = sum(run.wall_seconds for run in suite.runs)
    return f"{text}. {when(suite.runs)}{f', {duration(wall)} of computing in all' if wall else ''}."


def what_was_tuned(suite: RecordedSuite) -> str:
    """The suite's campaign in a sentence; empty without one."""
    if not suite.studies:
        return ""
    strategies = len({study.strategy for study in suite.studies})
    scenarios = len({study.scenario for study in suite.studies})
    return (
        f"{many(sum(len(study.counted) for study in suite.studies), 'trial')} of a tuning campaign: "
        f"{many(strategies, 'strategy')} × {many(scenarios, 'scenario')}."
    )


def when(runs: Sequence[RecordedRun]) -> str:
    """From the first start to the last end, in universal time."""
    starts = [run.started for run in runs if run.started]
    if not starts:
        return "No time was recorded"
    first, last = min(starts), max([run.ended for run in runs if run.ended] or starts)
    if first.date() == last.date():
        return f"Run on {_day(first)}, {first:%H:%M} to {last:%H:%M} UTC"
    return f"Run from {_day(first)} to {_day(last)}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


def remarks(suite: RecordedSuite) -> list[str]:
    """Caveats for the tables: one sentence each."""
    parts = [warning] if (warning := one_seed(suite)) else []
    parts += _unfinished(suite)
    edited = sum(not run.outdated for run in suite.older)
    if edited:
        parts.append(
            f"{many(edited, 'older run')} of the same names {_is(edited)} left out: "
            "their hyper-parameters differ, or they were repeated."
        )
    if suite.outdated:
        parts.append(suite.outdated)
    return parts


def _unfinished(suite: RecordedSuite) -> list[str]:
    """Runs that are missing, or did not come to the end of their budget."""
    status = Counter(run.status for run in suite.runs)
    parts: list[str] = []
    if suite.missing:
        parts.append(f"{many(suite.missing, 'run')} of the grid {_is(suite.missing)} not recorded yet.")
    if status[Status.RUNNING]:
        parts.append(f"{many(status[Status.RUNNING], 'run')} {_is(status[Status.RUNNING])} still running.")
    if status[Status.DIVERGED]:
        they = (
            "it is counted and shown, but has"
            if status[Status.DIVERGED] == 1
            else "they are counted and shown, but have"
        )
        parts.append(f"{many(status[Status.DIVERGED], 'run')} diverged; {they} no final value.")
    if status[Status.STALLED]:
        stalled = many(status[Status.STALLED], "run")
        parts.append(f"{stalled} stalled, waiting for clients that left permanently.")
    if status[Status.ERROR]:
        parts.append(f"{many(status[Status.ERROR], 'run')} failed.")
    if suite.damaged:
        parts.append(f"Left out: {many(len(suite.damaged), 'damaged record')}; see Provenance.")
    if suite.unread:
        parts.append(f"{many(len(suite.unread), 'run')} left files that cannot be read; see Provenance.")
    return parts


def one_seed(suite: RecordedSuite) -> str:
    """A warning where strategies are compared on a single seed; else empty."""
    if len(suite.seeds) != 1 or len(suite.strategies) < 2:
        return ""
    return (
        "One seed only: nothing here shows that one strategy is better than another. "
        "More seeds: asyncfl run with --set seeds=5."
    )


def who_leads(results: Results) -> str:
    """The leader, by the number that orders all tables; empty where nothing is compared."""
    found = results.standings
    if found is None:
        return ""
    ranks = {scenario.columns[0] for scenario, _ in results.scenarios}
    measure = ranks.pop() if len(ranks) == 1 else None
    names = [one.strategy for one in found.lines if one.score.mean == found.leader.score.mean]
    subject, verb = listed(names), "has" if len(names) == 1 else "have"
    if found.by_rank:
        of = f" in {measure.in_text}" if measure else ""
        where, rank = many(found.scenarios, "scenario"), found.leader.score.mean
        return f"{subject} {verb} the best mean rank{of} over {where}: {rank:.1f} of {len(found.lines)}."
    assert measure is not None
    best = "highest" if measure.higher else "lowest"
    unit = " %" if measure.share else ""
    value = f"{measure.text(found.leader.score.mean)}{unit}"
    return f"{subject} {verb} the {best} mean {measure.in_text}: {value}."


def how_sure(results: Results) -> str:
    """From whom the seeds separate the leader, and how many would do so; empty where nothing is compared."""
    found = results.standings
    if found is None:
        return ""
    compared, left = found.compared, found.open
    if not compared:
        return "" if found.seeds > 1 else ONE_SEED
    # Of several with the same score the first one is compared with the others.
    tied = sum(one.score.mean == found.leader.score.mean for one in found.lines) > 1
    head = f"Over {many(found.seeds, 'seed')} {found.leader.strategy if tied else 'it'} is"
    apart = [one.strategy for one in compared if not one.open]
    if not left:
        n = len(compared)
        others = "both others" if n == 2 else f"all {numbers.spelt(n)} others" if n > 2 else apart[0]
        return f"{head} separated from {others}."
    whom = _whom([one.strategy for one in left])
    if apart:
        text = f"{head} separated from {_whom(apart)}, but not from {whom}"
    else:
        text = f"{head} not separated from {'any other' if len(left) > 1 else whom}"
    nearest = left[0]
    needed = seeds_text(nearest.behind.needed if nearest.behind else None)
    if not needed:
        return f"{text}."
    which = f" it from the nearest, {nearest.strategy}" if len(left) > 1 else " it"
    return f"{text}; {needed} would separate{which}."


def _whom(names: Sequence[str]) -> str:
    """A few strategies by name, more by their number."""
    return listed(names) if len(names) <= NAMED else f"{numbers.spelt(len(names))} others"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
