"""The command: `python -m tests.mutants`, or `tox run -e mutants`."""

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "CI": "1",
}  # before torch; hypothesis tries the same examples each time

import click

from tests.mutants import changed, targets
from tests.mutants.forks import Job, results, warm_up
from tests.mutants.mutant import Mutant, mutants
from tests.mutants.relevance import Relevance, relevance
from tests.mutants.report import report
from tests.mutants.session import Result, Session
from tests.mutants.trial import try_mutant, try_tests

FOLDER = targets.ROOT / ".mutants"
CONTROL = 10  # seconds of tests


@click.command(context_settings={"show_default": True})
@click.argument("paths", nargs=-1)
@click.option("--minutes", type=float, default=60, help="Stop after this time; the next call goes on.")
@click.option("--sample", type=int, help="Mutants drawn at random, always the same; default: all.")
@click.option("--each", type=float, default=float("inf"), help="Seconds of tests, at most, for a mutant.")
@click.option("--workers", type=int, default=os.cpu_count(), help="Processes; default: the cores.")
@click.option("--changed", "only_changed", is_flag=True, help="Only files that differ from main or HEAD~1.")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def main(
    *,
    paths: tuple[str, ...],
    minutes: float,
    sample: int | None,
    each: float,
    workers: int,
    only_changed: bool,
    folder: Path,
) -> None:
    """Put small faults into PATHS (default: all of targets.py); report in Markdown which the tests miss."""
    deadline = time.monotonic() + 60 * minutes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the children are stopped
    os.chdir(targets.ROOT)
    files = _files(paths, only_changed)
    if not files:
        click.echo("No file of tests/mutants/targets.py is concerned: nothing to mutate.")
        return
    everything = [mutant for file in files for mutant in mutants(file)]
    chosen = sorted(everything, key=lambda mutant: mutant.key)[:sample]
    folder.mkdir(exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="mutants-")
    session = Session(folder / "session.sqlite")
    try:
        warm_up()
        tests = relevance(folder, workers, deadline, scratch)
        _try_all(chosen, session, tests, each=each, workers=workers, deadline=deadline, scratch=scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    click.echo("\n".join(report(chosen, session)))
    session.close()


def _files(paths: tuple[str, ...], only_changed: bool) -> list[str]:
    """The files to mutate."""
    files = list(targets.group_of())
    if paths:
        files = [file for file in files if any(Path(file).is_relative_to(path) for path in paths)]
    if only_changed:
        commit = changed.base()
        if commit is None:
            click.echo("No earlier commit to compare with: every file counts as changed.", err=True)
        else:
            touched = set(changed.changed_since(commit))
            files = [file for file in files if file in touched]
    return files


def _try_all(
    chosen: list[Mutant],
    session: Session,
    tests: Relevance,
    *,
    each: float,
    workers: int,
    deadline: float,
    scratch: str,
) -> None:
    """Try what is not settled, in order, until the deadline."""
    for test in tests.failed:
        click.echo(f"fails without a mutation, left out: {test}", err=True)
    version, known = f"{tests.version} {each}", set(tests.seconds)
    _control(tests, deadline, f"{scratch}/control")
    by_key = {mutant.key: mutant for mutant in chosen}
    for mutant in chosen:
        if killer := session.killer(mutant):
            tests.kills[mutant.file, killer] += 1
    waiting = iter([mutant for mutant in chosen if not session.settled(mutant, version)])

    def next_job() -> Job | None:
        mutant = next(waiting, None)
        if mutant is None:
            return None
        seconds = tests.tests(mutant, each)
        place = f"{scratch}/{mutant.key}"
        return Job(mutant.key, try_mutant, (mutant, seconds, known, place), 120 + 3 * sum(seconds.values()))

    for key, found in results(next_job, workers, deadline):
        mutant = by_key[key]
        outcome, killer = found or ("killed", "")  # a child that died or hung has noticed
        if killer:
            tests.kills[mutant.file, killer] += 1
        session.set(mutant, Result(outcome, version if outcome == "survived" else killer))
        shutil.rmtree(f"{scratch}/{key}", ignore_errors=True)


def _control(tests: Relevance, deadline: float, scratch: str) -> None:
    """The quickest tests, tried like a mutant but without one: what fails here would be taken for a kill."""
    quickest, total = {}, 0.0
    for test, seconds in sorted(tests.seconds.items(), key=lambda each: each[1]):
        total += seconds
        if total < CONTROL:
            quickest[test] = seconds
    jobs = iter([Job("control", try_tests, (quickest, set(tests.seconds), scratch))])
    for _, found in results(lambda: next(jobs, None), 1, deadline):
        if found is None or found[0] != "survived":
            raise click.ClickException(f"fails without a mutation: {found[1] if found else 'pytest itself'}")


if __name__ == "__main__":
    main()
