"""The reference pages of the documentation, as Markdown: parts, suite keys, commands, public names."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import pandas as pd

from benchmarks.catalogue import FAMILIES, CatalogueEntry, entries
from benchmarks.mlflow_store.views import log10
from benchmarks.part_descriptions import Description, Field, described, fields_of, in_words
from benchmarks.peers import peers, repeats
from benchmarks.suite.fields import SuiteFile
from benchmarks.suite.labels import first_line
from fl_core.field_comments import of_fields
from fl_core.metrics import ACCURACY, DISTANCE, EXCESS_LOSS, FEDERATED, LOSS
from fl_core.parts import Frozen, Part
from fl_core.recorded_names import DIAGNOSED, SPREAD, TO_TARGET, Clock, Tag, Total, TrialMetric
from fl_core.strategies.strategy import Strategy
from reports.statistical_inference import ERROR, holm, paired_effect

READINGS = (
    Path(__file__).parents[1] / "tests" / "peers" / "readings.csv"
)  # a row for each run of `frameworks`

HEADER = ("metric", "what it is", "unit")
COMMON_METRICS = (ACCURACY, LOSS, DISTANCE, EXCESS_LOSS)
UNITS = {
    Clock.UPDATES: "updates",
    Clock.TIME: "units of virtual time",
    Clock.BYTES: "bytes",
    Clock.ENERGY: "joules",
}

INTRODUCTION = (
    "Runs, groups, trials and studies have these. An evaluation is at a server iteration, which is MLflow's "
    "step. Values of a group are means over seeds; those of the target are medians. Parameters are the keys "
    "of a [suite](suite.md)."
)
CURVES = (
    "A problem declares its metrics, with title, direction and unit (tag `asyncfl.metrics`); these are the "
    "usual ones. Lᵢ is the loss on the training data of client i, pᵢ the weight of that client in the "
    "objective, and sᵢ its share of all updates."
)

TITLES = {
    "strategies": "Strategies",
    "samplings": "Samplings of FedAvg",
    "problems": "Problems",
    "partitions": "Partitions",
    "models": "Networks",
    "durations": "Duration laws",
    "availability": "Availability laws",
    "links": "Links of clients",
    "arrangements": "Arrangements",
    "local": "Local work",
    "optimizers": "Server optimisers",
    "codings": "Codings of updates and models",
    "suites": "Shipped suites",
}


def pages(commands: click.Group, public: ModuleType) -> dict[str, str]:
    """The pages by name: kinds of parts, shipped suites, keys of a suite, commands, public names, tables."""
    found = {kind: _parts(kind) for kind in FAMILIES}
    suites = f"# {TITLES['suites']}\n\n{_overview(entries('suites'))}"
    commands_page = "\n".join(_commands(commands))
    made = {"suites": suites, "suite": _keys(), "cli": commands_page, "names": _names(public)}
    tables = {
        "switches": _switches(),
        "peers": _peers(),
        "repeats": _repeats(),
        "readings": readings(READINGS),
    }
    return {**found, **made, **tables, "mlflow": _mlflow()}


def _names(public: ModuleType) -> str:
    rows = [(f"`{name}`", text(_said(getattr(public, name)))) for name in public.__all__]
    return table(("name", "what it is"), rows)


def _switches() -> str:
    """The table of class variables and properties that a strategy may set."""
    comments = of_fields(Strategy)
    described = {name: what for name, what in comments.items() if name not in Strategy.model_fields}
    properties = {
        name: first_line(member.fget).rstrip(".")
        for name, member in vars(Strategy).items()
        if isinstance(member, property) and not name.startswith("_")
    }
    rows = [
        (f"`{name}`", text(what), f"`{getattr(Strategy, name)}`" if name in vars(Strategy) else "")
        for name, what in described.items()
    ]
    rows += [(f"`{name}`", text(what), "") for name, what in properties.items()]
    return table(("name", "what it is", "default"), rows)


def _said(named: Any) -> str:
    """The first line of a docstring; the type of a field, in words."""
    if isinstance(named, type | ModuleType) or inspect.isfunction(named):
        return first_line(named).rstrip(".")
    return f"Type of a field: {in_words(named)}"


def _peers() -> str:
    """The tables of other frameworks' servers on the recorded arrivals, one for each framework."""
    header = ("server and setting", "paper's rule", "computes", "the same here")
    parts = []
    for _, group in groupby(peers(), lambda one: one.framework):
        servers = list(group)
        rows = [
            (
                f"{one.algorithm}, `{one.where}`: {text(one.setting)}",
                one.verdict,
                text(". ".join(filter(None, (one.computes, one.note)))),
                f"`{one.options}`" if one.options else "–",
            )
            for one in servers
        ]
        parts += [f"### {servers[0].framework} {servers[0].version}", table(header, rows)]
        if servers[0].stubs:
            parts.append(f"Stubs: {text(servers[0].stubs)}.")
    return "\n\n".join(parts)


def _repeats() -> str:
    """The table of other frameworks' runs, made twice with the same seed."""
    rows = [
        (
            f"{run.framework} {run.version}",
            text("; ".join(filter(None, (run.example, run.setting)))),
            text(". ".join(filter(None, (run.verdict, run.note)))),
        )
        for run in repeats()
    ]
    return table(("framework", "run", "same seed twice"), rows)


def readings(path: Path) -> str:
    """The table of the suite `frameworks`: readings of FedAsync and FedBuff, each paired with the paper's."""
    runs = pd.read_csv(path, keep_default_na=False)
    cells = dict(list(runs.groupby(["strategy", "options", "timing"], sort=False)))
    timings = list(runs["timing"].unique())
    effects = {
        key: paired_effect(
            100 * (cell["accuracy"].to_numpy() - cells[key[0], "", key[2]]["accuracy"].to_numpy())
        )
        for key, cell in cells.items()
        if key[1]
    }
    separated = {
        key
        for key, p in zip(effects, holm([effect.p for effect in effects.values()]), strict=True)
        if p <= ERROR
    }
    rows = []
    for strategy, options in dict.fromkeys((strategy, options) for strategy, options, _ in cells):
        row = [f"`{strategy}`, the paper's rule" if not options else f"`{strategy} {options}`"]
        for timing in timings:
            cell = cells[strategy, options, timing]
            effect = effects.get((strategy, options, timing))
            difference = ""
            if effect is not None:
                half = (effect.high - effect.low) / 2
                size = f"{effect.mean:+.1f}" + (f" ± {half:.1f}" if np.isfinite(half) else "")
                difference = f"**{size}**" if (strategy, options, timing) in separated else size
            time = float(np.median(cell["time_to_target"]))
            never = "never" if np.isinf(time) else f"{time:.3g}"
            row += [f"{100 * cell['accuracy'].mean():.1f}", difference, never]
        rows.append(row)
    header = ["strategy and options"]
    for timing in timings:
        header += [f"{timing}: accuracy", "difference", "time"]
    return table(header, rows)


def _mlflow() -> str:
    """The page of all metrics and tags that runs, groups, trials and studies have in MLflow."""
    own = (*COMMON_METRICS, *FEDERATED)
    curve = [
        (f"`{metric.name}`", text(metric.title), metric.unit or ("share" if metric.share else ""))
        for metric in own
    ]
    curve += [
        ("`worst_client/…`", "Value of a metric at the client where it is worst", ""),
        ("`…_se`", "Standard error of a loss on a sample of the training data", ""),
    ]
    clocks = [
        (f"`{clock.metric}`", f"{clock.words} until an evaluation".capitalize(), UNITS[clock])
        for clock in Clock
        if clock.metric
    ]
    reached = [
        (f"`{clock.to_target}`", f"{clock.words} until the target is met".capitalize(), UNITS[clock])
        for clock in TO_TARGET.values()
    ]
    begun = [
        (f"`{SPREAD}…`", "Standard deviation over the seeds of a group, of the metric named behind it", ""),
        (f"`{DIAGNOSED}…`", "Mean over a run of a quantity that `diagnostics` measures", ""),
        (f"`{log10('…')}`", "Decimal logarithm of a trial's parameter", ""),
    ]
    parts = [
        "# Metrics and tags in MLflow",
        INTRODUCTION,
        "## Clocks",
        table(HEADER, clocks),
        "Missing where the target was not met:",
        table(HEADER, reached),
        "## Learning curve",
        CURVES,
        table(HEADER, curve),
        "## A whole run, or a group",
        table(HEADER, [*_members(Total), *begun]),
        "## Trials and studies",
        table(HEADER, _members(TrialMetric)),
        "## Tags",
        table(("tag", "what it is"), [row[:2] for row in _members(Tag)]),
    ]
    return "\n\n".join(parts)


def _members(names: type[StrEnum]) -> list[tuple[str, str, str]]:
    """Return a row for each member of an enumeration; a text that begins with its unit is in that."""
    comments = of_fields(names)
    rows = []
    for member in names:
        what = comments[member.name]
        unit = next(
            (unit for unit in ("bytes", "seconds", "virtual time", "share") if what.startswith(unit)), ""
        )
        rows.append((f"`{member.value}`", text(what[0].upper() + what[1:]), unit))
    return rows


def _parts(kind: str) -> str:
    each = [described(kind, entry.name) for entry in entries(kind)]
    return "\n\n".join(
        [f"# {TITLES[kind]}", _overview(entries(kind), kind), *(_part(part, kind) for part in each)]
    )


def _overview(found: Sequence[CatalogueEntry], kind: str = "") -> str:
    """A table of parts, with links where they are parts of a kind that has sections."""
    names = [f"[`{one.name}`](#{anchor(kind, one.name)})" if kind else f"`{one.name}`" for one in found]
    rows = [(name, text(one.what), text(one.paper)) for name, one in zip(names, found, strict=True)]
    return table(("name", "what it is", "paper"), rows)


def _part(part: Description, kind: str) -> str:
    parts = [
        f"({anchor(kind, part.name)})=",
        f"## {part.name}",
        f"{text(part.what)}.",
        f"*{text(part.paper)}*" if part.paper else "",
        text(part.text),
        _fields(part.fields) if part.fields else "It has no fields.",
    ]
    return "\n\n".join(filter(None, parts))


def _keys() -> str:
    introduction = "Every key of a suite file. Mappings inside of it have sections of their own."
    return "\n\n".join(["# Suite files", introduction, *_sections("", SuiteFile)])


def _sections(key: str, model: type[Frozen]) -> Iterator[str]:
    """The keys of a mapping, then those of each mapping inside of it that is no part."""
    yield f"## {key or 'The file'}"
    yield text(first_line(model))
    yield _fields(list(fields_of(model)))
    for name, field in model.model_fields.items():
        for inner in dict.fromkeys(_mappings(field.annotation)):
            yield from _sections(f"{key}.{name}".lstrip("."), inner)


def _mappings(annotation: Any) -> Iterator[type[Frozen]]:
    """The models that a type consists of, but for parts, which have pages of their own."""
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        if not issubclass(annotation, Part):
            yield annotation
        return
    for inner in typing.get_args(annotation):
        yield from _mappings(inner)


def _fields(fields: Sequence[Field]) -> str:
    rows = [
        (f"`{one.name}`", text(one.what), text(one.values), text(one.default), text(one.tuned))
        for one in fields
    ]
    return table(("field", "what it is", "values", "default", "tuned"), rows)


def _commands(group: click.Group) -> Iterator[str]:
    yield "# Commands"
    top = click.Context(group, info_name="asyncfl", **group.context_settings)
    yield _help(group, top)
    for name in group.list_commands(top):
        yield from _command(group, name, top, level=2)


def _command(group: click.Group, name: str, above: click.Context, level: int) -> Iterator[str]:
    command = group.get_command(above, name)
    assert command is not None
    here = click.Context(command, info_name=name, parent=above)
    yield f"\n{'#' * level} {here.command_path}\n"
    yield _help(command, here)
    if isinstance(command, click.Group):
        for inner in command.list_commands(here):
            yield from _command(command, inner, here, level + 1)


def _help(command: click.Command, context: click.Context) -> str:
    context.max_content_width = context.terminal_width = 100
    return f"```text\n{command.get_help(context)}\n```"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of Markdown as a table; columns that are empty everywhere are left out."""
    full = [column for column in range(len(header)) if any(row[column] for row in rows)]
    lines = [[header[column] for column in full], ["---"] * len(full)]
    lines += [[row[column].replace("|", "\\|").replace("\n", " ") for column in full] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def anchor(kind: str, name: str) -> str:
    """What links to a part lead to; a name may stand in two kinds."""
    return f"{kind}-{name.replace('_', '-')}"


def text(plain: str) -> str:
    """Plain text with code in backticks, in which Markdown sees no other mark-up."""
    spans = plain.split("`")
    return "`".join(span if at % 2 else _escaped(span) for at, span in enumerate(spans))


def _escaped(span: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\*_[]<>#$" else letter for letter in span)
