"""Verdicts as Markdown: counts for the README, docs/claims*.md, and docs/claims/PAPER.md for each paper.

`asyncfl claims --markdown` calls `write`. To change a page, edit this module, its templates or the entries.

Fixed: the pages, byte for byte, until `tox run -e reproduce -- --write` writes all of them anew.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

from benchmarks.claims import register, stored_numbers
from benchmarks.claims.claim import SCALES, Band, Claim, Evidence, Need
from benchmarks.claims.files import Paper
from benchmarks.claims.kinds import Better, Contrast, Rank, Ratio, Same, Theorem, Value
from benchmarks.claims.stored_numbers import RESULTS
from reports import numbers
from reports.claims import false_verdicts, main_results_figure, matrix, workloads
from reports.claims.main_results import Outcome, outcomes
from reports.claims.readings import THEOREM, Reading, by_scale
from reports.claims.verdict_text import MEANS, arranged, interval, number, ranked, remarks, sides, worded
from reports.claims.verdicts import DECIDED, Verdict, flat, paired
from reports.statistical_inference import ERROR, paired_effect
from reports.tables import markdown, markdown_templates

KINDS: dict[Evidence, str] = {
    "experiment": "Further experiments",
    "statement": "Further printed numbers and theorems that could have failed",
    "bound": "Further proven bounds, seen to hold",
}
HEADER = ("Claim", "Verdict", "Claimed", "Found", "Seeds", "Arrangement")
UNTRACED = "†"  # mark of readings with numbers from an unknown commit
GENERATED = "`asyncfl claims --markdown docs` makes this page from stored numbers."
COSTS = """\
The times are rough estimates for a GPU with 10 TFLOP/s.
Small networks and recurrent networks use only a part of this.
Every other experiment takes at most an evening on two cores.
"""
PAGES = ("claims.md", "claims-rules.md", "claims-changes.md")  # of all papers, each with a template


def readme(readings: Sequence[Reading]) -> str:
    """Return the summary and a table of main results, counted by paper and outcome."""
    results = outcomes(readings)
    words = [word for word in matrix.OUTCOMES if any(outcome.word == word for outcome in results)]
    rows = []
    for mine in matrix.by_paper(results):
        counts = Counter(outcome.word for outcome in mine)
        paper = f"[{mine[0].paper.title}](docs/claims/{mine[0].paper.name}.md)"
        on_paper = sum("paper's workload" in outcome.scopes for outcome in mine)
        rows.append((paper, *(str(counts[word] or "") for word in words), f"{on_paper} of {len(mine)}"))
    header = ("Paper", *(f"{matrix.OUTCOMES[word]}\xa0{word}" for word in words), "on the paper's workload")
    return _joined([matrix.summary(results), _table(header, rows)])


def pages(readings: Sequence[Reading], results: Path = RESULTS) -> dict[str, str]:
    """Return path → text of `PAGES`, the figure claims.svg, and claims/PAPER.md for each paper."""
    papers = {reading.paper.name: reading.paper for reading in readings}
    all_results = outcomes(readings)
    decisions = [decision for paper in papers.values() for decision in register.decisions(paper, results)]
    values = {
        "generated": GENERATED,
        "costs": COSTS,
        "summary": matrix.summary(all_results),
        "bases": list(workloads.groups(all_results)),
        "missing": workloads.missing(all_results),
        "divided": [outcome for outcome in all_results if matrix.where(outcome)],
        "matrices": [_matrix(mine, _page_name(mine[0])) for mine in matrix.by_paper(all_results)],
        "rate": _rate(results),
        "numbers": _provenance(papers.values(), results),
        "decisions": sorted(decisions, key=lambda decision: decision.date, reverse=True),
        "link": lambda outcome: _link(outcome, _page_name(outcome)),
        "where": matrix.where,
    }
    templates = markdown_templates(Path(__file__).parent / "templates")
    return {
        **{page: templates.get_template(f"{page}.j2").render(values) for page in PAGES},
        "claims.svg": main_results_figure.file(all_results),
        **{f"claims/{name}.md": _page(paper, readings) for name, paper in papers.items()},
    }


def write(readings: Sequence[Reading], folder: Path, results: Path = RESULTS) -> list[Path]:
    """Write all pages into a folder and return the paths; raises OSError."""
    texts = {folder / name: text for name, text in pages(readings, results).items()}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _matrix(mine: Sequence[Outcome], page: str = "") -> str:
    """Return a table of a paper's main results, with readings by arrangement and workload."""
    columns = matrix.columns(mine)
    rows = []
    for outcome in mine:
        cells = (matrix.cell(outcome, column) for column in columns)
        counts = (f"{matrix.bar(cell)}\xa0{matrix.count(cell)}" if cell else "" for cell in cells)
        price = f": {matrix.cost(outcome)}" if outcome.word == "not run" else ""
        rows.append((_link(outcome, page), matrix.short(outcome) + price, *counts))
    return _table((mine[0].paper.title, "Outcome", *map(matrix.title, columns)), rows)


def _page_name(outcome: Outcome) -> str:
    return f"claims/{outcome.paper.name}.md"


def _link(outcome: Outcome, page: str) -> str:
    """Return a link to the heading of a main result; the words of the heading make the anchor."""
    anchor = re.sub(r"[^\w\- ]", "", _heading(outcome).lower()).replace(" ", "-")
    return f"[{outcome.result.words}]({page}#{anchor})"


def _heading(outcome: Outcome) -> str:
    """Return the words of a main result with 2 for ², since some sites drop raised digits from anchors."""
    return outcome.result.words.replace("²", "2")


def _rate(results: Path) -> dict[str, object]:
    """Return the values of the template on false verdicts in simulated campaigns; none without simulations.

    `rows` of the list of claims were simulated, a row in so many `campaigns`. `rate` [%] is the mean share of
    campaigns with a false verdict, `worst` has the rows above 5 %, and `luck` is the number of false
    campaigns that a row with a true rate of 5 % stays within with probability 95 %.
    """
    rates = false_verdicts.stored(results)
    if not rates:
        return {}
    campaigns = rates[0].campaigns
    worst = [rate for rate in sorted(rates, key=lambda rate: -rate.share) if rate.share > ERROR]
    return {
        "rows": len(rates),
        "campaigns": campaigns,
        "rate": f"{100 * sum(rate.share for rate in rates) / len(rates):.1f}",
        "worst": [(rate.row, rate.paper, rate.scale, f"{100 * rate.share:.0f} %") for rate in worst],
        "luck": int(binom.ppf(0.95, campaigns, ERROR)),
    }


def _provenance(papers: Iterable[Paper], results: Path) -> dict[str, object]:
    """Return counts of stored numbers, in all and traceable to a commit; empty without numbers."""
    files = (stored_numbers.path(paper.name, scale, results) for paper in papers for scale in SCALES)
    stored = [number for file in files for number in stored_numbers.read(file)]
    if not stored:
        return {}
    traced = sum(stored_numbers.traceable(number.origin) for number in stored)
    lost = stored_numbers.LOST_COMMITS
    commits = [{name.removesuffix("+") for name in stored_numbers.commits(n.origin)} for n in stored]
    recent = [number for number in stored if number.when >= stored_numbers.TRACED_SINCE]
    return {
        "traced": f"{traced:,}",
        "all": f"{len(stored):,}",
        "share": f"{100 * traced / len(stored):.0f}",
        "mark": UNTRACED,
        "since": stored_numbers.TRACED_SINCE[:10],
        "lost": f"{sum(bool(named & lost) for named in commits):,}",
        "commits": len(lost),
        "recent": f"{len(recent):,}",
        "undigested": f"{sum(' data ' not in number.origin for number in recent):,}",
    }


def _page(paper: Paper, readings: Iterable[Reading]) -> str:
    """Return the page of a paper: main results with readings, other judged entries, entries not run."""
    mine = [reading for reading in readings if reading.paper.name == paper.name]
    results = outcomes(mine)
    parts = [
        f"# {paper.title}",
        f"{GENERATED} [How to read it](../claims-rules.md).",
        *([_matrix(results)] if results else []),
        "\n".join(f"- **{term}**: {meaning}" for term, meaning in paper.terms.items()),
    ]
    for outcome in results:
        parts += [
            f"## {_heading(outcome)}",
            f"**{outcome.word}**{matrix.scoped(outcome)}. {outcome.result.place}.",
        ]
        parts += [matrix.sentence(outcome), *_entries(outcome.readings)]
    covered = {(reading.claim.id, reading.scale) for outcome in results for reading in outcome.readings}
    for evidence, heading in KINDS.items():
        rest = [reading for reading in mine if _shown(reading) and reading.claim.evidence == evidence]
        if rest := [reading for reading in rest if (reading.claim.id, reading.scale) not in covered]:
            parts += [f"## {heading}", *_entries(rest)]
    if lines_left_out := list(_left_out(mine)):
        parts += ["## Not run", COSTS, "\n".join(lines_left_out)]
    return _joined(parts)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _entries(entries: Sequence[Reading]) -> Iterator[str]:
    """Yield a table of the entries with numbers, and numbered notes below, each note once."""
    with_numbers = [reading for reading in entries if _shown(reading)]
    if not (entries := [*ranked(with_numbers), *(reading for reading in with_numbers if not reading.ran)]):
        return
    texts = (text for reading in entries for text in (reading.claim.note, _reason(reading)) if text)
    notes = {text: f"(note {number})" for number, text in enumerate(dict.fromkeys(texts), start=1)}
    yield _table(HEADER, [_row(reading, notes) for reading in entries])
    if notes:
        yield "\n".join(f"{number}. {text}" for number, text in enumerate(notes, start=1))


def _shown(reading: Reading) -> bool:
    """Return whether a reading has a verdict, or at least numbers: fewer seeds than a first look needs."""
    return reading.ran or reading.verdict.seeds > 0


def _reason(reading: Reading) -> str:
    """Return the observation on a refuted claim, or the reason for no verdict or no effect."""
    if reading.word == "refuted":
        return reading.claim.seen
    return "; ".join(reading.verdict.remarks) if reading.word in {"no effect", "reported"} else ""


def _row(reading: Reading, notes: Mapping[str, str]) -> tuple[str, ...]:
    """Return a reading as cells under `HEADER`."""
    claim, verdict, ran_on = reading.claim, reading.verdict, workloads.ran_on(reading)
    place = ": ".join(filter(None, (f"{reading.scale} scale", ran_on))) if claim.needs_runs else f"`{ran_on}`"
    statement = " ".join(filter(None, (claim.statement, notes.get(claim.note))))
    return (
        f"{statement} <br>`{claim.id}` · {claim.place}",
        _said(reading, notes),
        _claimed(claim),
        " <br>".join(
            filter(
                None,
                (
                    f"{_found(claim, verdict)} {interval(verdict)}".strip(),
                    sides(verdict),
                    _of_all_seeds(reading),
                ),
            )
        ),
        f"{verdict.seeds or ''}{'' if reading.traced else UNTRACED}",
        f"{arranged(reading)}, {place}",
    )


def _of_all_seeds(reading: Reading) -> str:
    """Return the 95 % estimate over all stored seeds of a comparison decided at an earlier look."""
    claim, verdict = reading.claim, reading.verdict
    if not isinstance(claim, Better) or verdict.word not in DECIDED:
        return ""
    seeds, (a, b) = paired(claim, reading.values)
    values = claim.sign * (a - b)
    if len(seeds) <= verdict.seeds or not np.isfinite(values).all():
        return ""
    effect = paired_effect(values)
    interval_text = numbers.interval(effect.low, effect.high, partial(numbers.number, digits=3))
    return f"all {len(seeds)} seeds: {numbers.number(effect.mean, 3)} {interval_text}"


def _claimed(claim: Claim) -> str:
    """Return the statement in terms of the rule, for example a band for the number found."""
    match claim:
        case Theorem() if claim.band is None:
            condition = _printed(claim)
        case Value() if claim.printed is not None:
            condition = f"printed {claim.printed} ± {numbers.short(claim.allowed)}"
        case Same():
            condition = f"A − B within ± {numbers.short(claim.allowed)}"
        case Better():
            condition = f"A ahead of B{_margin(claim.margin)}"
        case Rank():
            condition = f"ρ ≥ {numbers.short(claim.at_least)}"
        case Ratio():
            condition = f"ratio{' of spreads' if claim.of == 'spread' else ''} {_band(claim.band)}"
        case Contrast():
            condition = f"{'in logarithms ' if claim.log else ''}{_band(claim.band)}{_margin(claim.margin)}"
        case _:
            condition = _band(claim.holds) if claim.holds else ""
    return condition


def _printed(claim: Theorem) -> str:
    """Return the printed result of a theorem: a truth, a number, or how many numbers."""
    if isinstance(claim.printed, str):
        return f"printed {claim.printed}"
    if isinstance(claim.printed, bool):
        return "true" if claim.printed else "false"
    values = flat(claim.printed)
    if len(values) == 1:
        return f"= {numbers.short(*values.values())}"
    return f"{len(values)} numbers"


def _band(band: Band) -> str:
    """Return a band in words; an open end is None."""
    low, high = band
    if low is None or high is None:
        return f"below {numbers.short(high)}" if high is not None else f"above {numbers.short(low or 0.0)}"
    return f"{numbers.short(low)} to {numbers.short(high)}"


def _margin(margin: float | None) -> str:
    return "" if margin is None else f", margin {numbers.short(margin)}"


def _found(claim: Claim, verdict: Verdict) -> str:
    """Return the number found as text; for theorems with exact values, also true, false or equal."""
    if isinstance(claim, Theorem) and isinstance(claim.printed, bool):
        return str(bool(verdict.found)).lower()
    exact = isinstance(claim, Theorem) and claim.band is None and not isinstance(claim.printed, str)
    if exact and verdict.word == "confirmed":
        return "equal"
    return number(verdict)


def _said(reading: Reading, notes: Mapping[str, str]) -> str:
    """Return the verdict in words, with the meaning of a failure, remarks, seeds to decide, and the note."""
    reason = _reason(reading)
    means = MEANS[reading.failure] if reading.word == "refuted" else ""
    more = [remark for remark in remarks(reading.verdict) if remark != reason]
    # A printed number stands under `Claimed`.
    other_remarks = [remark for remark in more if not remark.startswith("printed")]
    sentence = "; ".join(filter(None, (means, *other_remarks)))
    return f"**{_direction(reading)}**{f': {sentence}' if sentence else ''} {notes.get(reason, '')}".strip()


def _direction(reading: Reading) -> str:
    """Return the word of a verdict; for a decided comparison, also ahead or behind."""
    if reading.claim.kind != "better":
        return worded(reading)
    return {"confirmed": "confirmed: ahead", "refuted": "refuted: behind"}.get(reading.word, worded(reading))


def _left_out(readings: Iterable[Reading]) -> Iterator[str]:
    """Yield the entries not run, by scale, need and row."""
    for group in by_scale(readings):
        waiting: dict[Need | None, Counter[str]] = {}
        for reading in group:
            if not reading.ran:
                waiting.setdefault(reading.needs, Counter())[reading.claim.row] += 1
        place = "theorems" if group[0].scale == THEOREM else f"{group[0].scale} scale"
        for needs, rows in waiting.items():
            entries = ", ".join(f"{row} ({n})" for row, n in rows.items())
            yield f"- {place}{f'. {needs}' if needs else ''}. Entries: {entries}."


def _table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return markdown(header, escaped, text_columns=len(header))
