"""The leaderboard as pages in Markdown: leaders in each population, certainty, and all settings.

`asyncfl leaderboard` calls `write`; docs/leaderboard.md is its output. Functions that return a `Table` are
called by the template in templates/.

Fixed: the pages, byte for byte, until `tox run -e reproduce -- --write` writes them anew.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import inf, isnan
from pathlib import Path

import numpy as np
import pandas as pd

from fl_core.text import listed, many
from reports.leaderboard import figures
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.rank_groups import NEIGHBOURS
from reports.leaderboard.scores import (
    COPY,
    DISTANCES,
    FEW,
    REFERENCE,
    TRIALS,
    Coverage,
    PopulationScores,
    ScenarioGoal,
    board_order,
    board_scores,
    correlation,
    held_out_scores,
    population,
    tuned_scales,
)
from reports.numbers import MISSING
from reports.statistical_inference import paired_effect
from reports.tables import markdown, markdown_templates

STEM = "leaderboard"  # prefix of the names of pages and figures
SETTINGS = f"{STEM}-settings"
ONE_SETTING = "One setting"  # heading of the column with a setting from other populations
MOST_NAMED = 5  # leaders of a population given by name
NAMES = {
    "alike": "alike",
    "persistent": "persistent speeds",
    "fixed": "fixed speeds",
    "two_speed": "two speeds",
    "phones": "phones",
}
WHAT = {
    "alike": "all clients have the same mean speed, and the time of each step is drawn from an exponential "
    "distribution",
    "persistent": "each client has its own mean time of a step (log-normal, σ = 1), and its steps vary "
    "around this mean (log-normal, σ = 0.3)",
    "fixed": "each client has its own constant time of a step, from 0.2 to 1 units of time (setting F80 of "
    "the FedFix paper)",
    "two_speed": "a fifth of the clients is ten times slower",
    "phones": "published speeds and links of phones, messages of 4 MB, and one link of the server for all",
    "alpha": "clients are alike; their data are less skewed than on the board",
    "clients": "persistent speeds, with twice as many clients",
    "tails": "persistent speeds with heavy tails; clients come and go with the time of day",
}
FIRST = 12  # first entries of a population whose order is compared separately

Table = tuple[Sequence[str], Sequence[Sequence[str]]]  # headings and rows


@dataclass(frozen=True, eq=False)
class Board:
    """The input of the pages.

    Args:
        tables: The rows of the board.
        goals: Scenario → budget and target, of all scenarios with rows.
        planned_scenarios: All scenarios of the suite.
        planned_entries: Labels of all entries of the suite.
        samplers: Final runs of the pilot of samplers, with columns sampler, strategy, study, seed, time.
        data: Problem → digest of its data.
    """

    tables: BoardTables
    goals: Mapping[str, ScenarioGoal]
    planned_scenarios: Sequence[str] = ()
    planned_entries: Sequence[str] = ()
    samplers: pd.DataFrame | None = None
    data: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def scores(self) -> dict[str, PopulationScores]:
        """Scores of each population with comparable entries."""
        return board_scores(self.tables, self.goals)

    @cached_property
    def held_out(self) -> dict[str, PopulationScores]:
        """Scores of each held-out scenario with comparable entries."""
        return held_out_scores(self.tables, self.goals)


def write(board: Board, folder: Path) -> Path:
    """Write the page, the page of settings and the figures into a folder; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {key: population_name(key) for key in board.scores}
    figures.heat_map(board.scores, names).save(folder / f"{STEM}-heat.svg")
    for result in board.scores.values():
        for scale in result.scales:
            figures.curves(result, scale).save(folder / f"{STEM}-{scale}.svg")
    path = folder / f"{STEM}.md"
    path.write_text(page(board), encoding="utf-8")
    text = "\n".join(settings_page(board.tables)) + "\n"
    (folder / f"{SETTINGS}.md").write_text(text, encoding="utf-8")
    return path


def population_name(key: str) -> str:
    """Return the name of a population for readers."""
    return NAMES.get(key, key.replace("_", " "))


def page(board: Board) -> str:
    """Return the page."""
    scores = board.scores
    everywhere = [
        name for name in board_order(scores) if all(name in result.leaders for result in scores.values())
    ]
    functions = (
        *(agreements, as_markdown, certainty, leaders, listed, markdown, matrix, population_name),
        *(population_table, powers, ratio_text, sampler_finding, sampler_table, tuning_table),
    )
    templates = markdown_templates(Path(__file__).parent / "templates")
    templates.globals |= {function.__name__: function for function in functions}
    return templates.get_template("leaderboard.md.j2").render(
        scores=scores,
        about=WHAT,
        neighbours=NEIGHBOURS,
        few=FEW,
        one_setting=ONE_SETTING,
        limits=limits(board),
        leading_everywhere=everywhere,
        missing=_missing(board),
        correlations=_correlations(scores),
        held_out=held_out_table(board),
        transferred=transferred_table(board),
        samplers=board.samplers,
        size=_size(board),
        data=[f"{problem} {digest}" for problem, digest in board.data.items()],
    )


def limits(board: Board) -> str:
    """Return the paragraph on the scope of the board: strategies, populations, workloads, models."""
    goals = [board.goals[scale] for result in board.scores.values() for scale in result.scales]
    workloads = list(dict.fromkeys(goal.workload for goal in goals if goal.workload))
    names = listed([f"“{population_name(name)}”" for name in board.scores])
    curved = list(dict.fromkeys(goal.workload for goal in goals if not goal.linear))
    data = f" on {listed(workloads)}" if workloads else ""
    models = (
        f"models{data}. Models that are not linear: {listed(curved)}" if curved else f"linear models{data}"
    )
    entries = {name for result in board.scores.values() for name in result.entries}
    return (
        f"This board compares how fast {many(len(entries), 'strategy')} reach a target accuracy. A strategy "
        "is the algorithm of the server. An entry of the board is a strategy with tuned parameters. A "
        f"population is a set of clients with certain speeds. The board has the populations {names}. The "
        f"clients train {models}. The board says nothing about other models, data and populations. If the "
        "runs do not show which of two entries is faster, these share a rank group. Group 1 is the fastest."
    )


def matrix(scores: Mapping[str, PopulationScores], linked: bool = False) -> Table:
    """Return populations × entries: rank groups, and speed-ups over the reference."""
    rows = [
        [
            _linked(name) if linked else name,
            *(_cell(result, name) for result in scores.values()),
            _overall(scores, name),
        ]
        for name in board_order(scores)
    ]
    return ["Entry", *(population_name(name) for name in scores), "In the first group"], rows


def population_table(result: PopulationScores, linked: bool = True) -> Table:
    """Return the table of a population: rank groups, times with intervals, and counts."""
    rows = []
    energy = any(result.goals[scale].power for scale in result.scales)
    for name in result.order():
        low, high = result.interval(name)
        rows.append(
            [
                MISSING if result.never(name) else str(result.groups[name]),
                _linked(name) if linked else name,
                "never" if result.never(name) else f"{result.sooner(name):.2f} ×",
                f"{ratio_text(low)} to {ratio_text(high)}",
                f"{result.met(name):.0%}",
                _times(result.sooner_at_best[name]),
                *(_count(result, name, column) for column in ("updates", "uploads", "downloads")),
                *([_energy(result, name)] if energy else []),
                _worst_client(result, name),
            ]
        )
    head = [
        "Groups",
        "Entry",
        f"Speed-up over {REFERENCE}",
        "95 % interval",
        "Target met",
        "Speed-up to 98 % of the best accuracy",
        "Client updates",
        "Uploaded",
        "Downloaded",
        *([f"Energy, {REFERENCE} = 1"] if energy else []),
        "Worst client’s accuracy",
    ]
    return head, rows


def tuning_table(result: PopulationScores, other_scales: Sequence[str] = ()) -> Table:
    """Return the speed-up of entries on the tuning half with fewer trials, all trials, and no tuning.

    Args:
        result: Scores of a population.
        other_scales: Scenarios of other populations, where the setting of the last column is chosen.
    """
    counts = result.tables.trials.groupby(["scale", "strategy"])[["study", "trial"]].nunique()
    of_study = int(counts["trial"].max())
    trials = [count for count in TRIALS if count < of_study] + [of_study]
    unit = result.tuned_with(REFERENCE, of_study)
    rows = [
        [name, *(_times(_ratio(unit, result.tuned_with(name, count))) for count in (*trials, None))]
        for name in result.order()
    ]
    head = ["Entry", *(f"{count} trials" for count in (*trials, int(counts.prod(axis=1).max())))]
    if other_scales:
        head.append(ONE_SETTING)
        for row in rows:
            row.append(_times(_ratio(unit, result.transferred(row[0], other_scales))))
    return head, rows


def held_out_table(board: Board) -> Table:
    """Return rank correlations of each held-out scenario with the population whose parameters it uses."""
    rows = []
    for scale, result in board.held_out.items():
        goal = board.goals[scale]
        tuned_in = population(goal.tuned_in)
        if tuned_in not in board.scores:
            continue
        order = board.scores[tuned_in].order()
        correlations = (
            correlation({name: medians[name] for name in names if name in medians}, result.medians)
            for names in (order, order[:FIRST])
            for medians in (board.scores[tuned_in].medians,)
        )
        rows.append(
            [
                scale,
                f"{WHAT.get(population(scale), population(scale))} ({goal.clients})",
                population_name(tuned_in),
                str(len(result.entries)),
                *(MISSING if isnan(value) else f"{value:.2f}" for value in correlations),
            ]
        )
    return ["Scenario", "Clients", "Parameters of", "Entries", "All", f"First {FIRST}"], rows


def transferred_table(board: Board) -> Table:
    """Return the speed-up of each entry in the held-out scenarios."""
    rows = [
        [name, *(_cell(result, name, groups=False) for result in board.held_out.values())]
        for name in board_order(board.held_out)
    ]
    return ["Entry", *board.held_out], rows


def sampler_table(runs: pd.DataFrame) -> Table:
    """Return the table of the pilot of samplers: a row for each strategy."""
    names = list(dict.fromkeys(runs["sampler"]))

    def cell(times: pd.Series) -> str:
        median = float(times.median())
        return f"{'never' if median == inf else f'{median:.2f}'} ({np.isfinite(times).mean():.0%})"

    by_cell = runs.groupby(["strategy", "sampler"])["time"].apply(cell)
    strategies = dict.fromkeys(runs["strategy"])
    return ["Strategy", *names], [
        [strategy, *(by_cell[strategy, name] for name in names)] for strategy in strategies
    ]


def sampler_finding(runs: pd.DataFrame) -> str:
    """Return the sentence on ratios of times to the first sampler's, paired by strategy and study."""
    first, *rivals = dict.fromkeys(runs["sampler"])
    last = runs.loc[np.isfinite(runs["time"]), "time"].max()
    logs = np.log(runs["time"].clip(upper=last))  # a missed target counts as the slowest success
    of_study = logs.groupby([runs["strategy"], runs["study"], runs["sampler"]]).mean().unstack()
    words = []
    for name in rivals:
        effect = paired_effect((of_study[name] - of_study[first]).to_numpy())
        ratio, low, high = np.exp([effect.mean, effect.low, effect.high])
        words.append(f"{ratio:.2f} × as long with {name} (95 % interval {low:.2f} to {high:.2f})")
    reason = "its points are fixed in advance, so the result of one trial does not change the next"
    return (
        f"Compared with {first}, the time to the target is {' and '.join(words)}. "
        f"The board uses {first}: {reason}."
    )


def settings_page(tables: BoardTables) -> Iterator[str]:
    """Yield the lines of the page with the best trial of every study."""
    yield "# Settings of the leaderboard's entries\n"
    yield (
        "This page lists the best trial of each study. The final runs use its parameters. The time is the "
        "mean time to the target over the seeds of the trial, on the half of the test data that is used for "
        "tuning. "
        f"`{COPY.strip()}` marks a second tuning of the same entry.\n"
    )
    best = tables.trials[tables.trials["best"] == 1]
    names = {str(name).removesuffix(COPY) for name in best["strategy"]}
    for name in sorted(names, key=str.casefold):
        yield f"## {_plain(name)}\n"
        rows = []
        rows_of_entry = best[best["strategy"].isin([name, f"{name}{COPY}"])]
        for (scale, study, label), runs in rows_of_entry.groupby(["scale", "study", "strategy"]):
            time = float(runs["time"].mean())
            values = json.loads(runs["values"].iloc[0])
            rows.append(
                [
                    f"{scale}{COPY if str(label).endswith(COPY) else ''}",
                    str(study),
                    ", ".join(f"{key} {_value(value)}" for key, value in values.items()),
                    "never" if time == inf else f"{time:.3g}",
                ]
            )
        yield markdown(["Scenario", "Study", "Parameters", "Time"], rows, text_columns=3) + "\n"


def as_markdown(table: Table) -> str:
    """Return a table in Markdown, with numbers to the right."""
    head, rows = table
    return markdown(head, rows, text_columns=1 + head.index("Entry"))


def _value(value: object) -> str:
    """Return a parameter's value with at most four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(name: str) -> str:
    """Return a name without superscripts: some tools drop these from the anchor of a heading."""
    return unicodedata.normalize("NFKD", name)


def _linked(name: str) -> str:
    """Return an entry with a link to its settings."""
    anchor = "".join(letter for letter in _plain(name).lower() if letter.isalnum() or letter in "- _")
    return f"[{name}]({SETTINGS}.md#{anchor.replace(' ', '-')})"


def _missing(board: Board) -> dict[str, list[str]]:
    """Return the missing scenarios, populations and entries, by title; empty for a complete board."""
    coverage = Coverage(board.tables.of(tuned_scales(board.goals)))
    labels = {str(name).removesuffix(COPY) for name in board.tables.finals["strategy"]}
    lines = {
        "Scenarios without runs": [
            scale for scale in board.planned_scenarios if scale not in board.tables.scales
        ],
        "Scenarios with too few runs, which do not count yet": [
            f"{scale} ({many(len(coverage.entries.get(scale, ())), 'entry')} with all runs)"
            for scale in coverage.uncounted_scenarios
        ],
        "Populations in which nothing can be compared yet": [
            population_name(name) for name in coverage.populations if name not in board.scores
        ],
        "Entries without runs": [name for name in board.planned_entries if name not in labels],
        "Entries that lack runs in a population, and are left out of it": [
            f"{name} in {listed(sorted({population_name(population(scale)) for scale in scales}))}"
            for name, scales in coverage.missing().items()
        ],
    }
    return {title: names for title, names in lines.items() if names}


def powers(result: PopulationScores) -> list[str]:
    """Return the distinct descriptions of the power of clients in the scenarios."""
    return list(dict.fromkeys(result.goals[scale].power for scale in result.scales))


def agreements(result: PopulationScores) -> list[str]:
    """Return the defined rank correlations with the order at other targets, as text."""
    orders = [(distance, result.agreement(distance)) for distance in DISTANCES]
    return [f"{value:.2f} at {distance:.0%}" for distance, value in orders if not isnan(value)]


def ratio_text(ratio: float) -> str:
    """Return a ratio of times as text: 0 if the entry missed the target, ∞ if the reference did."""
    return "never" if ratio == 0 else "∞" if ratio == inf else f"{ratio:.2f}"


def _ratio(unit: float, time: float) -> float:
    """Return the speed-up over a unit of time; 0 for a missed target."""
    return 0.0 if time == inf else unit / time


def _times(ratio: float) -> str:
    """Return a speed-up as text; a dash if unknown."""
    if isnan(ratio) or ratio == inf:
        return MISSING
    return "never" if ratio == 0 else f"{ratio:.2f} ×"


def leaders(result: PopulationScores) -> str:
    """Return the leaders of a population, in words."""
    first, count = result.leaders, len(result.entries)
    if len(first) > count / 2:
        return f"{len(first)} of {count} entries, more than half, share the first group"
    if len(first) > MOST_NAMED:
        named, others = ", ".join(first[:MOST_NAMED]), len(first) - MOST_NAMED
        return f"{len(first)} of {count} entries share the first group: {named} and {others} more"
    return f"{listed(first)} {'leads' if len(first) == 1 else 'lead'}"


def certainty(scores: Mapping[str, PopulationScores]) -> Table:
    """Return resolution, copies, false statements and power of each population."""
    rows = [
        [
            population_name(name),
            f"{ratio_text(result.resolution)} ×",
            f"{max(result.copies.values()):.2f} ×" if result.copies else "not run",
            f"{result.board.false_statements:.1%}",
            f"{result.board.power:.0%}",
        ]
        for name, result in scores.items()
    ]
    return ["Population", "Smallest ratio told apart", "Copies differ by", "False statements", "Power"], rows


def _correlations(scores: Mapping[str, PopulationScores]) -> list[str]:
    """Return the defined rank correlations between populations, as text."""
    values = {
        (first, second): correlation(scores[first].medians, scores[second].medians)
        for first, second in combinations(scores, 2)
    }
    return [
        f"{population_name(first)} and {population_name(second)} {value:.2f}"
        for (first, second), value in values.items()
        if not isnan(value)
    ]


def _cell(result: PopulationScores, name: str, groups: bool = True) -> str:
    """Return an entry's rank groups and speed-up in a population."""
    if name not in result.entries:
        return MISSING
    if result.never(name):
        return f"never ({result.met(name):.0%})"
    return f"{f'**{result.groups[name]}** · ' if groups else ''}{result.sooner(name):.1f} ×"


def _overall(scores: Mapping[str, PopulationScores], name: str) -> str:
    """Return in how many populations an entry is in the first group; a dash if some lack the entry."""
    populations = [result for result in scores.values() if name in result.entries]
    first = sum(name in result.leaders for result in populations)
    return MISSING if len(populations) < len(scores) else f"{first} of {len(populations)}"


def _count(result: PopulationScores, name: str, column: str) -> str:
    """Return the median updates or bytes of an entry until the target, as text."""
    value = _median_of_met(result, name, column)
    if isnan(value):
        return MISSING
    return f"{value:,.0f}" if column == "updates" else f"{value / 1e6:,.1f} MB"


def _energy(result: PopulationScores, name: str) -> str:
    """Return an entry's median energy until the target, relative to the reference, as text."""
    mine, reference = (_median_of_met(result, label, "energy") for label in (name, REFERENCE))
    return MISSING if isnan(mine / reference) else f"{mine / reference:.2f}"


def _median_of_met(result: PopulationScores, name: str, column: str) -> float:
    """Return the median of a column over the final runs that meet the target; NaN without such runs."""
    rows = result.final_runs(name)
    return float(rows.loc[np.isfinite(rows["time"]), column].median())


def _worst_client(result: PopulationScores, name: str) -> str:
    """Return the median of the worst client's accuracy, as text."""
    value = float(result.final_runs(name)["worst_client"].median())
    return MISSING if isnan(value) else f"{value:.1%}"


def _size(board: Board) -> str:
    """Return the sentences on the numbers of entries, studies, trials, runs and commits."""
    tables = board.tables
    entries = {name for result in board.scores.values() for name in result.entries}
    copies = {name for result in board.scores.values() for name in result.copies}
    scales = [scale for result in board.scores.values() for scale in result.scales]
    runs = tables.finals[(tables.finals["strategy"] == REFERENCE) & tables.finals["scale"].isin(scales)]
    studies = many(runs["study"].nunique(), "study")
    commits = sorted({*tables.finals["commit"]})
    return (
        f"The board has {many(len(entries), 'entry')} and {many(len(copies), 'copy')} in "
        f"{many(len(scales), 'scenario')}. In each scenario, an entry has {studies} and "
        f"{many(len(runs) // len(scales), 'final run')}. A study has "
        f"{many(tables.trials['trial'].nunique(), 'trial')} of {many(_seeds(tables.trials), 'run')} each. "
        "The stored tables also have scenarios that are not on the board. All tables together have "
        f"{many(len(tables.trials), 'run')} for tuning and {many(len(tables.finals), 'final run')}. The "
        f"final runs are from {many(len(commits), 'commit')}: {', '.join(commit[:10] for commit in commits)}."
    )


def _seeds(trials: pd.DataFrame) -> int:
    """Return the number of runs of a trial."""
    return int(trials.groupby(["scale", "strategy", "study"])["seed"].nunique().max()) if len(trials) else 0
