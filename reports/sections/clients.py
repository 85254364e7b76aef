"""Sections over clients: fairness, staleness, participation, and how clients spend their time.

`reports/page.py` calls `fairness`, `staleness`, `participation` and `phases`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.mlflow_store.run_result import RunResult
from fl_core.recorded_names import PHASES, PHASES_AT_SERVER, TIME, Name
from reports import numbers
from reports.figures import svg
from reports.numbers import Measure, tick
from reports.records.records import RecordedScenario, client_table
from reports.records.seed_summaries import Array, Cell
from reports.sections.section import (
    Card,
    Results,
    Rows,
    Section,
    cards_section,
    draw_rows,
    rows_section,
)
from reports.tables import Download, download

MAX_STROKES = 80  # strokes per row; of more clients, that many quantiles are drawn
MAX_WIDE_BINS = 8  # bins whose names have room side by side
MAX_POINTS = 60  # points per row; of more clients, neighbours in speed are averaged
MIN_LOG_RATIO = 8  # ratio from which on shares are shown on a log scale
MAX_LISTED = 100_000  # rows of the table of clients
FIFTH = 5
PHASE_COLUMNS = (*PHASES, *PHASES_AT_SERVER)
WAITING = "waiting"
PHASE_SHADES = {  # of the strategy's colour, in the order of the columns
    "download": 0.45,
    "computation": 1.0,
    "upload": 0.65,
    "waiting for the server": 0.22,
    "service at the server": 0.8,
    WAITING: 0.12,
}
BAR_HEIGHT = 0.56  # of a bar, in rows
PART_GAP = 0.0025  # between the parts of a bar, as a share of the axes


def client_values(cells: Sequence[Cell], metric: Measure) -> pd.DataFrame:
    """Return a table with the final metric or loss, if finite, of every client of every ended run."""
    runs = [
        (cell.strategy, run) for cell in cells for run in cell.finite if metric.short in run.files.clients
    ]
    if not runs:
        return pd.DataFrame(columns=["strategy", "seed", "value", "importance"])
    clients = [len(run.files.clients[metric.short]) for _, run in runs]
    table = pd.DataFrame(
        {
            "strategy": np.repeat([strategy for strategy, _ in runs], clients),
            "seed": np.repeat([run.seed for _, run in runs], clients),
            "value": np.concatenate([run.files.clients[metric.short].astype(float) for _, run in runs]),
            "importance": np.concatenate([run.files.clients[Name.IMPORTANCE] for _, run in runs]),
        }
    )
    table = table[np.isfinite(table["value"])]
    return table[table.groupby(["strategy", "seed"])["importance"].transform("sum") > 0]


def client_summary(values: pd.DataFrame, metric: Measure) -> pd.DataFrame:
    """Return a table with a row per strategy: weighted `mean` and `worst` client, means over `seeds`."""
    weighted = values.assign(weighted=values["value"] * values["importance"])
    by_run = weighted.groupby(["strategy", "seed"], sort=False)
    totals = by_run[["weighted", "importance"]].sum()
    means = totals["weighted"] / totals["importance"]
    runs = pd.DataFrame({"mean": means, "worst": by_run["value"].agg("min" if metric.sign > 0 else "max")})
    by_strategy = runs.groupby("strategy", sort=False)
    return by_strategy.agg(mean=("mean", "mean"), worst=("worst", "mean"), seeds=("worst", "size"))


def fairness(results: Results) -> Section | None:
    """Return the section with a card per scenario; None if no client was evaluated."""
    cards, many = [], False
    for scenario in results.scenarios:
        metric = compared_by(scenario)
        cells = [cell for cell in scenario.cells if cell.strategy in results.foremost]
        values = client_values(cells, metric)
        if values.empty:
            continue
        summary = client_summary(values, metric)
        drawing, place = _draw_fairness(scenario, metric, values, summary), scenario.place
        cards.append(Card(scenario.label, {None: drawing}, places=[place], runs=len(scenario.runs)))
        many |= bool(values["strategy"].value_counts().max() > MAX_STROKES)
    if not cards:
        return None
    strokes = f"one client of one seed{f' (of more than {MAX_STROKES}, as many quantiles)' if many else ''}"
    note = (
        f"Stroke: {strokes}. Filled mark: mean over clients, weighted by importance. "
        f"Open mark: the worst client{results.mean_over_seeds}.{results.only_foremost}"
    )
    return cards_section("fairness", "Fairness over clients", note, [("", cards)])


def compared_by(scenario: RecordedScenario) -> Measure:
    """Return the metric for comparing clients: the scenario's if recorded by client, otherwise loss."""
    metric = scenario.metric
    recorded = any(metric.short in run.files.clients for run in scenario.runs)
    return (
        metric.judged_on()
        if recorded and metric.higher is not None
        else Measure(Name.LOSS, "Loss", higher=False)
    )


def _draw_fairness(
    scenario: RecordedScenario, metric: Measure, values: pd.DataFrame, summary: pd.DataFrame
) -> svg.Drawing:
    """Return the figure of a scenario: a stroke for each client, marks for the mean and the worst client."""
    cells = [cell for cell in scenario.cells if cell.strategy in summary.index]
    worst = summary["worst"].map(metric.with_unit)
    texts = [(cell, f"{cell.strategy}: worst client {worst[cell.strategy]}") for cell in cells]
    best = str(summary["worst"].idxmax() if metric.higher else summary["worst"].idxmin())
    description = (
        f"Final {metric.in_text} of every client by strategy, {scenario.label}: the worst client is best off "
        f"with {best}, {worst[best]}"
    )

    def paint(axes: svg.Axes) -> None:
        for y, cell in enumerate(cells):
            index = cell.index
            mean, lowest = (float(summary[name][cell.strategy]) for name in ("mean", "worst"))
            strokes = np.sort(values.loc[values["strategy"] == cell.strategy, "value"])
            if len(strokes) > MAX_STROKES:
                strokes = np.quantile(strokes, np.linspace(0, 1, MAX_STROKES))
            svg.strokes(axes, index, strokes, y)
            axes.plot([lowest, mean], [y, y], linewidth=1.4, **svg.style(index))
            svg.dot(axes, index, (mean, y), 7)
            svg.dot(axes, index, (lowest, y), 7, edge=1.6, hollow=True)
        low, high = values["value"].min(), values["value"].max()
        room = 0.04 * (high - low) or 0.05
        axes.set_xlim(low - room, high + room)
        svg.across(axes, replace(metric, title=f"{metric.title} at the end").heading, share=metric.share)

    return draw_rows(texts, paint, description)


def staleness_shares(cell: Cell) -> Array:
    """Return the share of updates in each bin (0, 1, 2, 3–4, 5–8, 9–16, …), a mean over seeds."""
    binned = [_binned(run.files.staleness) for run in cell.runs if run.files.staleness.size]
    longest = max(map(len, binned), default=0)
    shares = np.zeros((len(binned), longest))
    for row, counts in zip(shares, binned, strict=True):
        row[: len(counts)] = counts / counts.sum()
    return np.mean(shares, axis=0) if binned else np.zeros(0)


def _binned(occurred: Array) -> Array:
    """Return the updates in each bin, from the updates of each τ; bin b > 1 holds 2^(b−2) < τ ≤ 2^(b−1)."""
    staleness, counts = occurred
    bins = np.where(staleness == 0, 0, 1 + np.ceil(np.log2(np.maximum(staleness, 1))).astype(int))
    return np.bincount(bins, weights=counts)


def bin_text(at: int) -> str:
    """Return the largest staleness of a bin, which is its name in figures."""
    return "0" if at == 0 else tick(2.0 ** (at - 1)) if at < 15 else f"2^{at - 1}"


def staleness(results: Results) -> Section | None:
    """Return the section with a card per scenario; None without a recorded update."""
    note = (
        f"Bar: share of all updates (%){results.mean_over_seeds} with the staleness below it. Bins double in "
        "width and are named by their last value: “8” holds 5 to 8. All rows share one scale."
    )
    return rows_section(
        results,
        "staleness",
        "Staleness",
        note,
        measured=staleness_shares,
        paint=_paint_staleness,
        row=40,
        about="Distribution of staleness by strategy",
        words=_typical_staleness,
    )


def _typical_staleness(share: Array) -> str:
    """Return the bin with most updates in words."""
    top = int(np.argmax(share))
    lowest = 0 if top == 0 else 2 ** (top - 2) + 1 if top > 1 else 1
    bounds = bin_text(top) if bin_text(top) == str(lowest) else f"{lowest} to {bin_text(top)}"
    return f"{100 * share[top]:.0f} % of updates have staleness {bounds}"


def _paint_staleness(drawn: Rows, axes: svg.Axes) -> None:
    """Draw a row of bars for each strategy: the share of updates by staleness."""
    tallest = max(float(share.max()) for _, share in drawn)
    bins = max(len(share) for _, share in drawn)
    for y, (cell, share) in enumerate(drawn):
        foot = y + 0.4
        tops = foot - 0.66 * share / tallest
        axes.bar(
            range(len(share)), tops - foot, bottom=foot, width=0.86, linewidth=0, **svg.style(cell.index)
        )
        axes.plot([-0.5, bins - 0.5], [foot, foot], color=svg.RULE, linewidth=0.8)
        for at, top in enumerate(tops):
            if (text := f"{100 * share[at]:.0f}") != "0":
                small: dict[str, Any] = {"color": svg.MUTED, "fontsize": svg.SMALL, "ha": "center"}
                axes.annotate(text, (at, top), (0, 2), textcoords="offset points", **small)
    axes.grid(visible=False)
    axes.set_xlim(-0.5, bins - 0.5)
    size: dict[str, Any] = {"fontsize": svg.SMALL} if bins > MAX_WIDE_BINS else {}
    axes.set_xticks(range(bins), [bin_text(at) for at in range(bins)], **size)
    axes.set_xlabel("Staleness up to (server iterations)")


def participation_shares(cell: Cell) -> Array:
    """Return the share of the k-th fastest client in all updates [n], mean over seeds."""
    of_seeds = [_participation(run) for run in cell.runs if run.files.participation.sum()]
    alike = [share for share in of_seeds if len(share) == len(of_seeds[0])]
    return np.mean(alike, axis=0) if alike else np.zeros(0)


def _participation(run: RunResult) -> Array:
    """Return each client's share of the updates of a run [n], the fastest client first."""
    counts, table = run.files.participation, run.files.clients
    slowness = np.zeros(len(counts))
    slowness[table[Name.CLIENT].astype(int)] = table[Name.MEAN_TIME]
    return counts[np.argsort(slowness, kind="stable")] / counts.sum()


def fifths(share: Array) -> tuple[float, float]:
    """Return the mean share per client of the fastest and the slowest fifth, at least a client each."""
    size = max(1, len(share) // FIFTH)
    return float(share[:size].mean()), float(share[-size:].mean())


def participation(results: Results) -> Section | None:
    """Return the section with a card for all scenarios with equal shares; None without any update."""
    note = (
        f"Stroke: a client’s share of all updates{results.mean_over_seeds}. Vertical line: equal shares. "
        "Filled mark: mean of the fastest fifth of the clients. Open mark: of the slowest fifth."
    )
    section = rows_section(
        results,
        "participation",
        "Participation",
        note,
        measured=participation_shares,
        paint=_paint_participation,
        about="Share of updates by client and strategy",
        words=_fast_to_slow,
    )
    return section and replace(section, downloads=_by_id(results))


def _by_id(results: Results) -> list[Download]:
    """Return a link with the numbers of clients by the user's own ids; none without, or with too many."""
    runs = [run for run in results.suite.runs if Name.DEVICE in run.files.clients]
    if not 0 < sum(len(run.files.clients[Name.DEVICE]) for run in runs) <= MAX_LISTED:
        return []
    return [download("Clients by id", results.suite.name, "clients", client_table(results.suite))]


def _fast_to_slow(share: Array) -> str:
    """Return a comparison of the fastest clients with the slowest, in words."""
    fast, slow = fifths(share)
    if not slow:
        return "the slowest fifth sent nothing"
    return f"a fast client sent {numbers.number(fast / slow, 2)} times as much as a slow one"


def _paint_participation(drawn: Rows, axes: svg.Axes) -> None:
    """Draw a row for each strategy: a stroke for each client, marks for the fastest and slowest fifth."""
    from matplotlib.ticker import LogLocator

    points_of = [
        np.array([part.mean() for part in np.array_split(share, min(len(share), MAX_POINTS))])
        for _, share in drawn
    ]
    everything = np.concatenate(points_of)
    smallest, largest = float(everything[everything > 0].min()), float(everything.max())
    log = largest / smallest > MIN_LOG_RATIO
    low, high = (smallest / 1.6, largest * 1.3) if log else (0.0, largest * 1.08)
    axes.axvline(1 / max(len(share) for _, share in drawn), color=svg.MUTED, linewidth=0.8)
    for y, ((cell, share), means) in enumerate(zip(drawn, points_of, strict=True)):
        points, style = np.maximum(means, low), svg.style(cell.index)
        at = np.full(len(points), y)
        axes.plot(points, at, "|", markersize=9, markeredgewidth=0.8, **style)
        fast, slow = (max(value, float(points.min())) for value in fifths(share))
        axes.plot([slow, fast], [y, y], linewidth=1.2, **style)
        svg.dot(axes, cell.index, (fast, y), 7.5)
        svg.dot(axes, cell.index, (slow, y), 7.5, edge=1.6, hollow=True)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    else:
        axes.locator_params(axis="x", nbins=6)
    axes.set_xlim(low, high)
    svg.across(axes, "Share of updates of a client (%)", share=True, log=log)


def phase_shares(cell: Cell) -> Array:
    """Return the shares of clients' time [6] by `PHASE_SHADES`, mean over seeds; none if unknown."""
    of_seeds = [_phases(run) for run in cell.finite if Name.COMPUTATION in run.files.clients]
    return np.mean(of_seeds, axis=0) if of_seeds else np.zeros(0)


def _phases(run: RunResult) -> Array:
    """Return the shares of all clients' time in a run [6], in the order of `PHASE_SHADES`."""
    clients = run.files.clients
    spent = np.array([clients[part].sum() if part in clients else 0.0 for part in PHASE_COLUMNS])
    total = float(run.files.curve[TIME][-1]) * len(clients[Name.CLIENT]) or 1.0  # a run may end at time 0
    return np.array([*spent, max(0.0, total - spent.sum())]) / total


def phases(results: Results) -> Section | None:
    """Return the section with a card for all scenarios with equal shares; None without network and server."""
    note = (
        f"Bar: what all clients do from the start to the end of a run{results.mean_over_seeds}. From left to "
        "right: download, computation (dark), upload, an update waiting for the server, an update in service "
        "there, and waiting (pale). A client waits for a job or for the server to collect its update, or is "
        "away. Latencies are part of download and upload."
    )
    return rows_section(
        results,
        "phases",
        "Where the time goes",
        note,
        measured=phase_shares,
        paint=_paint_phases,
        about="Share of clients' time by strategy",
        words=_phases_text,
        all_strategies=True,
    )


def _phases_text(share: Array) -> str:
    """Return the shares in words, without phases that took no time."""
    shares = zip(PHASE_SHADES, share, strict=True)
    return ", ".join(f"{word} {numbers.percent(part)} %" for word, part in shares if part or word == WAITING)


def _paint_phases(drawn: Rows, axes: svg.Axes) -> None:
    """Draw a bar for each strategy, in parts by phase."""
    for y, (cell, share) in enumerate(drawn):
        style = svg.style(cell.index)
        for start, part, shade in zip(np.cumsum(share) - share, share, PHASE_SHADES.values(), strict=True):
            axes.barh(y, max(0.0, part - PART_GAP), BAR_HEIGHT, start, alpha=shade, linewidth=0, **style)
    axes.set_xlim(0, 1)
    svg.across(axes, "Share of the clients' time (%)", share=True)
