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
    "alike": "all clients have the same mean speed, and the time of each step is exponential",
    "persistent": "each client has its own mean time of a step (log-normal, σ = 1), around which its steps "
    "vary (log-normal, σ = 0.3)",
    "fixed": "each client has its own time of a step, from 0.2 to 1, which never changes: setting F80 "
    "of the FedFix paper",
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
        "A cell shows the rank groups of an entry in a population, and its speed-up. The speed-up is the "
        f"median time in which tuned {REFERENCE} reaches the target, divided by the median time of the "
        "entry. An entry in groups 1–3 and one in groups 2–5 share groups 2 and 3: these runs cannot tell "
        "which is sooner. An entry in group 1 and one in groups 2–5 share no group: the first one is "
        "sooner. Rows are in the order of the mean speed-up over populations; entries that miss a target "
        "come last. “Never” marks an entry if at most half of its runs reach the target. It is not ranked, "
        "and the cell shows the share of its runs that reach the target.\n"
    )
    yield _as_markdown(matrix(scores, linked=True))
    yield f"\n![Heat map of the same numbers]({STEM}-heat.svg)\n"
    yield from _missing(board)
    yield "## How sure is that\n"
    yield from _certainty(scores)
    for name, result in scores.items():
        yield f"\n## {population_name(name).capitalize()}\n"
        about = WHAT.get(name, population_name(name))
        scales = [f"{scale} ({result.goals[scale].clients})" for scale in result.scales]
        yield f"{about[0].upper()}{about[1:]}. Scenarios: {'; '.join(scales)}.\n"
        yield _as_markdown(population_table(result))
        for scale in result.scales:
            yield f"\n![Learning curves of the leaders, {scale}]({STEM}-{scale}.svg)"
        yield from _beside(
            result,
            [scale for elsewhere in scores.values() if elsewhere is not result for scale in elsewhere.scales],
        )
    if board.samplers is not None:
        yield "\n## How parameters were sampled\n"
        yield (
            "Before the board was run, three samplers of Optuna were compared. With each of them, four "
            "strategies were tuned by four studies each, as on the board, and the best trial of a study made "
            "four final runs. A cell is the median time to the target, and the share of final runs that "
            "reach it.\n"
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
    """Return what the board compares, and what it cannot say."""
    goals = [board.goals[scale] for result in board.scores.values() for scale in result.scales]
    workloads = list(dict.fromkeys(goal.workload for goal in goals if goal.workload))
    names = listed([population_name(name) for name in board.scores])
    curved = list(dict.fromkeys(goal.workload for goal in goals if not goal.linear))
    models = f"Models that are not linear: {listed(curved)}" if curved else "All models are linear"
    entries = {name for result in board.scores.values() for name in result.entries}
    return (
        f"This board compares how soon {many(len(entries), 'strategy')} reach a target accuracy, for "
        "populations of clients that differ in speed "
        f"({names}){f', on {listed(workloads)}' if workloads else ''}. {models}. It says nothing about other "
        "workloads and populations; where two entries share a rank group, it does not say which is sooner."
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
    reason = "whose points are fixed in advance, so that results of one trial do not change the next"
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
            f"{scale} ({many(len(coverage.entries.get(scale, ())), 'entry')} with all runs)"
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
        f"{scale}: {result.goals[scale].target:.1%}, and for the column “98 % of the best” "
        f"{result.best_targets[scale]:.1%}; runs end after {result.goals[scale].budget:g} units of time, and "
        f"are evaluated every {result.spacing[scale]:.3g}"
        for scale in result.scales
    )
    yield (
        f"\nTarget accuracy in {'. In '.join(targets)}. The best is the best median at the end of runs, so "
        "this second target may change when entries are added. The 95 % interval covers the variation over "
        f"studies and seeds, both of the entry and of {REFERENCE}, by bootstrap. Its upper end is ∞ if too "
        f"many runs of {REFERENCE} do not reach the target. Updates, bytes and energy are counted until the "
        "target is reached, as medians over the runs that reach it. The worst client is measured at the end "
        "of runs."
    )
    powers = dict.fromkeys(result.goals[scale].power for scale in result.scales)
    if any(powers):
        yield f"Power of a client, for the energy: {'; '.join(powers)}."
    if result.early:
        yield (
            f"{listed(result.early)}: the target is reached within {FEW} evaluations, so these speed-ups are "
            "imprecise."
        )
    for names in result.identical:
        yield (
            f"{listed(names)} are the same algorithm with these parameters: their final runs are equal to "
            "the last digit."
        )
    orders = [(distance, result.agreement(distance)) for distance in DISTANCES]
    words = [f"{value:.2f} at {distance:.0%}" for distance, value in orders if not isnan(value)]
    if words:
        yield (
            "Would another target give another order? The share is that of the way from the accuracy of the "
            "initial model to the target above, and the number is the rank correlation of both orders: "
            f"{', '.join(words)}."
        )
    if len(result.tables.trials):
        yield (
            "\nHow the speed-up depends on the number of trials. The first columns use only so many trials "
            "of each study; the last column of trials joins all studies into one. The unit is always "
            f"{REFERENCE} with all trials of a study. Trials are chosen on one half of the test data, and "
            "the times of this table are measured on the same half, so these speed-ups are too optimistic, "
            "most of all with many trials. The table above is of the other half."
            + (
                f" {ONE_SETTING}: parameters are tuned in the other populations, and used here without "
                "change."
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
            finding = (
                f"more than half of the entries, {len(first)} of {len(result.entries)}, share the first group"
            )
        elif len(first) > MOST_NAMED:
            named = ", ".join(first[:MOST_NAMED])
            others = len(first) - MOST_NAMED
            finding = (
                f"{len(first)} of {len(result.entries)} share the first group: {named} and {others} more"
            )
        else:
            finding = f"{listed(first)} {'leads' if len(first) == 1 else 'lead'}"
        luck = f"Ratios of times below {_end(result.resolution)} × may be luck"
        title, what = population_name(name).capitalize(), WHAT.get(name, population_name(name))
        yield f"- **{title}** ({what}). {finding[0].upper()}{finding[1:]}. {luck}."
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
        "\nSmallest ratio told apart: two entries whose times differ by less share a rank group. Boards on "
        "which all entries are equal are simulated from the runs; the largest ratio of times on such a "
        "board is below this number in 95 % of them. FedBuff, ASGD and ACE were tuned and run a second "
        "time, and such a copy differs from its entry by luck alone. If it differs by more, its ratio "
        "counts. Groups compare geometric means of times, but the tables show medians: two entries may "
        "share a group although their medians differ by more. If a run of a ranked entry does not reach the "
        "target, the time at which the run ended counts. The true time is later, so the board may miss a "
        "difference.\n\nFalse statements: how often a simulated board, on which all entries are equal, "
        "tells any two of them apart. Power: how often a simulated board tells two entries apart if one "
        f"takes {NEIGHBOURS} times as long as the next sooner one. It is low, so do not conclude that "
        "entries of the same group are equally soon.\n"
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
    copies = {name for result in board.scores.values() for name in result.copies}
    scales = [scale for result in board.scores.values() for scale in result.scales]
    runs = tables.finals[(tables.finals["strategy"] == REFERENCE) & tables.finals["scale"].isin(scales)]
    studies = many(runs["study"].nunique(), "study")
    commits = sorted({*tables.finals["commit"]})
    return (
        f"{many(len(entries), 'entry')} and {many(len(copies), 'copy')} in {many(len(scales), 'scenario')}. "
        f"In each, an entry has {studies} of {many(tables.trials['trial'].nunique(), 'trial')}, of "
        f"{many(_seeds(tables.trials), 'run')} each, and {many(len(runs) // len(scales), 'final run')}. With "
        "the runs of scenarios that do not count yet, the stored tables have "
        f"{many(len(tables.trials), 'run')} for tuning and {many(len(tables.finals), 'final run')}. Final "
        f"runs are from {many(len(commits), 'commit')}: {', '.join(commit[:10] for commit in commits)}."
    )


def _seeds(trials: pd.DataFrame) -> int:
    return int(trials.groupby(["scale", "strategy", "study"])["seed"].nunique().max()) if len(trials) else 0
