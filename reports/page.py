"""Report page: a self-contained HTML file with the records of a suite in MLflow.

`asyncfl report` calls `write` for the page, and `write_files` for figures and tables as files.

Fixed: the tag `asyncfl-runs`, which is read from earlier pages. Free: the look.
"""

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
from reports.figures import styles
from reports.records.records import RecordedSuite
from reports.records.suite_reader import load
from reports.sections import (
    clients,
    cost,
    curves,
    error_terms,
    gaps_to_best,
    overview,
    provenance,
    time_to_target,
    tuning,
)
from reports.sections.section import Results, Section
from reports.tables import csv, slug

# Anchors of sections on the course of runs, which are folded if there are many strategies
FOLDED = ("fairness", "staleness", "participation", "phases", "errors", "cost", "strategies")
MOST_SCENARIOS = 6  # shown one below the other; if there are more, the reader picks one
TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 100  # letters of a file's name
SCRIPTS = ("tables.js", "page.js")  # `page.js` calls functions of `tables.js`

# The page from top to bottom; a new part is a function of `sections/`, and its name here.
SECTIONS: tuple[Callable[[Results], Section | None], ...] = (
    overview.leaders,
    gaps_to_best.section,
    gaps_to_best.behind_the_best,
    curves.section,
    time_to_target.section,
    clients.fairness,
    clients.staleness,
    clients.participation,
    clients.phases,
    error_terms.section,
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

    If files of runs are gone, an existing page with more runs is kept, and the new page gets the name
    `NAME-incomplete.html`.
    """
    if (suite.unread or suite.damaged) and _runs_on(path) > suite.shown:
        path = path.with_name(f"{path.stem}-incomplete{path.suffix}")
    with whole(path) as partial:
        partial.write_text(render(suite, more), encoding="utf-8")
    return path


def _runs_on(page: Path) -> float:
    """Return the number of runs on a page: ∞ for a page without this number, 0 without a page."""
    if not page.is_file():
        return 0
    text = page.read_text(encoding="utf-8", errors="replace")
    match = re.search(r'<meta name="asyncfl-runs" content="(\d+)">', text)
    return int(match[1]) if match else inf


def render(suite: RecordedSuite, more: Sequence[Section] = ()) -> str:
    """Return the page as text; equal records give equal text."""
    results = Results.of(suite)
    labels = [scenario.label for scenario in results.scenarios]
    grey = [(at, name) for name, at in results.index.items() if styles.quiet(at)]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            suite=suite,
            what=overview.what_ran(suite) if suite.runs else "",
            headline=overview.headline(results),
            tested=overview.how_tested(results),
            open_question=overview.what_is_open(results),
            remarks=overview.remarks(suite),
            sections=[*more, *sections(results)],
            own=suite.highlight,
            settings=results.index if suite.runs else {},
            grey=grey,
            folded=FOLDED if len(results.index) > styles.MOST_COLOURED else (),
            picked=list(enumerate(labels, 1)) if len(labels) > MOST_SCENARIOS else [],
        )
    )


def write_files(parts: Sequence[Section], folder: Path) -> list[Path]:
    """Write figures and tables for a paper: SVG and PDF, CSV and LaTeX; existing files are replaced.

    Returns the paths. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for part in parts:
        for title, drawing in part.figures:
            path = _free(folder, f"{part.anchor} {title}", ".svg", written)
            for file in (path, path.with_suffix(".pdf")):
                drawing.save(file)
                written.append(file)
        for table in part.tables:
            path = _free(folder, f"{part.anchor} {table.name}", ".csv", written)
            path.write_text(csv(table.numbers), encoding="utf-8")
            written.append(path)
            if table.lines:
                written.append(path.with_suffix(".tex"))
                written[-1].write_text(table.latex(), encoding="utf-8")
    return written


def _free(folder: Path, name: str, suffix: str, taken: Sequence[Path]) -> Path:
    """Return an unused path for a name, with a number if the name is taken."""
    base = slug(name)[:LONGEST].strip("-")
    path, number = folder / f"{base}{suffix}", 2
    while path in taken:
        path, number = folder / f"{base}-{number}{suffix}", number + 1
    return path


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
        "swatch": styles.swatch,
        "QUIET": styles.QUIET,
        "theme": styles.theme(),
        "style": Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        "script": Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)),
        "many": many,
    }
    return environment
