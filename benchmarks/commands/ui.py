"""`asyncfl ui`: MLflow's own pages on recorded runs."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import click

from benchmarks import signals_and_streams
from benchmarks.commands import options
from benchmarks.errors import UserError
from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.database import UI_HOST, UI_PORT
from benchmarks.redaction import command_line, redacted
from fl_core.recorded_names import CAMPAIGN, DEFAULT, VARIANT, Kind
from fl_core.text import nearest

if TYPE_CHECKING:
    from benchmarks.mlflow_store.reader import ExperimentEntry
    from benchmarks.mlflow_store.store import Store

MAX_SUITES = 10  # listed without SUITE, the newest
POLL_SECONDS = 0.25  # between two requests to a starting server
# Variables of the server: no jobs for language models, no warnings of its libraries.
QUIET = {
    **database.QUIET,
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PYTHONWARNINGS": "ignore",
}


@click.command(short_help="Open the MLflow UI on the recorded runs.")
@click.argument("suite", required=False, shell_complete=options.suite_completions)
@click.option("--tuning", is_flag=True, help="Open optuna-dashboard on the tuning campaigns instead.")
@options.storage
@options.store
@click.option("--port", default=UI_PORT, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--host",
    default=UI_HOST,
    show_default=True,
    help="Address to listen on; any other than the default is open to the network, without a password.",
)
def command(
    *, suite: str | None, tuning: bool, storage: str | None, store: Store, port: int, host: str
) -> None:
    """Open the MLflow UI on the recorded runs, those of SUITE compared; ends with Ctrl-C.

    If the records are on an MLflow server, print the links that open them there.
    """
    if tuning:
        _dashboard(storage or str(store.folder / options.JOURNAL), host, port)
        return
    store.must_exist()
    if store.is_server:
        _print_links(_links(store, suite), store.tracking_uri)
        return
    _must_be_free(host, port)
    links = _links(store, suite)
    click.echo("MLflow is starting; this takes a moment.")
    with _server(store.tracking_uri, host, port) as server:
        while server.poll() is None and not _answers(host, port):
            sleep(POLL_SECONDS)
        if server.poll() is None:
            _print_links(links, f"http://{host}:{port}")
            click.echo(f"MLflow UI: http://{host}:{port} (ends with Ctrl-C)")
        sys.exit(server.wait())


def opening(suite: str, store: Store) -> str:
    """Return the command for opening a suite's runs in MLflow; on a server, the address of the runs."""
    if store.is_server:
        (_, address), *_ = pages(store.tracking_uri, suite)
        return redacted(f"{store.tracking_uri.rstrip('/')}/{address}")
    # In an environment of tox, `asyncfl` is not on the user's path: show the path of the script.
    script = Path(sys.argv[0])
    ours = "TOX_ENV_NAME" in os.environ and script.stem == "asyncfl"
    return command_line([os.path.relpath(script) if ours else "asyncfl", "ui", suite, *store.options])


def _links(store: Store, suite: str | None) -> list[tuple[str, str]]:
    """Return titles and addresses, after the server's, of the pages of a suite, or of the newest suites."""
    if suite is not None:
        return pages(store.tracking_uri, suite)
    readable = store.is_server or database.file(store.tracking_uri) is not None
    return everything(store.tracking_uri) if readable else []


def _print_links(links: Iterable[tuple[str, str]], server: str) -> None:
    for title, address in links:
        click.echo(f"{title}\n  {redacted(server.rstrip('/'))}/{address}")


def _dashboard(storage: str, host: str, port: int) -> None:
    """Serve optuna-dashboard, to follow campaigns during runs."""
    from tuning.storage import open_storage

    try:
        from optuna_dashboard import run_server
    except ModuleNotFoundError:
        raise UserError("--tuning needs optuna-dashboard: pip install optuna-dashboard") from None
    _must_be_free(host, port)
    if "://" not in storage and not Path(storage).is_file():
        raise UserError(f"{storage} does not exist. Create it with asyncfl tune SUITE")
    opened = open_storage(storage)
    click.echo(f"Campaigns in {opened.name}: http://{host}:{port} (ends with Ctrl-C)")
    signals_and_streams.raise_interrupts()
    try:
        run_server(opened.optuna, host, port)
    except KeyboardInterrupt:
        sys.exit(0)


@contextmanager
def _server(tracking_uri: str, host: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run MLflow's server, and end all server processes at the end, by Ctrl-C or a signal, too."""
    signals_and_streams.raise_interrupts()
    environment = {
        **QUIET,
        **os.environ,
        # It may hold a password, and all users of a machine can see the arguments of a process.
        "MLFLOW_BACKEND_STORE_URI": tracking_uri,
        "MLFLOW_REGISTRY_STORE_URI": tracking_uri,
        "UVICORN_APP_DIR": str(
            Path(os.__file__).parent
        ),  # otherwise modules of the current folder come first
    }
    # One server process for one reader: by default MLflow starts four, which takes longer.
    serving = ["--workers", "1", "--uvicorn-opts", "--log-level warning", "--host", host, "--port", str(port)]
    arguments = [sys.executable, "-m", "mlflow", "ui", *serving]
    server = subprocess.Popen(
        arguments,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    output = Thread(target=_print, args=(server.stdout,), daemon=True)
    output.start()
    try:
        yield server
    except KeyboardInterrupt:
        sys.exit(0)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
        output.join(POLL_SECONDS)


def _print(lines: Iterable[str]) -> None:
    """Print the output of the server, without the line on security settings."""
    for line in lines:
        if not line.startswith("[MLflow] Security middleware enabled"):
            sys.stderr.write(redacted(line))


def _answers(host: str, port: int) -> bool:
    """Return whether the server is ready for a browser."""
    try:
        with urlopen(f"http://{host}:{port}/health", timeout=5):
            return True
    except (URLError, OSError):
        return False


def everything(tracking_uri: str) -> list[tuple[str, str]]:
    """Return names and addresses of the newest suites; MLflow's own list opens pages on language models."""
    from benchmarks.mlflow_store import views
    from benchmarks.mlflow_store.reader import reading

    with reading(tracking_uri) as reader:
        suites = [suite for name, suite in reader.experiments().items() if name != DEFAULT]
    newest = sorted(suites, key=lambda suite: -int(suite.id))[:MAX_SUITES]
    return [(suite.name, views.page(suite.id, mode="TABLE")) for suite in newest]


def pages(tracking_uri: str, suite: str) -> list[tuple[str, str]]:
    """Return titles and addresses, after the server's, of a suite's pages in MLflow: charts and report.

    Those of its campaign, and of its runs with tuned values, follow.
    """
    from benchmarks.mlflow_store import views
    from benchmarks.mlflow_store.reader import reading
    from benchmarks.suite.shipped import recorded_name

    suite = recorded_name(suite)
    base = suite.removesuffix(VARIANT)
    with reading(tracking_uri) as reader:
        experiments = reader.experiments()
        experiment = experiments.get(suite)
        results = reader.results(experiment.id) if experiment else []
    links = []
    if experiment is not None:
        links += _views(experiment)
        reports = [result.run_id for result in results if result.kind == Kind.REPORT]
        links += [("Report page", views.report_page(suite, experiment.id, run)) for run in reports[:1]]
    related = {"Tuned": f"{base}{VARIANT}", "Tuning": f"{base}{CAMPAIGN}"}
    for kind, name in related.items():
        if name in experiments and name != suite:
            links += [(f"{kind} · {title}", address) for title, address in _views(experiments[name])]
    if links:
        return links
    if experiment is None:
        names = [name for name in experiments if name != DEFAULT]
        hint = f"{nearest(suite, names)} Available: {', '.join(names) or 'none'}"
        raise UserError(f"no runs of '{suite}' are recorded in {tracking_uri}{hint}")
    adds = f"tune {suite.removesuffix(CAMPAIGN)}" if suite.endswith(CAMPAIGN) else f"run {suite}"
    return [(f"All runs (asyncfl {adds} adds comparisons)", views.page(experiment.id, mode="TABLE"))]


def _views(experiment: ExperimentEntry) -> list[tuple[str, str]]:
    """Return titles and addresses of the saved views of an experiment."""
    from benchmarks.mlflow_store import views
    from benchmarks.mlflow_store.run_result import valid_tags

    return [
        (name, views.page(experiment.id, key, mode="TABLE" if name == views.SINGLE else "CHART"))
        for name, key in views.saved(valid_tags(experiment.tags))
    ]


def _must_be_free(host: str, port: int) -> None:
    """Raise UserError if the port is in use, or the address belongs to another machine."""
    with socket.socket() as probe:
        # Without this option, a port closed a moment ago would count as in use.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UserError(f"port {port} is in use: choose another with --port") from None
            raise UserError(
                f"--host {host}: cannot listen on this address ({error.strerror}). Choose another"
            ) from None
