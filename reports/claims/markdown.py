"""Verdicts as Markdown: a few lines for the README, and all of them for docs/claims.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.claims.claim import Claim, Exact, Report, Value
from benchmarks.claims.kept import COMPUTED
from reports.claims.rules import Verdict, Word
from reports.claims.stored import Judged, standings
from reports.claims.table import ARRANGED, MEANS, besides, interval, line, summary, tested

PAGE = "docs/claims.md"
# What matters comes first.
ORDER: tuple[Word, ...] = ("refuted", "confirmed", "equal", "no effect", "undecided", "reported")
PARTS = {
    "counted": "For or against the paper",
    "apart": "What if: other arrangements, outside its conditions, underspecified",
    "ours": "Our own readings",
}
HOW = """\
# What the papers claim, and what came of it

Made by `asyncfl claims --markdown docs` from the numbers in `benchmarks/claims/results/`; nothing here is
written by hand.

## How a verdict is made

- Every entry fixes scenario, comparison and margin before its seeds are drawn. Its **arrangement** says
  whose experiment it is: as the paper says, as its published code does, or our variant. Only the first
  counts, and the second where no entry of the row follows the text. What the paper does not state itself is
  *our reading* and counts neither for nor against it.
- Runs are paired: in one scenario and seed all methods meet the same data, first model, job lengths and
  mini-batches.
- *A better than B*: ahead **holds**, behind **fails**; **equal** where the difference is certainly smaller
  than the margin that the entry names; **no effect** where it is exactly 0 in every seed. *A like B*:
  inside the margin, or outside.
- *A printed number* is held against the interval in which the mean of as many runs as the paper made is to
  be expected (one where it does not say), and against its rounding. What needs no training is computed:
  equal to nine digits, or not.
- Seeds grow by a plan, mostly 8, 16, 32, 64. Each look spends its share of 5 % of error, and the tests of a
  row share it (Holm; as Shaffer has it where a comparison has two hypotheses). Intervals are at the level
  of their look. Under the whole procedure a row holds a false verdict in fewer than 5 % of 8,000 simulated
  campaigns (`tests/reports/test_looks.py`).
- A refutation **contradicts the paper** only if the arrangement is the paper's and lies within its
  conditions.
- *Small* scale is what two cores can do; *paper* is as large as in the paper. Each has verdicts of its own.
- The margins of comparisons came with these rules, when some entries had their first 5 to 24 seeds; they are
  one for each metric (a point of accuracy, 0.01 of a loss), whatever those seeds say.

To object: `asyncfl claims show ID` shows every seed's number and its runs, `asyncfl claims run --id ID`
makes them again; send us the scenario that does your claim justice.
"""


def readme(found: Sequence[Judged]) -> str:
    """A table of the papers, and one sentence."""
    there = standings(found)
    head = ("Paper", "holds", "fails", "no difference", "undecided", "not tested")
    rows = [row[:-1] for row in summary(there)]
    return f"{_table(head, rows)}\n\n{tested(there)} Each with its reasons: [{PAGE}]({PAGE}).\n"


def docs(found: Sequence[Judged]) -> str:
    """How a verdict is made, and every verdict: paper by paper, scale by scale."""
    titles = dict.fromkeys(one.paper.title for one in found)
    parts = [HOW, "## Summary", readme(found).rpartition(" Each with")[0]]
    for title in titles:
        parts.append(f"## {title}")
        for one in found:
            if one.paper.title == title and one.ran:
                parts += [f"### {title}: {_named(one.scale)}", *_of_scale(one)]
        parts += _left_out(one for one in found if one.paper.title == title)
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _named(scale: str) -> str:
    return "computed without training" if scale == COMPUTED else f"scale {scale}"


def _of_scale(one: Judged) -> Iterator[str]:
    """A table for each kind of entry."""
    for part, title in PARTS.items():
        ids = [
            id_
            for id_, verdict in one.verdicts.items()
            if verdict.word != "not run" and _part(one, id_) == part
        ]
        if ids:
            counts = Counter(one.verdicts[id_].word for id_ in ids)
            yield f"**{title}**: {', '.join(f'{counts[word]} {word}' for word in ORDER if counts[word])}."
            ids.sort(key=lambda id_: ORDER.index(one.verdicts[id_].word))
            rows = [_row(one, id_) for id_ in ids]
            yield _table(("Claim", "Arrangement", "Verdict", "Found", "Seeds"), rows)


def _part(one: Judged, id_: str) -> str:
    refutation = one.refutation(id_)
    return {"contradicts": "counted", "ours": "ours"}.get(refutation, "apart")


def _row(one: Judged, id_: str) -> tuple[str, ...]:
    claim, verdict = one.paper.claims[id_], one.verdicts[id_]
    *_, found, _, seeds, _ = line(claim, one.refutation(id_), verdict)
    place = f"{claim.statement} <br>`{id_}` · {claim.place}"
    return place, _arranged(claim, one.scale), _word(one, id_), f"{found} {interval(verdict)}".strip(), seeds


def _arranged(claim: Claim, scale: str) -> str:
    return "" if claim.computed else ARRANGED[claim.arranged(scale)]


def _word(one: Judged, id_: str) -> str:
    """The verdict in words, the meaning of a refutation, and what was observed."""
    claim, verdict = one.paper.claims[id_], one.verdicts[id_]
    means = MEANS[one.refutation(id_)] if verdict.word == "refuted" else ""
    seen = claim.seen if verdict.word == "refuted" else ""
    remarks = "; ".join(filter(None, (means, besides(verdict), seen.rstrip("."))))
    return f"**{_direction(claim, verdict)}**{f': {remarks}' if remarks else ''}"


def _direction(claim: Claim, verdict: Verdict) -> str:
    """Confirmed, or refuted; of a comparison, who is ahead."""
    if isinstance(claim, Exact | Value | Report) or claim.kind != "better":
        return verdict.word
    return {"confirmed": "confirmed: ahead", "refuted": "refuted: behind"}.get(verdict.word, verdict.word)


def _left_out(found: Iterable[Judged]) -> Iterator[str]:
    """The number of entries not run, by row."""
    for one in found:
        rows = Counter(
            one.paper.claims[id_].row for id_, verdict in one.verdicts.items() if verdict.word == "not run"
        )
        if rows:
            each = ", ".join(f"{row} ({n})" for row, n in rows.items())
            yield f"Not run at {_named(one.scale)}: {each}."


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [header, ["---"] * len(tuple(header)), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)
