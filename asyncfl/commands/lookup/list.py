"""`asyncfl list`: what a suite can choose from, errata and closed forms of the papers, other frameworks."""

import json
from typing import Any

import click

from asyncfl import completion, options
from benchmarks.errors import UserError
from benchmarks.tables import print_table
from fl_core.text import nearest


class Listing(click.Command):
    """A command with one subcommand, `theory`, which has commands and options of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] != ["theory"]:
            return super().make_context(info_name, args, parent, **extra)
        from asyncfl.commands.lookup import theory

        return theory.command.make_context(f"{info_name} theory", args[1:], parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


def _print_schema(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from asyncfl.commands.lookup.schema import suite_schema

        click.echo(json.dumps(suite_schema(), indent=2, ensure_ascii=False))
        ctx.exit()


@click.command(cls=Listing, short_help="Show what a suite can choose from, errata, theory, frameworks.")
@click.argument("kind", metavar="[KIND]", required=False, shell_complete=completion.kinds)
@click.argument("name", metavar="[NAME]", required=False, shell_complete=completion.parts)
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
    """Show what a suite can choose from: everything, one KIND, or all about one part by its NAME.

    NAME alone will do where only one kind has a part of that name; an import path,
    my_package.my_module:MyStrategy, will do as well.

    \b
    Kinds: strategies, samplings (of FedAvg), problems, partitions, models,
    durations, availability, links (rates and latencies of clients),
    arrangements, local (local work), optimizers (of the server), codings (of
    updates and models), suites.

    \b
    list errata [ID]     where a paper's text and its code differ, and how to
                         choose the other reading in a suite
    list peers [NAME]    what other frameworks' asynchronous servers compute, and
                         the options here that give the same
    list theory routing  the optimal routing of Generalized AsyncSGD
    list theory weights  weights that make asynchronous FedAvg unbiased
    """  # noqa: D301 - click's mark for lines to be left alone
    from benchmarks.reference.catalogue import FAMILIES, entries

    if kind == "errata":
        from asyncfl.commands.lookup.errata import errata

        click.echo(errata(name))
        return
    if kind == "peers":
        from asyncfl.commands.lookup import peers

        peers.show(name)
        return
    if name is not None and kind not in FAMILIES:
        raise UserError(f"no kind of parts is called '{kind}'{nearest(str(kind), FAMILIES)}")
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
    from benchmarks.reference.parts import described

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
