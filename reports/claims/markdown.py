"""Verdicts as Markdown: a table for the README, docs/claims.md, and a page for each paper beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.claims.claim import Band, Better, Claim, Contrast, Exact, Rank, Ratio, Same, Value
from benchmarks.claims.files import Paper
from benchmarks.claims.kept import COMPUTED
from fl_core.words import many
from reports import numbers
from reports.claims.rules import Verdict, Word, flat
from reports.claims.stored import Judged, Standing, standings
from reports.claims.table import ARRANGED, MEANS, besides, interval, summary, tested

PAGE = "docs/claims.md"
MADE = "Made by `asyncfl claims --markdown docs`"
# What matters comes first: within a table, and the tables of a page.
ORDER: tuple[Word, ...] = ("refuted", "confirmed", "equal", "no effect", "undecided", "reported")
SECTIONS = {
    "fails": "Fails: contradicts the paper",
    "holds": "Holds",
    "no difference": "No difference",
    "undecided": "Undecided",
    "what if": "What if: other arrangements, outside its conditions, underspecified",
    "smaller": "At a smaller scale, too",
    "ours": "Our own readings",
    "reported": "Reported, without a verdict",
}
COUNTED: dict[Word, str] = {"refuted": "fails", "equal": "no difference", "no effect": "no difference"}
HEADER = ("Claim", "Verdict", "Claimed", "Found", "Seeds", "Arrangement")
HOW = """\
## How a verdict is made

- Every entry fixes scenario, comparison and margin before its seeds are drawn. Its **arrangement** says
  whose experiment it is: as the paper says, as its published code does, or our variant. Only the first
  counts, and the second where no entry of the row follows the text. What the paper does not state itself is
  *our reading* and counts neither for nor against it.
- Runs are paired: in one scenario and seed all methods meet the same data, first model, job lengths and
  mini-batches.
- *A better than B*: ahead **holds**, behind **fails**; **equal** where the difference is certainly smaller
  than the margin that the entry names; **no effect** where it is exactly 0 in every seed. Ahead and behind
  take precedence over equal: a difference may be certain and small; its interval says how small.
  *A like B*: inside the margin, or outside.
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

## How to object

`asyncfl claims show ID` shows every seed's number and its runs, `asyncfl claims run --id ID` makes them
again; send us the scenario that does your claim justice. `asyncfl claims --html FILE` writes all verdicts as
one page, with forest plots and filters.
"""


def readme(found: Sequence[Judged]) -> str:
    """A table of the papers, and one sentence."""
    return f"{_overview(found, 'docs/claims')} Each with its reasons: [{PAGE}]({PAGE}).\n"


def pages(found: Sequence[Judged]) -> dict[str, str]:
    """claims.md and claims/PAPER.md: path → text."""
    first = f"""\
# What the papers claim, and what came of it

{MADE} from the numbers in `benchmarks/claims/results/`; nothing here is
written by hand. Each paper has a page with all its verdicts.

{_overview(found, "claims")}

{HOW}"""
    papers = {f"claims/{one.paper.name}.md": _page(one, found) for one in standings(found)}
    return {"claims.md": first, **papers}


def write(found: Sequence[Judged], folder: Path) -> list[Path]:
    """Write the pages there. Returns their paths; raises OSError."""
    texts = {folder / name: text for name, text in pages(found).items()}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _overview(found: Sequence[Judged], folder: str) -> str:
    """A line for each paper, which leads to its page in that folder; how many claims were tested."""
    there = standings(found)
    head = ("Paper", "holds", "fails", "no difference", "undecided", "not tested")
    rows = [
        (f"[{title}]({folder}/{one.paper.name}.md)", *counts)
        for one, (title, *counts, _) in zip(there, summary(there), strict=True)
    ]
    return f"{_table(head, rows)}\n\n{tested(there)}"


def _page(standing: Standing, found: Iterable[Judged]) -> str:
    """All verdicts on a paper, what counts first."""
    mine = [one for one in found if one.paper.name == standing.paper.name]
    sections: dict[str, list[tuple[Judged, str]]] = {name: [] for name in SECTIONS}
    for one in mine:
        for id_, verdict in one.verdicts.items():
            if verdict.word != "not run":
                sections[_section(standing, one, id_)].append((one, id_))
    counts = ", ".join(f"{column} {n}" for column, n in standing.counts.items() if n)
    parts = [
        f"# {standing.paper.title}",
        f"{MADE}; nothing here is written by hand. [How a verdict is made](../claims.md).",
        f"Of {many(len(standing.verdicts), 'published claim')}: {counts}.",
    ]
    for name, entries in sections.items():
        if entries:
            entries.sort(key=lambda entry: ORDER.index(entry[0].verdicts[entry[1]].word))
            parts += [f"## {SECTIONS[name]} ({len(entries)})", *_entries(entries)]
    if left := list(_left_out(mine)):
        parts += ["## Not run", "\n".join(left)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _section(standing: Standing, one: Judged, id_: str) -> str:
    word, refutation = one.verdicts[id_].word, one.refutation(id_)
    if word == "reported":
        return "reported"
    if refutation == "ours":
        return "ours"
    if refutation != "contradicts":
        return "what if"
    if standing.where[id_] != one.scale:
        return "smaller"
    return COUNTED.get(word, "holds" if word == "confirmed" else "undecided")


def _entries(entries: Sequence[tuple[Judged, str]]) -> Iterator[str]:
    """A table of entries, and under it what was seen, once for all to which it applies."""
    reasons = list(dict.fromkeys(filter(None, (_reason(one, id_) for one, id_ in entries))))
    notes = {reason: f"(note {number})" for number, reason in enumerate(reasons, start=1)}
    yield _table(HEADER, [_row(one, id_, notes) for one, id_ in entries])
    if reasons:
        yield "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1))


def _reason(one: Judged, id_: str) -> str:
    """What was observed of a refuted claim, or why there is no verdict or no effect."""
    claim, verdict = one.paper.claims[id_], one.verdicts[id_]
    if verdict.word == "refuted":
        return claim.seen
    return verdict.why if verdict.word in {"no effect", "reported"} else ""


def _row(one: Judged, id_: str, notes: Mapping[str, str]) -> tuple[str, ...]:
    claim, verdict = one.paper.claims[id_], one.verdicts[id_]
    return (
        f"{claim.statement} <br>`{id_}` · {claim.place}",
        _said(one, id_, notes),
        _claimed(claim),
        f"{_found(claim, verdict)} {interval(verdict)}".strip(),
        str(verdict.seeds or ""),
        "computed" if claim.computed else f"{ARRANGED[claim.arranged(one.scale)]}, {one.scale} scale",
    )


def _claimed(claim: Claim) -> str:
    """The statement as the rule has it: a band for what is found."""
    match claim:
        case Exact():
            said = _printed(claim)
        case Value() if claim.printed is not None:
            said = f"printed {claim.printed}"
        case Same():
            said = f"A − B within ± {numbers.short(claim.allowed)}"
        case Better():
            said = f"A ahead of B{_margin(claim.margin)}"
        case Rank():
            said = f"ρ ≥ {numbers.short(claim.at_least)}"
        case Ratio():
            said = f"ratio{' of variances' if claim.of == 'variance' else ''} {_band(claim.band)}"
        case Contrast():
            said = f"{'in logarithms ' if claim.log else ''}{_band(claim.band)}{_margin(claim.margin)}"
        case _:
            said = _band(claim.band) if isinstance(claim, Value) and claim.band else ""
    return said


def _printed(claim: Exact) -> str:
    if isinstance(claim.printed, bool):
        return "true" if claim.printed else "false"
    said = flat(claim.printed)
    if len(said) == 1:
        return f"= {claim.printed if isinstance(claim.printed, str) else numbers.short(*said.values())}"
    return f"{len(said)} numbers"


def _band(band: Band) -> str:
    least, most = band
    if least is None or most is None:
        return f"below {numbers.short(most)}" if most is not None else f"above {numbers.short(least or 0.0)}"
    return f"{numbers.short(least)} to {numbers.short(most)}"


def _margin(margin: float | None) -> str:
    return "" if margin is None else f", margin {numbers.short(margin)}"


def _found(claim: Claim, verdict: Verdict) -> str:
    """The number that was found, or in how far what is printed was found."""
    if isinstance(claim, Exact) and isinstance(claim.printed, bool):
        return str(bool(verdict.found)).lower()
    if isinstance(claim, Exact) and verdict.word == "confirmed":
        return "equal"
    return numbers.number(verdict.found, 3) if verdict.found == verdict.found else ""


def _said(one: Judged, id_: str, notes: Mapping[str, str]) -> str:
    """The verdict in words, the meaning of a refutation, how many seeds would decide, and the note."""
    claim, verdict, reason = one.paper.claims[id_], one.verdicts[id_], _reason(one, id_)
    means = MEANS[one.refutation(id_)] if verdict.word == "refuted" else ""
    more = besides(verdict).removeprefix(reason)
    remarks = [means, "" if more.startswith("printed") else more]  # it stands under `Claimed`
    said = "; ".join(filter(None, remarks))
    return f"**{_direction(claim, verdict)}**{f': {said}' if said else ''} {notes.get(reason, '')}".strip()


def _direction(claim: Claim, verdict: Verdict) -> str:
    """Confirmed, or refuted; of a comparison, who is ahead."""
    if claim.kind != "better":
        return verdict.word
    return {"confirmed": "confirmed: ahead", "refuted": "refuted: behind"}.get(verdict.word, verdict.word)


def _left_out(found: Iterable[Judged]) -> Iterator[str]:
    """The entries not run, by scale, by what they need, and by row."""
    for one in found:
        waiting: dict[str, dict[str, int]] = {}
        for id_, verdict in one.verdicts.items():
            if verdict.word == "not run":
                claim = one.paper.claims[id_]
                rows = waiting.setdefault(_needs(one.paper, claim, one.scale), {})
                rows[claim.row] = rows.get(claim.row, 0) + 1
        where = "computed" if one.scale == COMPUTED else f"{one.scale} scale"
        for needs, rows in waiting.items():
            each = ", ".join(f"{row} ({n})" for row, n in rows.items())
            yield f"- {where}{f', which needs {needs}' if needs else ''}: {each}."


def _needs(paper: Paper, claim: Claim, scale: str) -> str:
    return "" if claim.computed else paper.needs(claim, scale)


def _table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)
