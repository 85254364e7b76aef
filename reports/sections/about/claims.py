"""Claims: a paper's statements and their verdicts, on the page of the runs that they needed."""

from __future__ import annotations

from reports.sections.section import Results, Section

PREFIX = "claims-"
NOTE = (
    "Verdicts from paired differences over seeds: each look spends a share of 5 % of error, and the tests of "
    "a row share it (Holm). Refutations that do not contradict the paper are marked. "
    "All numbers: asyncfl claims show ID."
)


def section(results: Results) -> Section | None:
    """The verdicts of a paper at the scale of the page, and of what is computed; None on any other page."""
    suite = results.suite.name
    if not suite.startswith(PREFIX):
        return None
    # Claims import the suites, and with them torch, which no other page needs.
    from benchmarks.claims.files import papers
    from benchmarks.claims.kept import COMPUTED
    from reports.claims.blocks import blocks
    from reports.claims.stored import Judged, judged

    name, _, scale = suite.removeprefix(PREFIX).rpartition("-")
    if not (paper := papers().get(name)):
        return None
    found = blocks([Judged(paper, at, judged(paper, at)) for at in (scale, COMPUTED)])
    return Section("claims", "Claims", "claims.html.j2", NOTE, {"blocks": found}) if found else None
