"""Version 2.0 of the leaderboard as a page in Markdown: who leads for which clients, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fl_core.text import listed, many
from reports import numbers
from reports.figures import svg
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.populations import (
    DISTANCES,
    NEVER,
    REFERENCE,
    TRIALS,
    PopulationScores,
    ScenarioGoal,
    correlation,
    populations,
)
from reports.leaderboard.rank_groups import NEIGHBOURS
from reports.tables import markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEM = "populations"
NAMES = {
    "alike": "alike",
    "persistent": "persistent speeds",
    "fixed": "fixed speeds",
    "two_speed": "two speeds",
    "phones": "phones",
}
WHAT = {
    "alike": "all clients have the same mean speed, and times are memoryless",
    "persistent": "mean speeds are log-normal (σ = 1), and times vary by σ = 0.3 around them",
    "fixed": "F80: times from 1 down to 0.2, always the same",
    "two_speed": "a fifth of the clients is ten times slower",
    "phones": "published speeds and links of phones, messages of 4 MB, and one link of the server for all",
}
CAN_NOT_SAY = (
    "The board does not say what holds for other workloads, models or populations than those that it names; "
    "its models are linear. Where two entries share a rank group, it does not say which is sooner."
)


def write(tables: BoardTables, goals: Mapping[str, ScenarioGoal], folder: Path) -> Path:
    """Write the page and the heat map into a folder; return the page's path."""
    scores = {name: PopulationScores(tables, scales, goals) for name, scales in populations(tables).items()}
    scores = {name: own for name, own in scores.items() if own.comparable}
    heat_map(scores).save(folder / f"{STEM}-heat.svg")
    path = folder / f"{STEM}.md"
    path.write_text("\n".join(page(tables, scores)) + "\n", encoding="utf-8")
    return path


def page(tables: BoardTables, scores: Mapping[str, PopulationScores]) -> Iterator[str]:
    """Yield the lines of the page.

    Args:
        tables: The rows of the board.
        scores: Population → scores, of populations with whole entries.
    """
    yield "# Leaderboard 2.0: who is soonest, for which clients\n"
    yield f"{_size(tables, scores)} Made by `asyncfl leaderboard page`; nothing here is written by hand.\n"
    yield from _leaders(scores)
    yield f"\n{CAN_NOT_SAY}\n"
    yield "## Rank groups\n"
    yield (
        f"A cell is the rank group of the entry in that population, and how many times as soon as tuned "
        f"{REFERENCE} it meets the target. Entries of one group cannot be told apart. A run that never meets "
        "the target has no time: the entry is marked “never” where most of its runs do not.\n"
    )
    yield matrix(scores)
    yield f"\n![Heat map of the same numbers]({STEM}-heat.svg)\n"
    yield "## How sure is that\n"
    yield from _certainty(scores)
    for name, own in scores.items():
        yield f"\n## {NAMES.get(name, name).capitalize()}\n"
        yield f"{WHAT.get(name, name).capitalize()}. Scenarios: {', '.join(own.scales)}.\n"
        yield population_table(own)
        yield from _beside(own)


def matrix(scores: Mapping[str, PopulationScores]) -> str:
    """Return populations × entries: rank group and times as soon as the reference."""
    rows = [
        [name, *(_cell(own, name) for own in scores.values()), _overall(scores, name)]
        for name in _order(scores)
    ]
    return markdown(["Entry", *(NAMES.get(name, name) for name in scores), "Overall"], rows)


def population_table(own: PopulationScores) -> str:
    """Return the table of a population: groups, times with intervals, shares of runs that meet the target."""
    rows = []
    for name in own.order():
        low, high = own.interval(name)
        sooner = "never" if own.groups[name] == NEVER else f"{own.sooner(name):.2f} ×"
        rows.append(
            [
                "" if own.groups[name] == NEVER else str(own.groups[name]),
                name,
                sooner,
                f"{_end(low)} to {_end(high)}",
                f"{own.met(name):.0%}",
                _times(own.sooner_at_best[name]),
                *(_count(own, name, column) for column in ("updates", "uploads", "downloads")),
            ]
        )
    head = [
        "Group",
        "Entry",
        f"As soon as {REFERENCE}",
        "95 %",
        "Target met",
        "To 98 % of the best",
        "Updates",
        "Uploaded",
        "Downloaded",
    ]
    return markdown(head, rows, left=2)


def tuning_table(own: PopulationScores) -> str:
    """Return what an entry is expected to reach on the tuning half with fewer trials, and with all."""
    unit = own.tuned_with(REFERENCE, TRIALS[-1])
    rows = [
        [name, *(_times(unit / own.tuned_with(name, trials)) for trials in (*TRIALS, None))]
        for name in own.order()
    ]
    return markdown(["Entry", *(f"{trials} trials" for trials in TRIALS), "all trials of all studies"], rows)


def heat_map(scores: Mapping[str, PopulationScores]) -> svg.Drawing:
    """Return a tile for each entry in each population, darker where it is sooner."""
    names = _order(scores)
    values = np.array(
        [[own.sooner(name) if name in own.entries else np.nan for own in scores.values()] for name in names]
    )

    def paint(axes: Axes) -> None:
        levels = np.clip(np.nan_to_num(np.log2(np.maximum(values, 0.25))) + 2, 0, 5)
        for row in range(len(names)):
            for column in range(len(scores)):
                fill, ink = svg.amount(int(levels[row, column]))
                svg.tile(axes, column, row, facecolor=fill)
                value = values[row, column]
                text = "" if isnan(value) else "never" if value == 0 else numbers.tick(float(f"{value:.2g}"))
                axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=9)
        svg.only_tiles(axes)
        axes.set_xticks(range(len(scores)), [NAMES.get(name, name) for name in scores])
        axes.set_yticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(scores) - 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.xaxis.tick_top()

    said = f"How many times as soon as {REFERENCE} each of {len(names)} entries meets the target"
    return svg.Drawing(paint, said, (560, 60 + 22 * len(names)), (190, 12, 30, 12))


def _beside(own: PopulationScores) -> Iterator[str]:
    """Yield what stands beside the table of a population: targets, and the order at other targets."""
    targets = (
        f"{scale} {own.goals[scale].target:.1%} (98 % of the best: {own.best_targets[scale]:.1%})"
        for scale in own.scales
    )
    yield f"\nTargets: {', '.join(targets)}. Counts are medians of the runs that meet the target, up to then."
    orders = [(distance, own.agreement(distance)) for distance in DISTANCES]
    words = [f"{value:.2f} at {distance:.0%}" for distance, value in orders if not isnan(value)]
    if words:
        yield (
            "Rank correlation with the order at another target, as a share of the distance from the first "
            f"model: {', '.join(words)}."
        )
    if len(own.tables.trials):
        yield f"\nWith fewer trials, on the tuning half, as soon as {REFERENCE} with {TRIALS[-1]}:\n"
        yield tuning_table(own)


def _end(ratio: float) -> str:
    return "never" if ratio == 0 else "∞" if ratio == inf else f"{ratio:.2f}"


def _times(ratio: float) -> str:
    return "–" if isnan(ratio) else "never" if ratio == 0 else f"{ratio:.2f} ×"


def _leaders(scores: Mapping[str, PopulationScores]) -> Iterator[str]:
    for name, own in scores.items():
        first = [entry for entry in own.order() if own.groups[entry] == 1]
        if len(first) > len(own.entries) / 2:
            finding = f"no entry stands out: {len(first)} of {len(own.entries)} share the first group"
        else:
            finding = f"{listed(first)} {'leads' if len(first) == 1 else 'lead'}"
        yield f"- **{NAMES.get(name, name).capitalize()}** ({WHAT.get(name, name)}): {finding}."
    everywhere = [
        entry for entry in _order(scores) if all(own.groups.get(entry) == 1 for own in scores.values())
    ]
    if len(scores) < 2:
        return
    if everywhere:
        yield f"\nIn the first group of every population: {listed(everywhere)}."
    else:
        yield "\nNo entry is in the first group of every population."


def _certainty(scores: Mapping[str, PopulationScores]) -> Iterator[str]:
    rows = [
        [
            NAMES.get(name, name),
            f"{own.resolution:.2f} ×",
            f"{max(own.copies.values()):.2f} ×" if own.copies else "not run",
            f"{own.board.false_statements:.1%}",
            f"{own.board.power:.0%}",
        ]
        for name, own in scores.items()
    ]
    yield markdown(
        ["Population", "Smallest ratio told apart", "Copies differ by", "False statements", "Power"], rows
    )
    yield (
        "\nSmallest ratio told apart: two entries closer than that share a rank group. Copies: FedBuff, ASGD "
        "and ACE are tuned and run a second time; what separates a copy from its entry is luck. False "
        "statements: the share of simulated boards of equal entries on which any two are told apart. Power: "
        f"the share of neighbours told apart where each truly takes {NEIGHBOURS} times as long as the one "
        "before.\n"
    )
    pairs = [(first, second) for at, first in enumerate(scores) for second in [*scores][at + 1 :]]
    known = [(pair, correlation(scores[pair[0]], scores[pair[1]])) for pair in pairs]
    words = [
        f"{NAMES.get(first, first)} and {NAMES.get(second, second)} {value:.2f}"
        for (first, second), value in known
        if not isnan(value)
    ]
    if words:
        yield f"Rank correlation between populations: {'; '.join(words)}.\n"


def _order(scores: Mapping[str, PopulationScores]) -> list[str]:
    """Return all entries by their mean place over populations."""
    orders = [own.order() for own in scores.values()]
    entries = dict.fromkeys(name for order in orders for name in order)
    return sorted(
        entries,
        key=lambda name: (float(np.mean([order.index(name) for order in orders if name in order])), name),
    )


def _cell(own: PopulationScores, name: str) -> str:
    if name not in own.entries:
        return "–"
    group = own.groups[name]
    return "never" if group == NEVER else f"**{group}** · {own.sooner(name):.2g} ×"


def _overall(scores: Mapping[str, PopulationScores], name: str) -> str:
    groups = [own.groups[name] for own in scores.values() if name in own.entries]
    return (
        "–"
        if len(groups) < len(scores)
        else f"first in {sum(group == 1 for group in groups)} of {len(groups)}"
    )


def _count(own: PopulationScores, name: str, column: str) -> str:
    finals = own.tables.finals
    rows = finals[
        finals["scale"].isin(own.scales) & (finals["strategy"] == name) & np.isfinite(finals["time"])
    ]
    if rows.empty:
        return "–"
    value = float(rows[column].median())
    return f"{value:,.0f}" if column == "updates" else f"{value / 1e6:,.1f} MB"


def _size(tables: BoardTables, scores: Mapping[str, PopulationScores]) -> str:
    entries = {name for own in scores.values() for name in own.entries}
    own = tables.finals[tables.finals["strategy"] == REFERENCE]
    studies = own["study"].nunique()
    commits = sorted({*tables.finals["commit"]})
    return (
        f"So far {many(len(entries), 'entry')}, {many(len(tables.scales), 'scenario')}, "
        f"each entry with {many(studies, 'study')} of {many(tables.trials['trial'].nunique(), 'trial')}, "
        f"{many(len(tables.trials), 'run')} for tuning and {many(len(tables.finals), 'final run')}, "
        f"from {many(len(commits), 'commit')}: {', '.join(commit[:10] for commit in commits)}."
    )
