"""Claims: a paper's statements and their verdicts, on the page of the runs that they needed."""

from benchmarks.claims.files import papers
from benchmarks.claims.kept import RESULTS
from fl_core.schema import CLAIMS
from reports.claims.blocks import blocks
from reports.claims.html import template
from reports.claims.readings import THEOREM, readings
from reports.sections.section import Section

NOTE = (
    "Verdicts from paired differences over seeds: each look spends a share of 5 % of error, and the tests of "
    "a row share it (Holm). What a refutation means stands beside it. "
    "All numbers: asyncfl claims show ID."
)


def sections(suite: str) -> list[Section]:
    """Return the verdicts of a paper at the scale of a page, and its theorems.

    None for any other suite, and where the package has no stored numbers, as from a wheel.
    """
    name, _, scale = suite.removeprefix(CLAIMS).rpartition("-")
    if not suite.startswith(CLAIMS) or not RESULTS.is_dir() or not (paper := papers().get(name)):
        return []
    shown = blocks([reading for at in (scale, THEOREM) for reading in readings(paper, at)])
    return (
        [Section("claims", "Claims", template("section.html.j2"), NOTE, {"blocks": shown})] if shown else []
    )
