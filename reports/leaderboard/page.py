"""The leaderboard as pages in Markdown: who leads for which clients, how sure that is, and all settings."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from pathlib import Path

import numpy as np
import pandas as pd

from fl_core.text import listed, many
from reports.inference import paired_effect
from reports.leaderboard import figures
from reports.leaderboard.board_tables import BoardTables
from reports.leaderboard.populations import (
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
    population,
)
from reports.leaderboard.rank_groups import NEIGHBOURS
from reports.numbers import MISSING
from reports.tables import markdown

STEM = "leaderboard"  # begins the names of pages and figures
SETTINGS = f"{STEM}-settings"
ONE_SETTING = "One setting"  # heads the column without tuning in the population
MOST_NAMED = 5  # leaders of a population that are named
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
    "fixed": "F80: the step of a client takes 0.2 to 1, and never changes",
    "two_speed": "a fifth of the clients is ten times slower",
    "phones": "published speeds and links of phones, messages of 4 MB, and one link of the server for all",
}

Table = tuple[Sequence[str], Sequence[Sequence[str]]]  # headings and rows


@dataclass(frozen=True, eq=False)
class Board:
    """A board to be written.

    Args:
        tables: Its rows.
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
    scores: Mapping[str, PopulationScores] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", board_scores(self.tables, self.goals))


def write(board: Board, folder: Path) -> Path:
    """Write the page, the page of settings and the figures into a folder; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {key: population_name(key) for key in board.scores}
    figures.heat_map(board.scores, names).save(folder / f"{STEM}-heat.svg")
    for result in board.scores.values():
        for scale in result.scales:
            figures.curves(result, scale).save(folder / f"{STEM}-{scale}.svg")
    path = folder / f"{STEM}.md"
    path.write_text("\n".join(page(board)) + "\n", encoding="utf-8")
    text = "\n".join(settings_page(board.tables)) + "\n"
    (folder / f"{SETTINGS}.md").write_text(text, encoding="utf-8")
    return path


def population_name(key: str) -> str:
    """Return the name of a population for readers."""
    return NAMES.get(key, key.replace("_", " "))


def page(board: Board) -> Iterator[str]:
    """Yield the lines of the page."""
    scores = board.scores
    yield "# Leaderboard: who is soonest, for which clients\n"
    yield f"{limits(board)}\n"
    yield from _leaders(scores)
    yield "\n## Rank groups\n"
    yield (
        "A cell has the rank groups of the entry in that population, and its speed-up: the median time in "
        f"which tuned {REFERENCE} meets the target over that of the entry. Two entries that share a group "
        "are not told apart: 1–3 and 2–5 share groups 2 and 3, 1 and 2–5 share none. “Never” marks entries "
        "of which most runs do not meet the target before their end: they are not ranked, and the share of "
        "runs that meet it stands in place of a group.\n"
    )
    yield _as_markdown(matrix(scores, linked=True))
    yield f"\n![Heat map of the same numbers]({STEM}-heat.svg)\n"
    yield from _missing(board)
    yield "## How sure is that\n"
    yield from _certainty(scores)
    for name, result in scores.items():
        yield f"\n## {population_name(name).capitalize()}\n"
        about = WHAT.get(name, population_name(name)).capitalize()
        scales = [f"{scale} ({result.goals[scale].clients})" for scale in result.scales]
        yield f"{about}. Scenarios: {'; '.join(scales)}.\n"
        yield _as_markdown(population_table(result))
        for scale in result.scales:
            yield f"\n![Learning curves of the leaders, {scale}]({STEM}-{scale}.svg)"
        yield from _beside(
            result,
            [scale for elsewhere in scores.values() if elsewhere is not result for scale in elsewhere.scales],
        )
    if board.samplers is not None:
        yield "\n## How trials are chosen\n"
        yield (
            "Before the board was run, three samplers were compared on four strategies: four studies of as "
            "many trials as on the board, each with four final runs. A cell is the median time to the target "
            "and the share of final runs that meet it.\n"
        )
        yield markdown(*sampler_table(board.samplers))
        yield f"\n{sampler_finding(board.samplers)}"
    yield "\n## How it is made\n"
    yield (
        f"{_size(board)}{_data(board)} The settings of every entry are on a [page of their "
        f"own]({SETTINGS}.md). Made by `asyncfl leaderboard page`; nothing here is written by hand. [How to "
        "enter, and to verify an entry](how-to/leaderboard.md). [Version 1.0, and what was wrong with "
        "it](leaderboard-1.0.md)."
    )


def limits(board: Board) -> str:
    """Return the two sentences on what the board cannot say."""
    goals = [board.goals[scale] for result in board.scores.values() for scale in result.scales]
    workloads = list(dict.fromkeys(goal.workload for goal in goals if goal.workload))
    names = listed([population_name(name) for name in board.scores])
    curved = list(dict.fromkeys(goal.workload for goal in goals if not goal.linear))
    models = f"not linear: {listed(curved)} alone" if curved else "all its models are linear"
    workloads_left_out = f"workloads other than {listed(workloads)}, or " if workloads else ""
    return (
        f"The board says nothing about {workloads_left_out}populations other than {names}; "
        f"{models}. Where two entries share a rank group, it does not say which is sooner."
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
                f"{_end(low)} to {_end(high)}",
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
    """Return how soon entries are on the tuning half with fewer trials, with all, and with none.

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
    """Return the sentence on how samplers differ from the first one, paired by strategy and study."""
    first, *rivals = dict.fromkeys(runs["sampler"])
    last = runs.loc[np.isfinite(runs["time"]), "time"].max()
    logs = np.log(runs["time"].clip(upper=last))  # never counts as the last that does
    of_study = logs.groupby([runs["strategy"], runs["study"], runs["sampler"]]).mean().unstack()
    words = []
    for name in rivals:
        effect = paired_effect((of_study[name] - of_study[first]).to_numpy())
        ratio, low, high = np.exp([effect.mean, effect.low, effect.high])
        words.append(f"{name} takes {ratio:.2f} × as long as {first} (95 %: {low:.2f} to {high:.2f})")
    reason = "whose points do not depend on results"
    return f"Over all studies {'; '.join(words)}. The board takes {first}, {reason}."


def settings_page(tables: BoardTables) -> Iterator[str]:
    """Yield the lines of the page with the best trial of every study."""
    yield "# Settings of the leaderboard's entries\n"
    yield (
        "The best of the trials of each study, whose parameters the final runs have. The time is the mean "
        f"over the trial's seeds, on the tuning half. `{COPY.strip()}` marks a second tuning of the same "
        "entry.\n"
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


def _as_markdown(table: Table) -> str:
    head, rows = table
    return markdown(head, rows, text_columns=1 + head.index("Entry"))


def _value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(name: str) -> str:
    """Return a name without superscripts, as a heading of which all tools make the same anchor."""
    return unicodedata.normalize("NFKD", name)


def _linked(name: str) -> str:
    anchor = "".join(letter for letter in _plain(name).lower() if letter.isalnum() or letter in "- _")
    return f"[{name}]({SETTINGS}.md#{anchor.replace(' ', '-')})"


def _missing(board: Board) -> Iterator[str]:
    """Yield the section on runs that are not there yet; nothing for a whole board."""
    coverage = Coverage(board.tables)
    labels = {str(name).removesuffix(COPY) for name in board.tables.finals["strategy"]}
    lines = {
        "Scenarios without runs": [
            scale for scale in board.planned_scenarios if scale not in board.tables.scales
        ],
        "Scenarios that have begun and do not count yet": [
            f"{scale} ({many(len(coverage.entries.get(scale, ())), 'whole entry')})"
            for scale in coverage.begun
        ],
        "Populations in which nothing can be compared yet": [
            population_name(name) for name in coverage.populations if name not in board.scores
        ],
        "Entries without runs": [name for name in board.planned_entries if name not in labels],
        "Entries that lack runs, and are left out there": [
            f"{name} in {listed(sorted({population_name(population(scale)) for scale in scales}))}"
            for name, scales in coverage.missing().items()
        ],
    }
    lines = {title: names for title, names in lines.items() if names}
    if lines:
        yield "## What is missing\n"
        for title, names in lines.items():
            yield f"- {title}: {'; '.join(names)}."
        yield ""


def _beside(result: PopulationScores, other_scales: Sequence[str]) -> Iterator[str]:
    """Yield what stands beside the table of a population: other targets, and what tuning costs."""
    targets = (
        f"{scale} {result.goals[scale].target:.1%} (98 % of the best: {result.best_targets[scale]:.1%})"
        for scale in result.scales
    )
    ends = ", ".join(f"{scale} {result.goals[scale].budget:g}" for scale in result.scales)
    yield (
        f"\nTargets: {', '.join(targets)}. The target in brackets may change when entries are added. Counts "
        "are taken when the target is met, as medians over the runs that meet it. The worst client is "
        f"measured at the end of the run: {ends} units of time."
    )
    powers = dict.fromkeys(result.goals[scale].power for scale in result.scales)
    if any(powers):
        yield f"Power of a client, for the energy: {'; '.join(powers)}."
    if result.early:
        apart = ", ".join(f"{scale} {result.spacing[scale]:.3g}" for scale in result.scales)
        yield (
            f"Speed-ups are rough where the target is met within {FEW} evaluations, which are {apart} apart: "
            f"{listed(result.early)}."
        )
    for names in result.identical:
        yield f"{listed(names)} have the same final runs, to the last digit: here they do the same."
    orders = [(distance, result.agreement(distance)) for distance in DISTANCES]
    words = [f"{value:.2f} at {distance:.0%}" for distance, value in orders if not isnan(value)]
    if words:
        yield (
            "Rank correlation with the order at another target, so far on the way from the first model’s "
            f"accuracy to the target: {', '.join(words)}."
        )
    if len(result.tables.trials):
        yield (
            f"\nWhat tuning costs: the speed-up over {REFERENCE} with the first trials of each study, and "
            "with those of all studies. It is measured on the half of the test data on which trials are "
            "chosen, and so it is too high, the more so for more trials."
            + (
                f" {ONE_SETTING}: the trial of each study that was best in the other populations."
                if other_scales
                else ""
            )
            + "\n"
        )
        yield _as_markdown(tuning_table(result, other_scales))


def _end(ratio: float) -> str:
    return "never" if ratio == 0 else "∞" if ratio == inf else f"{ratio:.2f}"


def _ratio(unit: float, time: float) -> float:
    return 0.0 if time == inf else unit / time


def _times(ratio: float) -> str:
    if isnan(ratio) or ratio == inf:
        return MISSING
    return "never" if ratio == 0 else f"{ratio:.2f} ×"


def _leaders(scores: Mapping[str, PopulationScores]) -> Iterator[str]:
    for name, result in scores.items():
        first = result.leaders
        if len(first) > len(result.entries) / 2:
            finding = f"no entry stands out: {len(first)} of {len(result.entries)} share the first group"
        elif len(first) > MOST_NAMED:
            named = ", ".join(first[:MOST_NAMED])
            others = len(first) - MOST_NAMED
            finding = (
                f"{len(first)} of {len(result.entries)} share the first group: {named} and {others} more"
            )
        else:
            finding = f"{listed(first)} {'leads' if len(first) == 1 else 'lead'}"
        luck = f"ratios below {_end(result.resolution)} × cannot be told from luck"
        title = population_name(name).capitalize()
        yield f"- **{title}** ({WHAT.get(name, population_name(name))}): {finding}; {luck}."
    if len(scores) < 2:
        return
    everywhere = [
        entry for entry in board_order(scores) if all(entry in result.leaders for result in scores.values())
    ]
    if everywhere:
        yield f"\nIn the first group of every population: {listed(everywhere)}."
    else:
        yield "\nNo entry is in the first group of every population."


def certainty(scores: Mapping[str, PopulationScores]) -> Table:
    """Return resolution, copies, false statements and power of each population."""
    rows = [
        [
            population_name(name),
            f"{_end(result.resolution)} ×",
            f"{max(result.copies.values()):.2f} ×" if result.copies else "not run",
            f"{result.board.false_statements:.1%}",
            f"{result.board.power:.0%}",
        ]
        for name, result in scores.items()
    ]
    return ["Population", "Smallest ratio told apart", "Copies differ by", "False statements", "Power"], rows


def _certainty(scores: Mapping[str, PopulationScores]) -> Iterator[str]:
    yield markdown(*certainty(scores))
    yield (
        "\nSmallest ratio told apart: two entries closer than that share a rank group. The ratio is of "
        "geometric mean times, while tables have medians. A run of a ranked entry that never meets the "
        "target enters with its end, which is too early, and can hide a difference. Copies: FedBuff, ASGD "
        "and ACE are tuned and run a second time; what separates a copy from its entry is luck. "
        "False statements: if all entries were equal, the share of simulated boards that tell any two apart. "
        f"Power: on simulated boards where each entry takes {NEIGHBOURS} times as long as the "
        "one above it, the share of adjacent pairs told apart.\n"
    )
    pairs = [(first, second) for at, first in enumerate(scores) for second in [*scores][at + 1 :]]
    correlations = [(pair, correlation(scores[pair[0]], scores[pair[1]])) for pair in pairs]
    words = [
        f"{population_name(first)} and {population_name(second)} {value:.2f}"
        for (first, second), value in correlations
        if not isnan(value)
    ]
    if words:
        yield f"Rank correlation between populations: {'; '.join(words)}.\n"


def _cell(result: PopulationScores, name: str) -> str:
    if name not in result.entries:
        return MISSING
    if result.never(name):
        return f"never ({result.met(name):.0%})"
    return f"**{result.groups[name]}** · {result.sooner(name):.1f} ×"


def _overall(scores: Mapping[str, PopulationScores], name: str) -> str:
    populations = [result for result in scores.values() if name in result.entries]
    first = sum(name in result.leaders for result in populations)
    return MISSING if len(populations) < len(scores) else f"{first} of {len(populations)}"


def _count(result: PopulationScores, name: str, column: str) -> str:
    value = _median_of_met(result, name, column)
    if isnan(value):
        return MISSING
    return f"{value:,.0f}" if column == "updates" else f"{value / 1e6:,.1f} MB"


def _energy(result: PopulationScores, name: str) -> str:
    mine, reference = (_median_of_met(result, label, "energy") for label in (name, REFERENCE))
    return MISSING if isnan(mine / reference) else f"{mine / reference:.2f}"


def _median_of_met(result: PopulationScores, name: str, column: str) -> float:
    """Return the median of a column over the final runs that meet the target; NaN if there are none."""
    rows = result.final_runs(name)
    return float(rows.loc[np.isfinite(rows["time"]), column].median())


def _worst_client(result: PopulationScores, name: str) -> str:
    value = float(result.final_runs(name)["worst_client"].median())
    return MISSING if isnan(value) else f"{value:.1%}"


def _data(board: Board) -> str:
    names = [f"{problem} {digest}" for problem, digest in board.data.items()]
    return f" Digests of the data: {listed(names)}." if names else ""


def _size(board: Board) -> str:
    tables = board.tables
    entries = {name for result in board.scores.values() for name in result.entries}
    reference = tables.finals[tables.finals["strategy"] == REFERENCE]
    commits = sorted({*tables.finals["commit"]})
    trials = many(tables.trials["trial"].nunique(), "trial")
    return (
        f"{many(len(entries), 'entry')}, {many(len(tables.scales), 'scenario')}, each entry with "
        f"{many(reference['study'].nunique(), 'study')} of {trials} in a scenario; "
        f"{many(len(tables.trials), 'run')} for tuning and {many(len(tables.finals), 'final run')}, "
        f"from {many(len(commits), 'commit')}: {', '.join(commit[:10] for commit in commits)}."
    )
