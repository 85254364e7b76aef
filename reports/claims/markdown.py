"""Verdicts as Markdown: counts for the README, docs/claims.md, and docs/claims/PAPER.md for each paper."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

from benchmarks.claims import register, stored_numbers
from benchmarks.claims.claim import SCALES, Band, Claim, Evidence, Need
from benchmarks.claims.comparisons import Better, Contrast, Rank, Ratio, Same, Theorem, Value
from benchmarks.claims.files import Paper
from benchmarks.claims.stored_numbers import RESULTS
from fl_core.text import many
from reports import numbers
from reports.claims import basis, matrix, overview, simulated
from reports.claims.basis import RanOn
from reports.claims.main_results import DECIDED, Outcome, outcomes
from reports.claims.readings import THEOREM, Reading, by_scale
from reports.claims.rules import Verdict, flat
from reports.claims.terminal import MEANS, arranged, interval, number, ranked, remarks, sides, worded
from reports.inference import ERROR, paired_effect
from reports.tables import markdown

MADE = "Made by `asyncfl claims --markdown docs`"
KINDS: dict[Evidence, str] = {
    "experiment": "Further experiments",
    "statement": "Further printed numbers and theorems that could have failed",
    "bound": "Further proven bounds, seen to hold",
}
HEADER = ("Claim", "Verdict", "Claimed", "Found", "Seeds", "Arrangement")
WORDS = """\
## The words

A paper's *main result* is tested by *readings*: experiments, printed numbers and theorems. A reading is
*decided* if its test has a clear outcome. The word of a main result follows from its decided readings;
[some readings](#how-to-read-this) are shown and not counted:

| Word | Decided readings that hold |
| --- | --- |
| *holds* | all |
| *mostly holds* | at least 80 % |
| *mixed* | between 20 and 80 % |
| *mostly fails* | at most 20 % |
| *fails* | none |
| *undecided* | none is decided yet |
| *not run* | none has run yet |

If all other readings hold, but every seed of an undecided reading points against the result, the word is
*mostly holds* and not *holds*; likewise *mostly fails* and not *fails*.

A printed table whose own check does not pass (systematic differences, [below](#how-a-verdict-is-made)) is
*mixed* at best.

Beside each word stand the decided readings that hold by *scope*: on *the paper's workload* (its data and
model), on *stand-ins* (other data or a smaller model), and on *toys* (quadratics, and theorems). A failure
contradicts the paper only on the paper's workload, in the paper's experiment, and within its conditions.
*Fails* on a stand-in is a finding about the stand-in.
"""
HOW = """\
## How to read this

- **Arrangement**: whose experiment a reading is. It is *the paper's*, that of *its code* with all defects,
  *an interpretation* where the text leaves the experiment open, or *ours*. If an arrangement is an
  interpretation in one reading, it is so in every reading that uses it.
- **Workload**: the paper's data and model, or a stand-in. On the page of a paper, the column *Arrangement*
  names both.
- **Matrix**: a column is an arrangement and a workload. *2/21* in a cell means that 2 of 21 decided
  readings hold. Squares show the readings
  (if there are more than five, five squares show their shares): 🟩 holds, 🟥 fails, 🟦 no difference, 🟢
  holds in every seed but is not decided yet, 🔴 fails in every seed but is not decided yet, ⬜ undecided, or
  compatible with a printed number but imprecise. The name of a main result leads to all of its readings,
  each with effect and interval.
- **Not counted in the word**, but shown, and counted in the cells: *twins*, which repeat the comparison of
  another reading on the same runs; statements of *ours*; and readings outside the *conditions* under which
  the paper makes its statement. No reading belongs to two main results.
- **Pooled**: the mean effect over clusters, with its interval, and a prediction interval for one more
  cluster. A cluster is an arrangement, a delay or routing, a workload and a scale: the readings of one
  scenario at one scale, on one data set. Clusters are random effects (Paule and Mandel, with the interval of
  Hartung and Knapp). Fewer than three clusters have no interval, and their means are shown. Methods that are
  to lead are pooled apart; times, energies and counts as logarithms of ratios.
- **Found**, on the page of a paper: the advantage of A over B, where A is the method that the statement
  names first. It is positive if A is better, whatever the metric. Below it are the values of A and B: means
  over seeds, or medians where runs collapse. For a claim that is not a comparison, *Found* is our value of
  the number in the column *Claimed*. The level of the interval is that of its look (see below).
- **No interval** is shown if the seeds cannot exclude any value at the level of the look: there is one
  seed, or too few for a sign-flip test; all paired differences are equal; more than half of the differences
  are equal, and at most six are not; or the denominator of a ratio may be 0.
- **Kinds of evidence** are counted apart: experiments; printed numbers and theorems that could have failed;
  and proven bounds that were seen to hold, with the ratio of bound to measured value. A cell of the matrix
  adds up all three kinds. A property of our code alone is a software test, and not a claim of the paper.
- **Failures** have classes: on a stand-in, in another arrangement, outside the paper's conditions,
  underspecified, ours, or a contradiction of the paper. A class explains a failure, and does not hide it.

## How a verdict is made

- Scenario, comparison and margin of every reading are fixed before its seeds are drawn. Later changes are
  listed [below](#changes-after-numbers-were-seen).
- Runs are paired: with the same scenario and seed, all methods get the same data, first model, job lengths
  and mini-batches.
- *A better than B* **holds** if A is ahead, and **fails** if A is behind. They are **equal** if the
  difference is certainly smaller than the margin of the reading, and there is **no effect** if the
  difference is exactly 0 in every seed. If the interval leaves out 0 and also lies inside the margin, the
  verdict is ahead or behind, and not equal. *A like B* holds inside the margin, and fails outside.
- A verdict needs both a t-test and an exact sign-flip test. The t-test is corrected for skewness (Hall); if
  the estimated skewness is less than one half against the finding, one half is taken. The p-value of the
  sign-flip test must be at most 5 %, which needs at least six seeds. If no test decides, but all seeds are
  on one side, the word is *ahead (behind, holds, fails) in k of k seeds*.
- *Where runs collapse*, the sign test decides about the median seed, and there is no verdict on spreads. A
  run collapses if it diverges, never reaches its target, or ends below half of the 75th percentile of its
  method's final accuracies over seeds.
- *A printed number* has a margin: half a point of accuracy, or a quarter of the standard deviation of the
  numbers in its table, whichever is smaller. *A like B* has half a point where the reading names no margin.
  The interval of our mean over all seeds is widened by the noise of the paper's mean, which has as many
  runs as the paper says (one if it does not say), and by rounding. Inside the margin the number **holds**,
  outside it **fails**, otherwise it is *compatible, imprecise*. If the paper has a single run, the number
  fails only if fewer than 2.5 % of our seeds would be as far from our mean.
- A printed *table* **passes** if no cell fails, and if no group of cells with the same value of a condition
  differs on average, significantly and by more than the margin. *Placebos* are the same table with the
  numbers of two neighbouring conditions exchanged. The share of placebos that pass is given: a table whose
  placebos pass says little.
- *A theorem*, or a printed number that needs no training, is decided by a test in `tests/papers/`, whose
  name is given: the value is within its band, or equal to nine digits or to all that are printed.
- *Spreads over seeds* are compared by distances from the median (Brown and Forsythe), *ranks* by all of
  their permutations.
- Seeds are added by a plan, mostly up to 8, 16, 32 and 64. A *look* is a test after such a step. The error
  of 5 % of a line of a plan is split over its looks, and within a look over its tests (Holm; Shaffer where
  a comparison has two hypotheses). An interval has the level of its look.
- *Small* scale is what two cores can do; *paper* is as large as in the paper. Each has its own verdicts.

## How to object

[Your main result reads *mixed* or *fails*](how-to/your-result.md) says how to see every reading, and how to
send yours.
"""
RATE = """\
## How often a verdict is false

This is measured (`asyncfl claims simulate`). For each of {rows} lines of the plans, {campaigns} campaigns
are simulated. A campaign draws seeds from the stored numbers, shifted so that the true effect is 0 or
exactly the margin, and goes through the whole procedure. **{rate:.1f} %** of all campaigns end with a false
verdict; by the t-test alone it was 10 to 15 %. Lines above 5 %: {worst}. If the true rate of a line is 5 %,
up to {luck} of its {campaigns} campaigns are false by chance.
"""
UNTRACED = "†"
PROVENANCE = """\
## Where the numbers come from

{traced:,} of {all:,} stored numbers ({share:.0f} %) come from a commit of the repository without
uncommitted changes. Since {since} only such numbers are stored. {lost:,} numbers name one of {commits}
commits that the repository does not have. The digest of the data stands beside numbers since the commit that
added it: of {recent:,} numbers since {since}, {undigested:,} have none. The mark {mark} beside the seeds of a
reading means that some of its numbers come from elsewhere: they are shown and judged like the others.
`asyncfl claims run --untraceable` runs them again, and new numbers replace them.
"""
CHANGES = """\
## Changes after numbers were seen

Each change of a class, margin, rule or space of an entry after numbers of it were seen
(`benchmarks/claims/decisions/`). An entry that changes without a line here fails a test, by a digest, and so
does a main result to which readings are added, or from which they are taken. Digests begin on 2026-11-23, of
main results on 2026-11-26, and see additions from 2026-11-27; what was changed before was read off the
history of the repository.
"""


BASIS = """\
For each main result, the workload closest to the paper's among its decided readings, and how many of the
readings on that workload hold. Results without a neural network here say nothing about neural networks.
"""
GLANCE = """\
How many main results have a decided reading, and how close to the paper the closest one is. A word without a
neural network says nothing about neural networks:
"""
WITHIN_A_DAY = {"ten minutes", "two hours", "half a day", "17 hours", "a day"}  # of a GPU
COSTS = """\
Rough estimates: the number of gradients times the operations of a gradient, at 60 GFLOP/s a core (measured
with a network of seven layers) and 10 TFLOP/s a GPU (assumed). Each line is a different set of runs.
Results that are not listed need an evening on two cores.
"""


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
    """Return path → text of claims.md, the figure claims.svg, and claims/PAPER.md for each paper."""
    papers = {reading.paper.name: reading.paper for reading in readings}
    all_results = outcomes(readings)
    by_paper = matrix.by_paper(all_results)
    matrices = [_matrix(mine, f"claims/{mine[0].paper.name}.md") for mine in by_paper]
    first = [
        "# What the papers claim, and what came of it",
        f"{MADE} from stored numbers. Each main result leads to all of its readings.",
        matrix.summary(all_results),
        "![Forest plot of all main results: word, share that holds, and pooled effect](claims.svg)",
        *_glance(all_results),
        WORDS,
        *_divided(all_results),
        *_basis(all_results),
        *_other_measures(all_results),
        "## All readings, by arrangement and workload",
        *matrices,
        HOW,
        *_rate(results),
        *_provenance(papers.values(), results),
        *_changes(papers.values(), results),
    ]
    return {
        "claims.md": _joined(first),
        "claims.svg": overview.file(all_results),
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


def _link(outcome: Outcome, page: str) -> str:
    """Return a link to the heading of a main result; the words of the heading make the anchor."""
    anchor = re.sub(r"[^\w\- ]", "", _heading(outcome).lower()).replace(" ", "-")
    return f"[{outcome.result.words}]({page}#{anchor})"


def _heading(outcome: Outcome) -> str:
    """Return the words of a main result with 2 for ², since some sites drop raised digits from anchors."""
    return outcome.result.words.replace("²", "2")


def _divided(results: Sequence[Outcome]) -> Iterator[str]:
    """Yield the section on the conditions under which results hold that neither hold nor fail throughout."""
    rows = [
        (_link(outcome, f"claims/{outcome.paper.name}.md"), outcome.word, condition)
        for outcome in results
        if (condition := matrix.where(outcome))
    ]
    if rows:
        yield f"## Where readings disagree\n\n{_table(('Main result', 'Word', 'Holds where'), rows)}"


def _glance(results: Sequence[Outcome]) -> Iterator[str]:
    """Yield the counts of main results by their closest decided workload, and the gain of a day of a GPU."""
    ran_on = RanOn()
    rows = [(caption, str(len(mine))) for caption, mine in basis.groups(results, ran_on)]
    yield f"{GLANCE}\n{_table(('Closest workload of a decided reading', 'Main results'), rows)}"
    gains = [
        f"{title.partition(' (')[0]}: {need.runs}, about {need.gpu}, {many(len(mine), 'main result')}"
        for title, need, mine in basis.missing(results)
        if need.gpu in WITHIN_A_DAY
    ]
    if gains:
        lines = "\n".join(f"- {gain}" for gain in gains)
        yield f"What a day of one GPU would add, each line by itself:\n\n{lines}"


def _other_measures(results: Sequence[Outcome]) -> Iterator[str]:
    """Yield the section on pooled effects that the figure leaves out, with their measures."""
    rows = [
        (_link(outcome, f"claims/{outcome.paper.name}.md"), outcome.word, matrix.written(part))
        for outcome in results
        for part in outcome.pooled
        if not overview.in_points(part)
    ]
    if rows:
        yield f"## Effects that are not accuracies\n\n{_table(('Main result', 'Word', 'Effect'), rows)}"


def _basis(results: Sequence[Outcome]) -> Iterator[str]:
    """Yield the sections on workloads behind the outcomes, and on readings to be gained with a GPU."""
    rows = [
        (caption, str(len(mine)), "; ".join(map(str, mine)))
        for caption, mine in basis.groups(results, RanOn())
    ]
    header = ("Closest workload", "Results", "Which, and readings that hold there")
    yield f"## Which workloads were run\n\n{BASIS}\n{_table(header, rows)}"
    costs = [
        (title, need.runs, need.gpu, "; ".join(f"{outcome.result.words} ({n})" for outcome, n in mine))
        for title, need, mine in basis.missing(results)
    ]
    if costs:
        needed = ("Paper", "Runs", "On a GPU, about", "Main results, and the readings that they would get")
        yield f"## What a GPU would add\n\n{COSTS}\n{_table(needed, costs)}"


def _rate(results: Path) -> Iterator[str]:
    """Yield the section on the simulated rate of false verdicts, by row."""
    if rates := simulated.stored(results):
        share = 100 * sum(rate.share for rate in rates) / len(rates)
        worst = [rate for rate in sorted(rates, key=lambda rate: -rate.share) if rate.share > ERROR]
        texts = [f"{rate.row} ({rate.paper}, {rate.scale}) {100 * rate.share:.0f} %" for rate in worst]
        campaigns = rates[0].campaigns
        luck = int(binom.ppf(0.95, campaigns, ERROR))
        lines = ", ".join(texts) or "none"
        yield RATE.format(campaigns=campaigns, rows=len(rates), rate=share, worst=lines, luck=luck)


def _provenance(papers: Iterable[Paper], results: Path) -> Iterator[str]:
    """Yield the section on the share of stored numbers traceable to a commit."""
    files = (stored_numbers.path(paper.name, scale, results) for paper in papers for scale in SCALES)
    stored = [number for file in files for number in stored_numbers.read(file)]
    if stored:
        traced = sum(stored_numbers.traceable(number.origin) for number in stored)
        lost = stored_numbers.LOST_COMMITS
        commits = [{name.removesuffix("+") for name in stored_numbers.commits(n.origin)} for n in stored]
        recent = [number for number in stored if number.when >= stored_numbers.TRACED_SINCE]
        yield PROVENANCE.format(
            traced=traced,
            all=len(stored),
            share=100 * traced / len(stored),
            mark=UNTRACED,
            since=stored_numbers.TRACED_SINCE[:10],
            lost=sum(bool(named & lost) for named in commits),
            commits=len(lost),
            recent=len(recent),
            undigested=sum(" data " not in number.origin for number in recent),
        )


def _changes(papers: Iterable[Paper], results: Path) -> Iterator[str]:
    """Yield the section with the register of decisions, newest first."""
    decisions = [(decision, paper) for paper in papers for decision in register.decisions(paper, results)]
    rows = [
        (entry.date, ", ".join(f"`{id_}`" for id_ in entry.entries), entry.change, entry.known, entry.reason)
        for entry, _ in sorted(decisions, key=lambda pair: pair[0].date, reverse=True)
    ]
    if rows:
        yield f"{CHANGES}\n{_table(('Date', 'Entries', 'Change', 'Outcome known then', 'Reason'), rows)}"


def _page(paper: Paper, readings: Iterable[Reading]) -> str:
    """Return the page of a paper: main results with readings, other judged entries, entries not run."""
    mine = [reading for reading in readings if reading.paper.name == paper.name]
    results = outcomes(mine)
    parts = [
        f"# {paper.title}",
        f"{MADE}; nothing here is written by hand. [How to read it](../claims.md#how-to-read-this).",
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
    shown = [reading for reading in entries if _shown(reading)]
    if not (entries := [*ranked(shown), *(reading for reading in shown if not reading.ran)]):
        return
    texts = (text for reading in entries for text in (reading.claim.note, _reason(reading)) if text)
    notes = {text: f"(note {number})" for number, text in enumerate(dict.fromkeys(texts), start=1)}
    ran_on = RanOn()
    yield _table(HEADER, [_row(reading, notes, ran_on(reading)) for reading in entries])
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


def _row(reading: Reading, notes: Mapping[str, str], ran_on: str) -> tuple[str, ...]:
    claim, verdict = reading.claim, reading.verdict
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
    seeds = sorted(reading.values["a"].keys() & reading.values["b"].keys())
    values = [claim.sign * (reading.values["a"][seed] - reading.values["b"][seed]) for seed in seeds]
    if len(seeds) <= verdict.seeds or not np.isfinite(values).all():
        return ""
    effect = paired_effect(values)
    shown = numbers.interval(effect.low, effect.high, partial(numbers.number, digits=3))
    return f"all {len(seeds)} seeds: {numbers.number(effect.mean, 3)} {shown}"


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
    if isinstance(claim.printed, str):
        return f"printed {claim.printed}"
    if isinstance(claim.printed, bool):
        return "true" if claim.printed else "false"
    values = flat(claim.printed)
    if len(values) == 1:
        return f"= {numbers.short(*values.values())}"
    return f"{len(values)} numbers"


def _band(band: Band) -> str:
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
