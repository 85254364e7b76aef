"""Progress of a campaign on stderr: lines, a bar in a terminal, and the best values.

`asyncfl tune` and the leaderboard run a `Driver` with it.

Free: layout and wording.
"""

from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import Any

from benchmarks.engine import Engine
from benchmarks.errors import warn
from benchmarks.redaction import command_line
from fl_core.text import duration, many
from tuning.driver import Driver

MAX_SILENCE_SECONDS = 600  # between two lines
PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}  # rich must not alter labels


def run_with_progress(driver: Driver, computes: Engine, *, quiet: bool) -> None:
    """Run a campaign, with progress on stderr; warn of errors.

    A line for each tenth of the trials, and at least every `MAX_SILENCE_SECONDS`, has the remaining time and
    the best values; a terminal shows a bar as well.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    total, began = driver.campaign.trials, monotonic()
    tenths, printed = 10 * driver.finished_earlier // total, began
    words = ["asyncfl", "ui", driver.experiment, *driver.store.options]
    link = (
        "" if quiet or driver.finished else f"Follow the trials in a second terminal: {command_line(words)}"
    )
    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("trials", total=total, completed=driver.finished_earlier)

        def show(ended: int) -> None:
            nonlocal tenths, printed, link
            if link:  # not before the first call, when MLflow has the studies
                console.print(link, **PLAIN)
                link = ""
            bar.update(task, completed=ended)
            seconds = monotonic() - began
            due = 10 * ended // total > tenths or monotonic() - printed > MAX_SILENCE_SECONDS
            if quiet or not due or ended == driver.finished_earlier:
                return
            tenths, printed = 10 * ended // total, monotonic()
            seconds_left = (total - ended) * seconds / (ended - driver.finished_earlier)
            after = f", about {duration(seconds_left)} left" if ended < total else ""
            console.print(f"[{ended:,}/{total:,}] trials, {duration(seconds)}{after}", **PLAIN)
            for line in best_so_far(driver):
                console.print(f"  {line}", **PLAIN)

        driver.run(computes, show)
    errors = Counter((study.plan.strategy, error) for study in driver.studies for error in study.errors())
    for (strategy, error), count in errors.items():
        warn(f"{strategy}: {many(count, 'trial')} ended in error: {error}")


def best_so_far(driver: Driver) -> Iterator[str]:
    """Yield a line for each started scenario: the best objective of each strategy, in any process."""
    by_scenario: dict[str, list[str]] = {}
    for search in driver.searches:
        complete = [trial for trial in search.ended() if trial.state.name == "COMPLETE"]
        values = [trial.value for trial in complete if trial.value is not None]
        if values:
            best = (max if search.plan.objective.maximise else min)(values)
            by_scenario.setdefault(search.plan.scenario, []).append(f"{search.plan.strategy} {best:.4g}")
    objective = driver.campaign.studies[0].objective
    for scenario, best_values in by_scenario.items():
        yield (
            f"best so far in {scenario} ({objective.kind}, {objective.metric.in_text}): "
            f"{', '.join(best_values)}"
        )
