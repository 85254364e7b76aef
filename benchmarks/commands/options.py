"""Options and arguments shared by several commands, and completions of values.

Fixed: names, defaults and units of options.
"""

import os
from collections.abc import Callable, Mapping
from functools import reduce, wraps
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

T = TypeVar("T")
LEADERBOARD = Path(__file__).parents[1] / "leaderboard/2.0"  # tables of the board


class Finite(click.FloatRange):
    """Parameter type of finite numbers between bounds; click alone accepts NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; exit with an error for invalid input."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


FILE = click.Path(dir_okay=False, path_type=Path)
DIR = click.Path(file_okay=False, path_type=Path)
EXISTING_DIR = click.Path(exists=True, file_okay=False, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
COUNT = click.IntRange(min=1)
POSITIVE = Finite(min=0, min_open=True)


def _use_data(_: click.Context, __: click.Parameter, folder: Path | None) -> None:
    if folder is not None:
        os.environ["ASYNCFL_DATA"] = str(folder.absolute())  # workers inherit it


def _use_device(_: click.Context, __: click.Parameter, name: str) -> None:
    if name != "cpu":
        from benchmarks.device import named

        named(name)
    os.environ["ASYNCFL_DEVICE"] = name


def _allow_code(ctx: click.Context, __: click.Parameter, allowed: bool) -> None:
    if allowed:
        from fl_core.import_guard import ALLOWED

        token = ALLOWED.set(True)
        ctx.call_on_close(lambda: ALLOWED.reset(token))


def _show_log(ctx: click.Context, __: click.Parameter, requested: bool) -> None:
    if requested:
        from benchmarks import log_file

        ctx.with_resource(log_file.to_screen())


def suite_completions(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the shipped suites, and files."""
    from benchmarks.suite.shipped import shipped

    return [*_beginning(begun, dict.fromkeys(shipped())), CompletionItem(begun, type="file")]


def strategy_completions(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the names of strategies in suite files."""
    from benchmarks.catalogue import entries

    return _beginning(begun, {entry.name: entry.what for entry in entries("strategies")})


def kind_completions(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the kinds of parts and, after a first letter, the parts of all kinds."""
    from benchmarks.catalogue import FAMILIES, entries

    of_kinds = _beginning(begun, dict.fromkeys([*FAMILIES, "suites", "errata", "peers", "theory"]))
    parts = {entry.name: entry.what for kind in FAMILIES for entry in entries(kind)} if begun else {}
    return [*of_kinds, *_beginning(begun, parts)]


def part_completions(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the parts of the kind already typed, the errata, or the frameworks."""
    from benchmarks.catalogue import FAMILIES, entries

    kind = ctx.params.get("kind")
    if kind == "errata":
        from benchmarks.discrepancies import discrepancies

        return _beginning(begun, {entry.id: entry.paper for entry in discrepancies()})
    if kind == "peers":
        from benchmarks.peers import peers

        return _beginning(begun, {entry.short: entry.framework for entry in peers()})
    return _beginning(begun, {entry.name: entry.what for entry in entries(kind)}) if kind in FAMILIES else []


def _beginning(begun: str, names: Mapping[str, str | None]) -> list[CompletionItem]:
    """Return completions: all names starting with `begun`, each with a description."""
    return [CompletionItem(name, help=text) for name, text in names.items() if name.startswith(begun)]


suite = click.argument("suite", metavar="SUITE", shell_complete=suite_completions)

settings = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change one key of the suite, e.g. problem.partition.alpha=0.3. May be repeated.",
)

allow_code = click.option(
    "--allow-code",
    is_flag=True,
    expose_value=False,
    callback=_allow_code,
    help="Import package.module:Class even if its file, or the file that names it, is not your own.",
)

scale = click.option(
    "--scale",
    metavar="NAME",
    help="A scale of the suite, e.g. small or paper.  [default: the suite's own choice]",
)

folder = click.option(
    "--store",
    "folder",
    metavar="DIR",
    envvar="ASYNCFL_STORE",
    default="asyncfl-results",
    show_default=True,
    show_envvar=True,
    type=DIR,
    help="Folder of the results.",
)


def store(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options for the location of results; the command receives a single `store`."""

    @folder
    @click.option(
        "--tracking-uri",
        metavar="URI",
        help="Another MLflow store or server.  [default: sqlite:///DIR/mlflow.db]",
    )
    @wraps(command)
    def with_store(*, folder: Path, tracking_uri: str | None, **options: Any) -> T:
        from benchmarks.mlflow_store.store import Store

        return command(store=Store(folder, tracking_uri), **options)

    return with_store


JOURNAL = "tuning.journal"

storage = click.option(
    "--storage",
    metavar="URL",
    help="Where trials are stored: a journal file, sqlite:///FILE or postgresql+psycopg://…; processes "
    f"with the same storage share the campaign.  [default: DIR/{JOURNAL}]",
)

data_dir = click.option(
    "--data-dir",
    metavar="DIR",
    expose_value=False,
    callback=_use_data,
    type=EXISTING_DIR,
    help="Folder of the data sets.  [env var: ASYNCFL_DATA]",
)

device = click.option(
    "--device",
    metavar="NAME",
    envvar="ASYNCFL_DEVICE",
    default="cpu",
    show_default=True,
    show_envvar=True,
    expose_value=False,
    callback=_use_device,
    help="Device for training: cpu, cuda, or a certain GPU, e.g. cuda:1.",
)

verbose = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_show_log,
    help="Print the log, too; it is also written to DIR/asyncfl.log.",
)

quiet = click.option("--quiet", is_flag=True, help="Hide progress; print only errors and results.")

dry_run = click.option(
    "--dry-run", is_flag=True, help="Show what would be computed, and the estimated time; compute nothing."
)

workers = click.option(
    "--workers",
    metavar="N",
    type=COUNT,
    help="Number of processes.  [default: one for each core, four on a GPU]",
)


def computing(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of the engine; the command receives a single `engine`."""

    @click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Compute in processes on this machine, or on the nodes of a Ray cluster.",
    )
    @click.option(
        "--address",
        metavar="ADDR",
        help="With --engine ray: HOST:PORT of the cluster's head.  [default: the cluster of this machine]",
    )
    @workers
    @wraps(command)
    def with_engine(*, engine: str, address: str | None, workers: int | None, **options: Any) -> T:
        from benchmarks import engine as engines

        return command(engine=engines.engine(engine, address, workers), **options)

    return with_engine


tuned = click.option(
    "--tuned",
    is_flag=True,
    help="Use the values found by asyncfl tune; the runs are recorded as SUITE-tuned.",
)

tuned_from = click.option(
    "--tuned-from", type=FILE, help="Like --tuned, with the values of a file written by asyncfl tune --out."
)


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return options as a single decorator, in the given order."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


# Of commands that plan the runs of a suite:
planned = _together(suite, allow_code, settings, scale, store, data_dir)
