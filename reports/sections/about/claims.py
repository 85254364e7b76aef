"""Claims: a paper's statements and their verdicts, on the page of the runs that they needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.sections.section import Results, Section

if TYPE_CHECKING:
    from reports.claims.stored import Judged

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
    from reports.claims.stored import Judged, judged

    name, _, scale = suite.removeprefix(PREFIX).rpartition("-")
    if not (paper := papers().get(name)):
        return None
    found = [Judged(paper, at, judged(paper, at)) for at in (scale, COMPUTED)]
    blocks = [{"title": _title(one), "lines": _lines(one)} for one in found if one.verdicts]
    return Section("claims", "Claims", "claims.html.j2", NOTE, {"blocks": blocks}) if blocks else None


def _title(one: Judged) -> str:
    """Their kind, and how many have each verdict."""
    from benchmarks.claims.kept import COMPUTED
    from reports.claims.table import WORDS

    what = "Computed without training" if one.scale == COMPUTED else f"Scale {one.scale}"
    return f"{what}: {', '.join(f'{one.counts[word]} {word}' for word in WORDS if one.counts[word])}"


def _lines(one: Judged) -> list[dict[str, object]]:
    """The claims, those with a verdict first."""
    from reports.claims.table import WORDS, line

    ranked = sorted(one.verdicts.items(), key=lambda item: WORDS.index(item[1].word))
    claims = one.paper.claims
    return [
        {
            "claim": claims[id_],
            "needs": one.paper.needs(claims[id_], one.scale),
            "texts": line(claims[id_], one.refutation(id_), verdict),
            "value": verdict.found,
            "word": verdict.word,
        }
        for id_, verdict in ranked
    ]
