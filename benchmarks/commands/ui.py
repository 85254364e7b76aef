"""`asyncfl ui`: MLflow's own pages on what was recorded."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

import click

from benchmarks import options
from benchmarks.errors import UserError


@click.command()
@click.argument("suite", required=False)
@options.store
@options.tracking_uri
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address that it listens on; any other than the default is open to the network, without a password.",
)
def command(suite: str | None, folder: Path, tracking_uri: str | None, port: int, host: str) -> None:
    """Open the MLflow UI on the recorded runs, those of SUITE compared; ends with Ctrl-C."""
    from benchmarks.errors import warn
    from benchmarks.tracking.places import settle
    from benchmarks.tracking.store import Store

    store = Store(folder, tracking_uri)
    store.must_exist()
    if _taken(host, port):
        raise UserError(f"port {port} is in use: choose another with --port")
    if why := settle(store):
        warn(f"MLflow's pages will not find files of runs: {why}")
    if suite is not None:
        for title, address in pages(store.tracking_uri, suite):
            click.echo(f"{title}\n  http://{host}:{port}/{address}")
    click.echo(f"MLflow UI: http://{host}:{port} (takes a moment to start; ends with Ctrl-C)")
    arguments = ["-m", "mlflow", "ui", "--host", host, "--port", str(port)]
    # The address may hold a password, and all users of a machine can see the arguments of a process.
    environment = {**os.environ, "MLFLOW_BACKEND_STORE_URI": store.tracking_uri}
    os.execve(sys.executable, [sys.executable, *arguments], environment)


def pages(tracking_uri: str, suite: str) -> list[tuple[str, str]]:
    """Title and address, after the server's, of MLflow's pages on a suite: its charts and its report page."""
    from mlflow import MlflowClient

    from benchmarks.suite.document import nearest
    from benchmarks.tracking import notes, views
    from benchmarks.tracking.delivery import failures, what_happened

    client = MlflowClient(tracking_uri)
    try:
        experiment = client.get_experiment_by_name(suite)
        known = [found.name for found in client.search_experiments() if found.name != "Default"]
    except failures() as error:
        raise UserError(f"MLflow at {tracking_uri} cannot be read: {what_happened(error)}") from None
    if experiment is None:
        there = f"{nearest(suite, known)} There are: {', '.join(known) or 'none'}"
        raise UserError(f"no runs of '{suite}' are recorded in {tracking_uri}{there}")
    id_ = experiment.experiment_id
    found = [(name, views.page(id_, key)) for name, key in views.saved(experiment.tags)]
    reports = client.search_runs([id_], notes.REPORT, max_results=1)
    found += [("Report page", notes.report_page(suite, id_, run.info.run_id)) for run in reports]
    return found or [(f"All runs (asyncfl run {suite} adds comparisons)", views.page(id_, mode="TABLE"))]


def _taken(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # a port that was given up just now is free
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise UserError(f"--host {host}: cannot be listened on: {error.strerror}") from None
    return False
