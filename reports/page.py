"""Report page: a self-contained HTML file with the records of a suite in MLflow."""

import functools
import importlib
import re
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fl_core.recording.atomic import whole
from fl_core.text import many
from reports import files
from reports.figures import look
from reports.records.records import RecordedSuite
from reports.records.store import load
from reports.sections import (
    clients,
    cost,
    curves,
    errors,
    heatmap,
    overview,
    provenance,
    ranking,
    time_to_target,
    tuning,
)
from reports.sections.section import Results, Section

# Parts on how runs went, closed at first where there are many strategies
FOLDED = ("fairness", "staleness", "participation", "phases", "errors", "cost", "strategies")
MOST_SCENARIOS = 6  # below one another; of more, the reader picks one
TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("tables.js", "page.js")  # the first has no need of the other

# The page from top to bottom; a new part is a function of `sections/`, and its name here.
SECTIONS: tuple[Callable[[Results], Section | None], ...] = (
    overview.leaders,
    ranking.section,
    ranking.behind_the_best,
    curves.section,
    time_to_target.section,
    heatmap.section,
    clients.fairness,
    clients.staleness,
    clients.participation,
    clients.phases,
    errors.section,
    cost.section,
    tuning.section,
    provenance.strategies,
    provenance.errata,
    provenance.section,
)
OF_A_CAMPAIGN: tuple[Callable[[Results], Section | None], ...] = (tuning.section, provenance.section)


def write_page(tracking_uri: str, suite: str, path: Path) -> Path:
    """Write the page of a suite to `path`. Raises UserError if MLflow cannot be read."""
    return write(load(tracking_uri, suite), path)


def write(suite: RecordedSuite, path: Path, more: Sequence[Section] = ()) -> Path:
    """Write the page of a loaded suite atomically, `more` parts first, and return the path.

    Where files of runs are gone, an existing page that shows more runs is kept, and the new one is written as
    `NAME-incomplete.html`.
    """
    if (suite.unread or suite.damaged) and _runs_on(path) > suite.shown:
        path = path.with_name(f"{path.stem}-incomplete{path.suffix}")
    with whole(path) as partial:
        partial.write_text(render(suite, more), encoding="utf-8")
    return path


def _runs_on(page: Path) -> float:
    """Return the number of runs on a page; ∞ for a page that does not state it, 0 without a page."""
    if not page.is_file():
        return 0
    text = page.read_text(encoding="utf-8", errors="replace")
    match = re.search(r'<meta name="asyncfl-runs" content="(\d+)">', text)
    return int(match[1]) if match else inf


def render(suite: RecordedSuite, more: Sequence[Section] = ()) -> str:
    """Return the page as text; equal records give equal text."""
    results = Results.of(suite)
    labels = [scenario.label for scenario in results.scenarios]
    grey = [(at, name) for name, at in results.index.items() if look.quiet(at)]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            suite=suite,
            what=overview.what_ran(suite) if suite.runs else overview.what_was_tuned(suite),
            headline=overview.headline(results),
            tested=overview.how_tested(results),
            separation=list(filter(None, (overview.how_sure(results), overview.what_is_open(results)))),
            remarks=overview.remarks(suite),
            sections=[*more, *sections(results)],
            own=suite.highlight,
            settings=results.index if suite.runs else {},
            grey=grey,
            folded=FOLDED if len(results.index) > look.MOST_COLOURED else (),
            picked=list(enumerate(labels, 1)) if len(labels) > MOST_SCENARIOS else [],
        )
    )


def write_files(suite: RecordedSuite, folder: Path) -> list[Path]:
    """Write the figures and tables of the page into a folder and return the paths. Raises OSError."""
    return files.write_files(sections(Results.of(suite)), folder)


def sections(results: Results) -> list[Section]:
    """Return the non-empty parts of the page; only tuning and provenance for a campaign without runs."""
    builders = SECTIONS if results.suite.runs else OF_A_CAMPAIGN if results.suite.studies else ()
    return [part for section in builders if (part := section(results)) is not None]


def warm_up() -> None:
    """Import Matplotlib and compile the template of the page ahead of use."""
    importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib.backends.backend_svg")
    environment().get_template("page.html.j2")


def unbroken(text: str) -> str:
    """Return a text with no-break spaces between numbers and signs of per cent or multiplication."""
    return re.sub(r"(?<=\d) (?=[%×])|(?<=×) (?=\d)", "\N{NO-BREAK SPACE}", text)


@functools.cache
def environment() -> Environment:
    """Return the templates, with the style sheet, script and colours common to all pages."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = unbroken
    environment.globals |= {
        "swatch": look.swatch,
        "QUIET": look.QUIET,
        "theme": look.theme(),
        "style": Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        "script": Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)),
        "many": many,
    }
    return environment
