"""The first paragraph: what was run, when, and which strategies lead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from fl_core.words import many
from reports.numbers import duration
from reports.records.records import RecordedRun, RecordedSuite
from reports.sections.section import Results
from reports.statistics.ranking import leader


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
    runs = suite.runs
    status = Counter(run.status for run in runs)
    parts = []
    if suite.missing:
        parts.append(f"{many(suite.missing, 'run')} of the grid {_is(suite.missing)} not recorded yet.")
    if status["running"]:
        parts.append(f"{many(status['running'], 'run')} {_is(status['running'])} still running.")
    if status["diverged"]:
        they = (
            "it is counted and shown, but has"
            if status["diverged"] == 1
            else "they are counted and shown, but have"
        )
        parts.append(f"{many(status['diverged'], 'run')} diverged; {they} no final value.")
    if status["stalled"]:
        parts.append(f"{many(status['stalled'], 'run')} stalled, waiting for clients that never come.")
    for name, verb in (("error", "failed"), ("interrupted", "interrupted")):
        if status[name]:
            was = "" if name == "error" else "was " if status[name] == 1 else "were "
            parts.append(f"{many(status[name], 'run')} {was}{verb}.")
    if suite.unread:
        parts.append(f"{many(len(suite.unread), 'run')} left files that cannot be read; see Provenance.")
    edited = sum(not run.outdated for run in suite.older)
    if edited:
        parts.append(
            f"{many(edited, 'older run')} of the same names {_is(edited)} left out: "
            "their hyper-parameters differ, or they were repeated."
        )
    if suite.outdated:
        parts.append(suite.outdated)
    return parts


def who_leads(results: Results) -> str:
    """Which strategies have the best mean, and in how many scenarios; empty where nothing is compared."""
    compared = [(scenario, rows) for scenario, rows in results.scenarios if len(rows) > 1]
    leaders = [leader(scenario, rows) for scenario, rows in compared]
    wins = Counter(strategy for names in leaders for strategy in names)
    if not wins:
        return ""
    ranks = {scenario.columns[0] for scenario, _ in compared}
    one = ranks.pop() if len(ranks) == 1 else None
    what = f"{'highest' if one.higher else 'lowest'} mean {one.in_text}" if one else "best mean final value"
    top = max(wins.values())
    names = [strategy for strategy in results.suite.strategies if wins[strategy] == top]
    everywhere = "both" if top == 2 else f"all {top}"
    where = f" in {everywhere if top == len(compared) else f'{top} of {len(compared)}'} scenarios"
    subject = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    verb = "has" if len(names) == 1 else "each have"
    return f"{subject} {verb} the {what}{where if len(compared) > 1 else ''}."


def how_sure(results: Results) -> str:
    """In how many scenarios the best is shown to be better than all others; empty where unknown."""
    compared = [of for of in results.differences() if of]
    if not compared:
        return ""
    n = {one.effect.n for of in compared for one in of if one.effect}
    seeds = many(max(n), "seed") if len(n) == 1 else f"{min(n)} to {max(n)} seeds"
    sure = sum(all(one.worse for one in of[1:] if one.effect) for of in compared)
    if sure == 0:
        return f"Nowhere do {seeds} show that the best of a scenario beats all others."
    where = "the scenario" if len(compared) == 1 else f"{sure} of {len(compared)} scenarios"
    return f"In {where} the best is shown, over {seeds}, to beat all others."


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
