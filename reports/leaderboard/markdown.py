"""A leaderboard as a page in Markdown, docs/leaderboard.md."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import pandas as pd

from fl_core.text import many, natural
from reports import numbers
from reports.leaderboard.board import Board
from reports.leaderboard.profiles import LATEST
from reports.leaderboard.results import SCENARIO

HOW = """\
## How it is measured

- Every strategy is tuned in every scenario by `asyncfl tune`: equal numbers of trials and seeds, judged on
  validation data, on seeds that the leaderboard does not use.
- All strategies of a scenario get the same budget, and in each seed the same data, first model and job
  lengths. They are ranked by the metric of the suite at the end; a run that diverged is last.
- A **rank** is the mean over scenarios, with a 95 % interval over seeds. In bold: the first, and all that are
  not shown to be behind it (paired differences of ranks over seeds, Holm, 5 %).
- The **score** is AlgoPerf's: the share of scenarios in which the target is met within a factor τ of the
  fastest one, averaged over τ from 1 to {latest:g}; 1 is a strategy that is the fastest everywhere.
- **At the end** is the mean of that metric over scenarios and seeds, and **worst client** that of the client
  where it is lowest; runs that diverged are left out.
- **Good rates**: how many times the greatest rate (local × server) that did well in tuning is the least one,
  median over scenarios; well is within 2 % of the best trial. Wider is more forgiving. Trials gather around
  the best, so that the true width may be larger.
- **Uploads** are what clients send until the target, as a multiple of the least, median over scenarios; ∞
  where the target is missed in half of them. **Kept** is memory at the end beside models and updates.
"""

PROFILES = "![Performance profiles of the strategies with the highest scores]({})"


def page(board: Board, title: str, command: str, ranks: str, profiles: str) -> str:
    """The whole page; `command` makes it again, `ranks` and `profiles` are paths of its pictures."""
    runs = board.runs
    size = [
        many(runs["strategy"].nunique(), "strategy"),
        many(runs.groupby(SCENARIO).ngroups, "scenario"),
        many(runs["seed"].nunique(), "seed"),
        many(len(runs), "run"),
    ]
    parts = [
        f"# {title}",
        f"Made by `{command}`; nothing here is written by hand.",
        _lead(board),
        *filter(None, [board.about]),
        f"{', '.join(size)}; problems: {', '.join(sorted(runs['problem'].unique()))}.",
        f"![Mean rank of each strategy with its interval]({ranks})",
        _overall(board.overall),
        *_problems(board.problems),
        "## By population",
        "Mean rank over problems, with its 95 % interval; a table for each split of the data.",
        *_populations(board.populations),
        *(["## Time to target", PROFILES.format(profiles)] if len(board.ratios) else []),
        HOW.format(latest=LATEST),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _lead(board: Board) -> str:
    """The answer in a sentence."""
    overall = board.overall
    first, *others = overall.loc[~overall["separated"], "strategy"]
    rank = overall.iloc[0]
    said = (
        f"**{first}** has the best mean rank, {rank['rank']:.1f} "
        f"[{rank['low']:.1f}, {rank['high']:.1f}] of {len(overall)}"
    )
    if not others:
        return f"{said}; every other strategy is shown to be behind it."
    return f"{said}; not separated from it: {', '.join(others)}."


def _overall(overall: pd.DataFrame) -> str:
    head = (
        "Strategy",
        "Mean rank",
        "95 %",
        "Score",
        "At the end (%)",
        "Worst client (%)",
        "Uploads",
        "Server keeps",
        "Clients keep",
        "Good rates",
    )
    rows = [
        (
            _bold(one["strategy"], not one["separated"]),
            f"{one['rank']:.1f}",
            _interval(one),
            numbers.MISSING if isnan(one["score"]) else f"{one['score']:.2f}",
            numbers.percent(one["value"]),
            numbers.percent(one["worst_client"]),
            f"{numbers.number(one['uploads'], 2)} ×",
            numbers.size(one["server_bytes"]),
            numbers.size(one["clients_bytes"]),
            numbers.MISSING if isnan(one["width"]) else f"{numbers.number(one['width'], 2)} ×",
        )
        for one in overall.to_dict("records")
    ]
    return table(head, rows)


def _problems(problems: pd.DataFrame) -> Iterator[str]:
    """Strategies down, problems across; nothing where there is only one."""
    if problems["problem"].nunique() > 1:
        yield "## By problem"
        yield "Mean rank over populations and splits of the data, with its 95 % interval."
        yield _across(problems, "problem")


def _populations(populations: pd.DataFrame) -> Iterator[str]:
    """For each split of the data: strategies down, populations of clients across."""
    for partition, there in populations.groupby("partition", sort=False):
        yield f"### {partition}"
        yield _across(there, "timing")


def _across(standings: pd.DataFrame, column: str) -> str:
    """Strategies down, the best mean of ranks first, and the values of a column across."""
    cells = {(one["strategy"], one[column]): _standing(one) for one in standings.to_dict("records")}
    heads = sorted(standings[column].unique(), key=natural)
    order = standings.groupby("strategy")["rank"].mean().sort_values().index
    return table(
        ["Strategy", *heads], [(name, *(cells.get((name, head), "") for head in heads)) for name in order]
    )


def _standing(one: Mapping[Hashable, Any]) -> str:
    rank = _bold(f"{one['rank']:.1f}", not one["separated"])
    return f"{rank} {_interval(one)}"


def _interval(one: Mapping[Hashable, Any]) -> str:
    return f"[{one['low']:.1f},\u00a0{one['high']:.1f}]"  # on one line


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    rule = ("---", *("---:" for _ in head[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
