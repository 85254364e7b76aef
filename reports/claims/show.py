"""A claim or main result in full, as text: statement, rule, finding, and the number of each seed.

`asyncfl claims show ID` prints it.

Free: output of a command.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.claims import stored_numbers
from benchmarks.claims.claim import Claim, Sample
from benchmarks.claims.files import Paper
from benchmarks.claims.kinds import Theorem
from benchmarks.claims.stored_numbers import Number
from benchmarks.suite.labels import value as written
from benchmarks.terminal_output import entry
from fl_core.text import many
from reports import numbers
from reports.claims.main_results import outcomes
from reports.claims.matrix import scoped, sentence
from reports.claims.readings import Reading, all_of, readings, scales
from reports.claims.verdict_text import ORDER, arranged, besides, interval, line, said
from reports.claims.verdicts import Verdict

SAID = ("higher", "printed", "runs", "band", "margin", "log", "of", "order", "at_least", "arguments", "found")


def of_row(paper: Paper, name: str, folder: Path) -> list[tuple[str, ...]]:
    """Return the claims of a row at all scales, a line of text each, under the scale and `HEADER`."""
    return [
        (reading.scale, *line(reading)) for reading in all_of([paper], folder) if reading.claim.row == name
    ]


def of_result(paper: Paper, name: str, folder: Path) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return sentences on a main result, and lines on all readings, under the scale and `HEADER`."""
    (outcome,) = (outcome for outcome in outcomes(all_of([paper], folder)) if outcome.result.id == name)
    by_word = sorted(outcome.readings, key=lambda reading: ORDER.index(reading.word))
    head = f"{outcome.result.words}: {outcome.word}{scoped(outcome)}"
    texts = [head, f"{paper.title}, {outcome.result.place}. {sentence(outcome)}"]
    return texts, [(reading.scale, *line(reading)) for reading in by_word]


def of_claim(paper: Paper, claim: Claim, folder: Path) -> str:
    """Return all details of a claim at all scales, as text."""
    lines = [f"{claim.id}  {paper.title}, {claim.place}"]
    rules = {key: getattr(claim, key, None) for key in SAID}
    criteria = [
        claim.kind,
        *(f"{key} {written(value)}" for key, value in rules.items() if value not in (None, False, (), {})),
    ]
    rows = {
        "says": claim.statement,
        "judged": ", ".join(criteria),
        "clock": claim.clock or "",
        "rates": claim.rates or "",
        "looks": f"at {', '.join(map(str, claim.plan))} seeds" if claim.needs_runs else "",
        "test": claim.test if isinstance(claim, Theorem) else "",
        "note": claim.note,
        "seen": claim.seen,
    }
    lines += [entry(word, text) for word, text in rows.items() if text]
    lines += [entry(name, _sample(sample)) for name, sample in claim.samples.items()]
    for scale in scales(paper, claim):
        stored = stored_numbers.read(stored_numbers.path(paper.name, scale, folder))
        mine = [number for number in stored if number.claim == claim.id]
        (reading,) = (reading for reading in readings(paper, scale, folder) if reading.claim is claim)
        headline = f"{scale} ({arranged(reading)}): {said(reading)}{_found(reading.verdict)}"
        lines += ["", headline, *_at_scale(reading, mine)]
    return "\n".join(lines)


def _sample(sample: Sample) -> str:
    """Return a sample in words: metric, strategy, scenario, and reduction of the curve."""
    place = ", ".join(f"{key} {written(value)}" for key, value in sample.where.items())
    strategy = written(sample.strategy) if sample.strategy else ""
    reading = (
        "" if sample.along == "last" else sample.along,
        "" if sample.reach is None else f"until {sample.reach:g}",
        f"at {sample.at}",
        f"{sample.over} over points" if sample.over else "",
    )
    reduction = " ".join(filter(None, reading))
    times = "" if sample.times == 1 else f"{numbers.short(sample.times)} × "
    condition = f" ({place})" if place else ""
    return (
        f"{times}{sample.metric} of {strategy or 'the strategy'} in {sample.scenario}{condition}, {reduction}"
    )


def _found(verdict: Verdict) -> str:
    """Return the estimate, the interval at the level of the look, and p, as text."""
    value = "" if verdict.found is None else f" {numbers.number(verdict.found)} {interval(verdict)}".rstrip()
    at = f"the look of {many(verdict.seeds, 'seed')}"
    level = "" if verdict.level is None else f" ({100 * verdict.level:.4g} % at {at})"
    p = "" if verdict.p is None else f"; p {verdict.p:.2g}, {verdict.adjusted:.2g} after Holm"
    return f"{value}{level}{p}"


def _at_scale(reading: Reading, stored: list[Number]) -> Iterator[str]:
    """Yield remarks, needs, and the stored numbers of each seed."""
    if extra := besides(reading.verdict):
        yield entry("besides", extra)
    if reading.needs:
        yield entry("needs", str(reading.needs))
    names = list(dict.fromkeys(number.sample for number in stored))
    by_seed: dict[int, dict[str, Number]] = {}
    for number in stored:
        by_seed.setdefault(number.seed, {})[number.sample] = number
    for seed, row in by_seed.items():
        values = "  ".join(f"{name} {row[name].value:.6g}".strip() for name in names if name in row)
        runs = " ".join(dict.fromkeys(key for number in row.values() for key in number.runs.split()))
        yield f"  seed {seed}: {values}  runs {runs}"
    if stored:
        last = max(stored, key=lambda number: number.when)
        yield f"  {last.when}, {last.origin}"
