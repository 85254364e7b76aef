"""`asyncfl list`: parts of suites, errata, closed forms, other frameworks, the schema.

Errata are the entries of `benchmarks/discrepancies.yaml`, peers those of `peers.yaml`.

Fixed: `--schema` prints nothing but JSON, which editors read. Free: all other output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from benchmarks import terminal_output
from benchmarks.commands import options
from benchmarks.errors import UserError
from benchmarks.terminal_output import print_table
from fl_core.text import unknown

if TYPE_CHECKING:
    from benchmarks.discrepancies import Discrepancy
    from benchmarks.peers import Peer, Repeat


def errata(number: str | None) -> str:
    """Return the text of all errata, or of the erratum with an ID; UserError for an unknown ID."""
    from benchmarks.discrepancies import discrepancies

    by_number = {entry.id: entry for entry in discrepancies()}
    if number is not None and number not in by_number:
        raise UserError(unknown("erratum", number, by_number))
    chosen = by_number.values() if number is None else [by_number[number]]
    return "\n\n".join(map(_erratum, chosen))


def _erratum(entry: Discrepancy) -> str:
    rows = {
        "text": entry.text,
        "code": entry.code,
        "ours": entry.reading,
        "default": _settings(entry.ours),
        "other": _settings(entry.other),
        "module": entry.module,
    }
    return _block(f"{entry.id}  {entry.paper}", rows)


def _block(title: str, rows: Mapping[str, str]) -> str:
    """Return a title with a list entry for each non-empty text."""
    return "\n".join([title, *(terminal_output.entry(word, text) for word, text in rows.items() if text)])


def _settings(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in settings.items())


def _value(value: Any) -> str:
    """Return a value as YAML for the command line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items()) + "}"
    return "null" if value is None else str(value)


def print_peers(name: str | None) -> None:
    """Print the tables of all frameworks, or all about the framework NAME; UserError if unknown."""
    from benchmarks.peers import peers, repeats

    entries: dict[str, list[Peer]] = {}
    for entry in peers():
        entries.setdefault(entry.short, []).append(entry)
    if name is None:
        header = ("name", "version", "algorithm", "setting", "paper's rule", "ours")
        rows = [
            (short, entry.version, entry.algorithm, entry.setting, entry.verdict, entry.options or "none")
            for short, entries_of_peer in entries.items()
            for entry in entries_of_peer
        ]
        terminal_output.print_headed(header, rows)
        click.echo()
        runs = [(run.short, run.version, run.example, run.setting, run.verdict) for run in repeats()]
        terminal_output.print_headed(("name", "version", "run", "setting", "same seed twice"), runs)
    elif name not in entries:
        raise UserError(unknown("framework", name, entries))
    else:
        repeated = (_repeat(run) for run in repeats() if run.short == name)
        click.echo("\n\n".join([*map(_peer, entries[name]), *repeated]))


def _peer(entry: Peer) -> str:
    rows = {
        "class": entry.where,
        "setting": entry.setting,
        "computes": entry.computes,
        "paper": entry.verdict,
        "ours": entry.options or "no options of ours give the same",
        "error": entry.error,
        "note": entry.note,
        "stubs": entry.stubs,
    }
    return _block(f"{entry.framework} {entry.version}  {entry.algorithm}", rows)


def _repeat(run: Repeat) -> str:
    rows = {"setting": run.setting, "repeated": run.verdict, "note": run.note}
    return _block(f"{run.framework} {run.version}  {run.example}", rows)


def suite_schema() -> dict[str, Any]:
    """Return the JSON schema of suites, short forms included; combinations are checked on loading."""
    from benchmarks.suite.fields import MAX_LABEL_CHARACTERS, SuiteFile
    from fl_core.local_work import SGD

    schema = SuiteFile.model_json_schema()
    nameless = {**SGD.model_json_schema(), "required": []}
    schema["$defs"]["LocalWork"]["anyOf"].append(nameless)  # the suite's local work, or plain SGD
    label = {
        "type": "string",
        "maxLength": MAX_LABEL_CHARACTERS,
        "description": "its name in tables and figures",
    }
    for member in schema["$defs"]["Strategy"]["anyOf"]:
        if member.get("type") == "object":
            member["properties"] = {**member["properties"], "label": label}
    required = [key for key in schema["required"] if key not in ("problem", "budget")]  # or the grid's
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, **schema, "title": "Suite of asyncfl-bench", "required": required}


class Listing(click.Command):
    """A command with the subcommand `theory`, a group with commands and options."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] != ["theory"]:
            return super().make_context(info_name, args, parent, **extra)
        from benchmarks.commands import theory

        return theory.command.make_context(f"{info_name} theory", args[1:], parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


def _print_schema(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        click.echo(json.dumps(suite_schema(), indent=2, ensure_ascii=False))
        ctx.exit()


@click.command(cls=Listing, short_help="Show parts of suites, errata, theory, frameworks.")
@click.argument("kind", metavar="[KIND]", required=False, shell_complete=options.kind_completions)
@click.argument("name", metavar="[NAME]", required=False, shell_complete=options.part_completions)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of suite files, for editors.",
)
@options.allow_code
def command(kind: str | None, name: str | None) -> None:
    """Show what a suite can contain: everything, one KIND, or one part by NAME.

    NAME alone is enough if only one kind has a part of this name. NAME may also be an import path, such as
    my_package.my_module:MyStrategy.

    \b
    Kinds: strategies, samplings (of FedAvg), problems, partitions, models,
    durations, availability, links (rates and latencies of clients),
    arrangements, local (local work), optimizers (of the server), codings (of
    updates and models), suites.

    \b
    list errata [ID]     where a paper's text and its code differ, and how to
                         choose the other reading in a suite
    list peers [NAME]    what other frameworks' asynchronous servers compute, the
                         options here that give the same, and whether their
                         runs repeat
    list theory routing  the optimal routing of Generalized AsyncSGD
    list theory cost     time and energy to an accuracy, and the routing and number
                         of tasks for the least
    list theory weights  weights that make asynchronous FedAvg unbiased
    """  # noqa: D301 - click's mark for lines to be left alone
    from benchmarks.catalogue import FAMILIES, entries

    if kind == "errata":
        click.echo(errata(name))
        return
    if kind == "peers":
        print_peers(name)
        return
    if name is not None and kind not in FAMILIES:
        raise UserError(unknown("kind", kind, FAMILIES))
    kinds = [*FAMILIES, "suites"]
    if name is not None or (kind is not None and kind not in kinds):
        _print_part(kind if name else None, name or str(kind))
        return
    for number, part_kind in enumerate([kind] if kind else kinds):
        if kind is None:
            click.echo(("\n" if number else "") + part_kind.upper())
        print_table(
            ("name", "what it is", "paper"),
            [(entry.name, entry.what, entry.paper) for entry in entries(part_kind)],
        )


def _print_part(kind: str | None, name: str) -> None:
    """Print all about a part: summary, paper, description, fields."""
    from benchmarks.part_descriptions import described

    part = described(kind, name)
    click.echo(f"{part.name}: {part.what}")
    if part.paper:
        click.echo(f"Paper: {part.paper}")
    if part.text:
        click.echo(f"\n{part.text}")
    click.echo("\nFields" if part.fields else "\nNo fields")
    rows = [
        (
            field.name,
            field.values,
            f"default {field.default}" if field.default != "required" else field.default,
            field.tuned and f"tuned {field.tuned}",
            field.what,
        )
        for field in part.fields
    ]
    if rows:
        print_table(("field", "values", "default", "tuned", "what it is"), rows)
