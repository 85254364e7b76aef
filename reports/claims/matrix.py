"""Matrix of main results by arrangement and workload of readings, and summaries in sentences.

The terminal, the pages of claims and the plot of main results take their texts from here.

Fixed: texts that stand on published pages: write these anew after a change.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from math import exp, inf, isfinite, nan
from typing import get_args

from benchmarks.claims.claim import Arrangement, Evidence, Workload
from fl_core.text import many
from reports import numbers
from reports.claims.main_results import MainWord, Outcome, decides, tally, word_of
from reports.claims.pooled_effects import PooledEffect, leader
from reports.claims.printed_tables import PrintedTable, TableCheck, tables
from reports.claims.readings import Reading
from reports.claims.verdict_text import ARRANGED, SAID, measured_quantity, quantity, ranked
from reports.claims.verdicts import OPEN, Word

# Square of a main result's word, the best first.
OUTCOMES: dict[MainWord, str] = {
    "holds": "🟩",
    "mostly holds": "🟩",
    "mixed": "🟨",
    "mostly fails": "🟥",
    "fails": "🟥",
    "undecided": "⬜",
    "not run": "⬜",
}
NEARLY = 1.1  # largest ratio of a placebo's error to the table's own for *fits nearly as well*
LEGEND = "2/21: 2 of 21 decided readings hold with this arrangement; * on a stand-in."
Column = tuple[Arrangement, Workload]
COLUMNS: tuple[Column, ...] = tuple(product(get_args(Arrangement), get_args(Workload)))
MAX_SQUARES = 5  # of a bar
OF = {**{str(name): words for name, words in ARRANGED.items()}, "stand-in": "a stand-in"}
KINDS: dict[Evidence, str] = {"experiment": "experiment", "statement": "tested statement", "bound": "bound"}


def by_paper(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Return main results grouped by paper."""
    return [list(group) for _, group in groupby(outcomes, key=lambda outcome: outcome.paper.name)]


def columns(outcomes: Iterable[Outcome]) -> list[Column]:
    """Return the arrangements and workloads with readings already run."""
    ran = [reading for outcome in outcomes for reading in outcome.readings if reading.ran]
    tried = {(reading.arrangement, reading.workload) for reading in ran}
    return [column for column in COLUMNS if column in tried]


def title(column: Column) -> str:
    """Return the heading of a column."""
    arrangement, workload = column
    return ARRANGED[arrangement] if workload == "paper" else f"{ARRANGED[arrangement]}, stand-in"


def initials(column: Column) -> str:
    """Return the heading of a column as a word, with a star for a stand-in."""
    return f"{column[0]}{'*' if column[1] == 'stand-in' else ''}"


def cell(outcome: Outcome, column: Column) -> list[Reading]:
    """Return the judged readings of a main result with the arrangement and workload of a column."""
    readings = (reading for reading in outcome.readings if (reading.arrangement, reading.workload) == column)
    return ranked(reading for reading in readings if SAID[reading.word].square)


def share(readings: Sequence[Reading]) -> float:
    """Return the share of decided readings holding; NaN without decided readings."""
    holding, decided = tally(readings)
    return holding / decided if decided else nan


def count(readings: Sequence[Reading]) -> str:
    """Return the fraction of decided readings holding, as 2/21; without decided readings, the number open."""
    holding, decided = tally(readings)
    if not decided:
        return f"{len(readings)} open" if readings else "–"
    return f"{holding}/{decided}"


def bar(readings: Sequence[Reading]) -> str:
    """Return a coloured square for each reading; beyond five, shares, with a square for each colour."""
    counts = Counter(SAID[reading.word].square for reading in readings)
    drawn = dict.fromkeys(counts, 1)
    while sum(drawn.values()) < min(MAX_SQUARES, len(readings)):
        drawn[max(counts, key=lambda square: counts[square] / drawn[square])] += 1
    return "".join(square * n for square, n in drawn.items())


def state(readings: Sequence[Reading]) -> str:
    """Return the joint finding of decided readings: `hold`, `fail`, `differ`, or `open` without any."""
    holding, decided = tally(readings)
    if not decided:
        return "open"
    return "hold" if holding == decided else "differ" if holding else "fail"


def summary(results: Sequence[Outcome]) -> str:
    """Return the counts of main results by word, as a single line."""
    words = Counter(outcome.word for outcome in results)
    counts = [f"{word} {words[word]}" for word in OUTCOMES if words[word]]
    return f"{len(results)} main results: {', '.join(counts)}."


def short(outcome: Outcome) -> str:
    """Return the word of a main result after a coloured square, with counts by scope."""
    return "\xa0".join((OUTCOMES[outcome.word], outcome.word)) + scoped(outcome)


def scoped(outcome: Outcome) -> str:
    """Return counts of holding and decided readings by scope, in brackets; empty without decided readings."""
    counts = ", ".join(f"{scope} {held} of {n}" for scope, (held, n) in outcome.scopes.items())
    return f" ({counts})" if counts else ""


def counts(outcome: Outcome) -> str:
    """Return the findings as counts by kind of evidence, in a sentence."""
    parts = [text for evidence in KINDS if (text := _of_kind(outcome, evidence))]
    words = Counter(reading.word for reading in outcome.deciding)
    parts += [f"{words[word]} {SAID[word].long}" for word in OPEN if words[word]]
    if waiting := sum(not reading.ran for reading in outcome.readings):
        parts.append(f"{many(waiting, 'reading')} not run ({cost(outcome)})")
    return _sentence("; ".join(parts))


def cost(outcome: Outcome) -> str:
    """Return the cost of readings not run, with and without a GPU, as text."""
    needs = Counter(reading.needs for reading in outcome.readings if not reading.ran)
    prices = {need: need.cost if need else "an evening of two cores" for need in needs}
    return "; ".join(
        f"{n} of them: {prices[need]}" if len(needs) > 1 else prices[need] for need, n in needs.items()
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def sentence(outcome: Outcome) -> str:
    """Return sentences on conditions, counts, pooled effect, printed tables, and open points."""
    sentences = [where(outcome), counts(outcome), pooled(outcome), aside(outcome)]
    sentences += [text for table in tables(outcome.readings) for text in of_table(table, outcome.paper.words)]
    return " ".join(filter(None, (*sentences, outcome.result.open)))


def where(outcome: Outcome) -> str:
    """Return a sentence on the best dividing condition: values with the result holding, mixed or failing."""
    if outcome.word in {"holds", "fails", "undecided", "not run"}:
        return ""
    if outcome.divide is None:
        return "No recorded condition divides its readings."
    groups: dict[MainWord, list[str]] = {}
    for value, (held, n) in sorted(outcome.divide.counts.items(), key=_rising):
        groups.setdefault(word_of(held, n), []).append(f"{OF.get(value, value)} ({held} of {n})")
    parts = [f"{word} for {', '.join(groups[word])}" for word in OUTCOMES if word in groups]
    if undecided := outcome.undecided(outcome.divide.name):
        open_values = (f"{value} ({many(n, 'reading')})" for value, n in undecided.items())
        parts.append(f"undecided for {', '.join(open_values)}")
    few = " (few readings)" if outcome.divide.few else ""
    return _sentence(f"by {outcome.divide.name}{few}: {'; '.join(parts)}")


def pooled(outcome: Outcome) -> str:
    """Return sentences on the effects pooled over clusters, with interval and prediction interval."""
    several = len(outcome.pooled) > 1
    words = outcome.paper.words
    sentences = []
    for part in outcome.pooled:
        method = leader(part.typical)
        name = f"{words.get(method, method)}: " if several and method else ""
        sentences.append(f"{name}{written(part)}." if name else _sentence(written(part)))
    return " ".join(sentences)


def written(part: PooledEffect) -> str:
    """Return a pooled effect as text, with the measure; logarithms as ratios."""
    write = partial(numbers.number, digits=2)
    means, effect = part.means, part.effect
    scale: Callable[[float], float] = exp if part.log else float
    over = f"over {many(part.readings, 'reading')} of {many(len(means), 'cluster')}, {measured_in(part)}"
    if effect is None:
        values = " and ".join(write(scale(mean)) for mean in means)
        return f"mean{'s' if len(means) > 1 else ''} {over}: {values}, too few clusters to pool"
    interval = numbers.interval(scale(effect.low), scale(effect.high), write)
    low, high = effect.predicted
    predicted = numbers.interval(scale(low), scale(high), write)
    return f"pooled {over}: {write(scale(effect.mean))} {interval}; in one more cluster {predicted}"


def measured_in(part: PooledEffect) -> str:
    """Return the measure of a pooled effect in words."""
    if not part.log:
        return measured_quantity(part.typical)
    amount = quantity(part.typical).removeprefix("log of ")
    ratios = {"better": "B over A", "value": "found over printed"}
    return f"{amount}: {ratios.get(part.typical.kind, 'ratio')}"


def aside(outcome: Outcome) -> str:
    """Return a sentence counting the readings shown but not decisive, by reason."""
    ran = [reading for reading in outcome.readings if reading.ran and not decides(reading)]
    reasons = {
        "twins": [reading for reading in ran if reading.claim.twin],
        "statements of ours": [reading for reading in ran if reading.claim.stated_by == "ours"],
        "outside the paper's conditions": [reading for reading in ran if reading.claim.outside_conditions],
    }
    parts = []
    for reason, mine in reasons.items():
        if mine:
            words = Counter(SAID[reading.word].long or reading.word for reading in mine)
            parts.append(f"{reason}: {', '.join(f'{n} {word}' for word, n in words.items())}")
    return f"Not counted: {'; '.join(parts)}." if parts else ""


def of_table(table: PrintedTable, words: Mapping[str, str]) -> list[str]:
    """Return sentences on a printed table as a whole, systematic differences, and placebos."""
    away = table.difference
    write = partial(numbers.number, digits=2)
    difference = f"{write(away.mean)} {numbers.interval(away.low, away.high, write)}"
    differing = [
        f"{words.get(group.condition, group.condition)} {group.value}: {write(group.difference.mean)}, "
        f"above in {group.above} of {group.difference.n} cells"
        for group in table.own.groups
        if group.differs
    ]
    passing = sum(placebo.passes for placebo in table.placebos)
    parts = [
        f"{words.get(placebo.name, placebo.name)} exchanged: {agreement(placebo)}, {checked(placebo)}"
        for placebo in table.placebos
    ]
    average = f"ours − printed {difference} on average over {table.cells} cells"
    beyond = f"{table.outside} of them beyond 95 % of our runs (a cell holds within ± {table.margin:g})"
    sentences = [
        f"{table.name} against the printed numbers: {agreement(table.own)}, {average}, {beyond}",
        f"{table.name} {'passes' if table.own.passes else 'does not pass'}: {checked(table.own)}",
    ]
    if differing:
        sentences.append(f"Systematic differences: {'; '.join(differing)}")
    if parts:
        sentences.append(f"Placebos that pass: {passing} of {len(parts)} ({'; '.join(parts)})")
    if parts and not table.own.passes:
        closest = min(table.placebos, key=lambda placebo: placebo.error)
        sentences.append("Its own numbers fail too, so that the placebos tell little")
        if closest.error <= NEARLY * table.own.error:
            name = words.get(closest.name, closest.name)
            fits = f"{agreement(closest)}; own numbers: {agreement(table.own)}"
            sentences[-1] += f"; {name} exchanged fits nearly as well ({fits})"
    return [f"{sentence}." for sentence in sentences]


def agreement(check: TableCheck) -> str:
    """Return correlation and root mean square difference of our numbers and the printed numbers, as text."""
    write = partial(numbers.number, digits=2)
    return f"correlation {write(check.correlation)}, root mean square difference {write(check.error)}"


def checked(check: TableCheck) -> str:
    """Return counts of cells by verdict, and of differing groups, for a table or a placebo."""
    words: dict[Word, str] = {"confirmed": "hold", "refuted": "fail", "compatible": "compatible"}
    parts = [f"{check.words[word]} {text}" for word, text in words.items() if check.words.get(word)]
    if differing := sum(group.differs for group in check.groups):
        parts.append(f"{many(differing, 'group')} {'differs' if differing == 1 else 'differ'}")
    return ", ".join(parts)


def _rising(pair: tuple[str, tuple[int, int]]) -> tuple[float, str]:
    """Return a sort key: numbers by size, then words."""
    value = pair[0]
    try:
        return float(value), value
    except ValueError:
        return inf, value


def _of_kind(outcome: Outcome, evidence: Evidence) -> str:
    """Return a text on decided readings of a kind of evidence, the most frequent word first."""
    mine = [reading for reading in outcome.decided if reading.claim.evidence == evidence]
    if not mine:
        return ""
    if evidence == "bound":
        held = [reading.verdict for reading in mine if reading.word == "confirmed"]
        bounds = [nan if verdict.found is None else verdict.found for verdict in held]
        ends = (min(bounds), max(bounds)) if bounds else ()
        slack = [numbers.number(end, 2) for end in ends if isfinite(end)]
        text = f"{len(held)} of {many(len(mine), 'bound')} seen to hold"
        return f"{text}, {' to '.join(slack)} times what is measured" if slack else text
    noun = "comparison" if _compare(mine) else KINDS[evidence]
    return _decisions(mine, many(len(mine), f"decided {noun}"))


def _compare(readings: Sequence[Reading]) -> bool:
    """Return whether all readings are comparisons, and no method is on both sides."""
    sides = [reading.claim.samples for reading in readings if reading.claim.kind == "better"]
    ahead, behind = ({repr(side[name].strategy) for side in sides if side[name].strategy} for name in "ab")
    return len(sides) == len(readings) and not ahead & behind


def _decisions(readings: Sequence[Reading], total: str) -> str:
    """Return the words of decisions with counts, most frequent first; for comparisons, ahead or behind."""
    compare = _compare(readings)
    words = {
        reading.word: SAID[reading.word].short if compare else SAID[reading.word].long for reading in readings
    }
    texts: list[str] = []
    for word, n in Counter(reading.word for reading in readings).most_common():
        texts.append(f"{words[word]} in {n}{'' if texts else f' of {total}'}")
    return ", ".join(texts)
