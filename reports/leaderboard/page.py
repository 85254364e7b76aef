"""Version 1.0 as a page in Markdown: leaders, speed-ups, intervals, populations, and costs."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from fl_core.text import listed, many
from reports.inference import percentiles, spearman
from reports.leaderboard import charts, printed
from reports.leaderboard.choice import budget_curves
from reports.leaderboard.held_out import bounds, correlations, each, missed, over_scenarios, places, scores
from reports.leaderboard.marks import incomplete, unequal, untuned
from reports.leaderboard.profiles import ratios
from reports.leaderboard.standing import AGREES, BOLD, BOUNDS, THIRD, Standing, standing, standing_table
from reports.leaderboard.tables import ONE_SETTING, TUNED, Tables
from reports.tables import markdown

STEM = "leaderboard"
COMMAND = "asyncfl leaderboard score --markdown docs"

SPEEDUPS = (
    "Thick lines are 95 % over seeds, thin ones over scenarios; hollow dots are shown to be behind the "
    "first (5 % over all entries; not adjusted for the first being chosen by the same runs). ≥: at least "
    "that, since tuned {reference} missed a target that the strategy always met; ≤ is the reverse; "
    "~: both missed some, so that it is neither."
)
SCOPE = (
    "The models are linear, on features and on words, and clients have the same mean speed: slow ones and "
    "phones are in the held-out part alone."
)
COSTS = (
    "As multiples of tuned {reference}; of updates that arrive and bytes that are uploaded less is better. "
    "Models sent down and work that is abandoned are not counted, nor what a run that missed would still "
    "take: Rennala and Ringmaster with S or R of 1 send the model to all clients at every update. A run "
    "stops soon after the hard target, so that accuracy at the end is that of stopping."
)
FLAWS = """\
## Read this first: what is wrong with version 1.0

- **Identical algorithms get different scores.** With a buffer of 1, AFA-CD and FedBuff-c are ASGD; with
  S = R = 1, Rennala SGD is Ringmaster ASGD. What separates them below is the luck of {points} points of
  a design, which no interval contains.
- **All clients are alike.** With other clients the order is another one. Nine strategies that were run
  again outside the suite had these rank correlations with the board: 0.93 with the same clients, 0.77
  with two speeds, 0.15 with F80, 0.08 with log-normal speeds, and −0.03 with phones and their links.
- **The target is missed by what was tuned for it**, by {reference}, the unit, too. So most scores are
  bounds.
- **“Behind the first” is not protected.** On 95 of 100 simulated boards of 31 equal entries some entry
  was behind.

The numbers are computed as described and are kept for reference. A [second
version](how-to/leaderboard.md#version-20) with five populations of clients, four independent studies an
entry and rank groups is being made; its [first runs](populations.md) are there.
"""
HOW = """\
## How it is measured

- **Sooner** is the virtual time in which tuned {reference} with all clients reaches the hard target, over
  that of the strategy: the geometric mean over scenarios and seeds, of the same data, first model and job
  lengths. It depends on no other entry. A run that misses the target counts at the end of its budget, and is
  counted as missed.
- The **budget** of a scenario is three times the median time of a pilot's {reference} to the easy target, and
  30 of its rounds at least. **Targets** are 90 % (easy) and 98 % (hard) of what the best strategy of the
  pilot reaches within it, median over seeds.
- **Tuning** is a design: the same {points} points of a scrambled Sobol sequence in every scenario, over the
  rates, the strategy's own parameters, K, the local steps, and the server's optimiser where the strategy
  takes one; on validation data, one seed, and two more for the best quarter.
- **Tuned** takes the best point of each scenario; **one setting** the point that is best over the other
  scenarios of the workload; the **budget curve** is what the best of k random points is expected to reach.
- **Final runs** have {seeds} fresh seeds and test data. Of the two intervals (95 %) one is over seeds, of the
  final runs and of the design's, the other over scenarios. **P(first)** is over both. None includes the
  luck of the {points} points, which are one draw. **Bold** is who is first with a probability of {bold:g} or
  more.

[How an entry is made and verified, and what the board does not say](how-to/leaderboard.md).
"""


def write(tables: Tables, folder: Path) -> Path:
    """Write the page and all figures into a folder; return the page's path."""
    own = standing(tables)
    table = standing_table(own, tables)
    reference = tables.rules.reference
    curves = np.exp(budget_curves(own.costs, reference))
    tuned = tables.finals[tables.finals["ruleset"] == TUNED]
    times = ratios(tuned[tuned["strategy"].isin(table.index)])
    shown = charts.colours([*table.index], reference)
    figures = {
        "speedups": charts.speedup_figure(table, reference, shown),
        "bytes": charts.cost_figure(table, reference, shown),
        "budget": charts.budget_figure(own.costs.strategies, curves, reference, shown),
    }
    if len(times):
        figures["profiles"] = charts.profile_figure(times, shown)
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.save(folder / f"{STEM}-{name}.svg")
    path = folder / f"{STEM}.md"
    path.write_text(page(tables, own, table, curves, times), encoding="utf-8")
    return path


def what_is_scored(tables: Tables) -> str:
    """Return three sentences on the meaning of the numbers in a printed table."""
    rules, scenarios = tables.rules, tables.scenarios
    workloads = listed(list(dict.fromkeys(scenarios.get_level_values("problem"))))
    return (
        f"Leaderboard {rules.version}: how many times sooner than tuned {rules.reference} each strategy "
        f"meets the hard target, over {many(len(scenarios), 'scenario')} of {workloads}, with intervals of "
        "95 % over seeds and over scenarios. Updates that arrived and bytes uploaded until then as multiples "
        f"of {rules.reference}’s; missed: runs that never met it. ≥, ≤: at least, at most, where one of the "
        "two missed some; ~: both did."
    )


def page(tables: Tables, own: Standing, table: pd.DataFrame, curves: np.ndarray, times: pd.DataFrame) -> str:
    """Return the page.

    Args:
        tables: The kept tables.
        own: The standing of tuned points at the full budget.
        table: The same as a table.
        curves: Budget curves as speed-ups [A, k].
        times: Times to the hard target as multiples of the fastest strategy's, [scenario, strategy].
    """
    rules = tables.rules
    workloads = list(dict.fromkeys(tables.scenarios.get_level_values("problem")))
    size = [
        many(len(table), "strategy"),
        many(len(workloads), "workload"),
        many(len(tables.scenarios), "scenario"),
        many(len(rules.final_seeds), "seed"),
        many(len(tables.design) + len(tables.finals) + len(tables.held_out), "run"),
    ]
    held_out, third = correlations(tables), standing(tables, horizon=THIRD)
    agreement = [_agreement(*pair) for pair in _orders(held_out, spearman(own.scores, third.scores))]
    parts = [
        f"# Leaderboard {rules.version}",
        FLAWS.format(reference=rules.reference, points=rules.points),
        "## What the tables say",
        *(said for agrees, said in agreement if not agrees),
        _lead(table, own),
        _lead_held_out(tables, table),
        SCOPE,
        printed.leaders(own),
        f"![Speed-up of each strategy with both intervals]({STEM}-speedups.svg)",
        SPEEDUPS.format(reference=rules.reference),
        f"{', '.join(size)}. Rules of {rules.date}. Made by `{COMMAND}`; nothing here is written by hand.",
        markdown(*printed.columns(printed.summary(table), printed.STANDING)),
        *(said for agrees, said in agreement if agrees),
        "## Time against bytes",
        f"![Speed-up against bytes]({STEM}-bytes.svg)",
        COSTS.format(reference=rules.reference),
        markdown(*printed.columns(printed.summary(table), printed.BESIDE)),
        "## How much tuning it takes",
        "Tuned to each scenario, with one setting for all, and with the best of few random points.",
        printed.sensitivity(tables, table, own, curves),
        f"![Budget curves]({STEM}-budget.svg)",
        *_profiles(times),
        "## In each scenario",
        f"How many times sooner than tuned {rules.reference}; in brackets the place.",
        *printed.across(own, workloads),
        *_held_out(tables, own),
        "## A third of the budget",
        printed.horizon(own, third),
        *_marks(tables, own),
        HOW.format(reference=rules.reference, points=rules.points, seeds=len(rules.final_seeds), bold=BOLD),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _lead(table: pd.DataFrame, own: Standing) -> str:
    first, row = table.index[0], table.iloc[0]
    level = [_alike(own, first, name) for name in table.index[~table["behind"]] if name != first]
    speedup = f"{BOUNDS[row['bound']]}{printed.times(row['speedup'])}"
    seeds, scenarios = (printed.interval_over(row, over) for over in ("seeds", "scenarios"))
    said = (
        f"**{first}** reaches the hard target {speedup} sooner than tuned {own.reference} "
        f"({seeds} over seeds, {scenarios} over scenarios), and is first with a probability of "
        f"{row['first']:.2f}"
    )
    if level:
        said += f"; not separated from it: {', '.join(level)}."
    else:
        said += "; every other strategy is shown to be behind it."
    late = table.loc[own.reference]
    if not late["missed"]:
        return said
    return (
        f"{said} Tuned {own.reference} itself misses the target in {late['missed']} of {late['runs']} runs."
    )


def _alike(own: Standing, first: str, name: str) -> str:
    """Return the name, with the number of scenarios where all runs have the times of the first."""
    entries = [own.costs.strategies.index(entry) for entry in (first, name)]
    alike = np.equal(*own.costs.finals[own.ruleset][entries]).all(-1)
    return f"{name} (the same times in {alike.sum()} of {len(alike)} scenarios)" if alike.any() else name


def _lead_held_out(tables: Tables, table: pd.DataFrame) -> str:
    """Return sentences on held-out scenarios: leader, place of the board's first, agreement of orders.

    Empty without them.
    """
    there = scores(tables)
    if there.empty:
        return ""
    marks, place, draws = bounds(tables), places(there), over_scenarios(tables)

    def sooner(name: str) -> str:
        return f"{BOUNDS[marks[name]]}{printed.times(np.exp(there[name]))}"

    first, leader = str(table.index[0]), str(there.index[0])
    scenarios = printed.between(*np.exp(percentiles(draws[leader].to_numpy())))
    said = (
        f"In the held-out scenarios, where nothing was tuned, {leader} is soonest: "
        f"{sooner(leader)} sooner than {tables.rules.reference}, each with one setting ({scenarios} over "
        f"scenarios, in {(draws.idxmax(axis=1) == leader).mean():.2f} of whose draws it is first)"
    )
    if first not in place:
        return f"{said}."
    if leader != first:
        said += f"; {first} has place {place[first]:g} of {len(place)} there, {sooner(first)}"
    level = [name for name in table.index[~table["behind"]] if name != first and name in place]
    said += "".join(f"; {name} has place {place[name]:g}" for name in level if name != leader)
    return " ".join((f"{said}.", *_worst_held_out(tables, first, place[first]), *_other_orders(tables)))


def _worst_held_out(tables: Tables, first: str, usual: float) -> Iterator[str]:
    """Yield a sentence on the first's worst held-out place, if worse than over all scenarios."""
    single = {scenario: (alone, places(scores(alone))) for scenario, alone in each(tables)}
    worst = max(single, key=lambda scenario: single[scenario][1].get(first, 0))
    alone, place = single[worst]
    if place.get(first, 0) <= usual:
        return
    never = missed(alone) == len(tables.rules.final_seeds)
    unmet = (
        f", where its runs all miss the target, as those of {never.sum() - 1} others" if never[first] else ""
    )
    yield (
        f"**In one of them {first} has place {place[first]:g} of {len(place)}**: {worst}{unmet} "
        "([what the board does not say](how-to/leaderboard.md))."
    )


def _other_orders(tables: Tables) -> Iterator[str]:
    """Yield a sentence on the held-out scenarios with an order unlike the board's."""
    agree = {scenario: correlations(alone)[ONE_SETTING] for scenario, alone in each(tables)}
    if other := [f"{scenario} ({value:.2f})" for scenario, value in agree.items() if value < AGREES]:
        yield f"The order is another one than the board's, by rank correlation, in {listed(other)}."


def _profiles(times: pd.DataFrame) -> list[str]:
    """Return the part on performance profiles; nothing where no target was met."""
    if times.empty:
        return []
    return [
        "## Performance profiles",
        "In which share of scenarios a tuned strategy meets the hard target within a factor of the fastest.",
        f"![Performance profiles of the leaders]({STEM}-profiles.svg)",
    ]


def _orders(held_out: Mapping[str, float], third: float) -> Iterator[tuple[str, float | None]]:
    """Yield each order compared with the board's, and the rank correlation; None if unknown."""
    if not held_out:
        yield "in held-out scenarios", None
    for ruleset, agree in held_out.items():
        yield f"in held-out scenarios ({ruleset.replace('_', ' ')} here)", agree
    yield "at a third of the budget", third


def _agreement(where: str, agree: float | None) -> tuple[bool, str]:
    """Return whether orders agree, and a sentence on the agreement."""
    if agree is None:
        return False, "**Held-out scenarios are not run yet**: how far this order holds elsewhere is unknown."
    if agree >= AGREES:
        return True, f"Rank correlation with the order {where}: {agree:.2f}."
    return False, f"**The order is another one {where}**: rank correlation {agree:.2f}."


def _held_out(tables: Tables, own: Standing) -> list[str]:
    """Return the part on held-out scenarios; empty without held-out scores."""
    there = scores(tables)
    if there.empty:
        return []
    board = pd.Series(own.scores, index=own.costs.strategies).rank(ascending=False).reindex(there.index)
    marks, count, place = bounds(tables), missed(tables), places(there)
    runs = len(tables.held_out_scenarios) * len(tables.rules.final_seeds)
    rows = [
        (
            str(name),
            printed.sooner(marks[str(name)], np.exp(value)),
            f"{place[str(name)]:g}",
            f"{board[str(name)]:g}",
            f"{count[str(name)]} of {runs}",
        )
        for name, value in there.items()
    ]
    said = (
        "Never tuned in, run once with the one setting that is best over the board's scenarios of the "
        f"workload. Sooner than {tables.rules.reference}, which has one setting, too."
    )
    return [
        "## Held-out scenarios",
        said,
        _each_held_out(tables, own.costs.strategies[own.order[0]]),
        markdown(["Strategy", "Sooner", "Place there", "On the board", "Missed"], rows),
    ]


def _each_held_out(tables: Tables, first: str) -> str:
    """Return a table of held-out scenarios: leaders, place of the board's first, rank correlation."""
    rows = []
    for scenario, there in each(tables):
        ahead, marks = scores(there), bounds(there)
        leaders = [str(name) for name, score in ahead.items() if np.isclose(score, ahead.iloc[0])]
        rows.append(
            (
                scenario,
                ", ".join(leaders),
                printed.sooner(marks[leaders[0]], np.exp(ahead.iloc[0])),
                f"{places(ahead)[first]:g}" if first in ahead else "–",
                f"{correlations(there)[ONE_SETTING]:.2f}",
            )
        )
    return markdown(["Scenario", "Soonest", "Sooner", f"Place of {first}", "Rank correlation"], rows, left=2)


def _marks(tables: Tables, own: Standing) -> list[str]:
    """Return the parts on entries listed apart, and on signs of too little tuning."""
    apart = [(name, "; ".join(unequal(tables, name))) for name in tables.entries]
    signs = [(name, "; ".join(untuned(tables, own.costs, name))) for name in own.costs.strategies]
    parts = []
    if apart := [(name, why) for name, why in apart if why]:
        left = listed([name for name, _ in apart if incomplete(tables, name)])
        parts += [
            "## Listed apart",
            f"Not by the design of the rules; without a score: {left or 'none'}.",
            markdown(["Strategy", "Why"], apart, left=2),
        ]
    if signs := [(name, why) for name, why in signs if why]:
        parts += ["## Signs of too little tuning", markdown(["Strategy", "Sign"], signs, left=2)]
    return parts
