"""The figures as Markdown: a table by group and by file, and the survivors."""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.session import Session
from tests.mutants.targets import group_of

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def equivalent() -> dict[tuple[str, str], str]:
    """(file, change) → why no test can see it."""
    entries = tomllib.loads(EQUIVALENT.read_text()).get("equivalent", [])
    return {(entry["file"], entry["change"]): entry["because"] for entry in entries}


def report(mutants: list[Mutant], session: Session) -> Iterator[str]:
    """The lines of the report on `mutants`."""
    groups, known = group_of(), equivalent()
    counts: Counter[tuple[str, str]] = Counter()
    survivors: list[str] = []
    for mutant in sorted(mutants, key=lambda each: (each.file, each.start)):
        result = session.results.get(mutant.key)
        outcome = "not tried" if result is None else result.outcome
        if outcome == "survived":
            change = mutant.change()
            because = known.get((mutant.file, change), "")
            outcome = "equivalent" if because else outcome
            survivors.append(f"- `{mutant.file}:{mutant.start[0]}`: `{change}`{because and f': {because}'}")
        counts[mutant.file, outcome] += 1
    yield from _table("group", counts, groups.__getitem__)
    yield ""
    yield from _table("file", counts, str)
    yield ""
    yield f"{len(survivors)} not killed:" if survivors else "None survived."
    yield from survivors


def _table(what: str, counts: Counter[tuple[str, str]], row_of: Callable[[str], str]) -> Iterator[str]:
    """A row for each value of `row_of(file)`. The score is killed / (killed + survived)."""
    rows: dict[str, Counter[str]] = {}
    for (file, outcome), count in counts.items():
        rows.setdefault(row_of(file), Counter())[outcome] += count
    yield f"| {what} | mutants | killed | survived | equivalent | not tried | score |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    total: Counter[str] = sum(rows.values(), Counter())
    for name, found in [*rows.items(), ("all", total)]:
        killed, survived = found["killed"], found["survived"]
        score = f"{100 * killed / (killed + survived):.1f} %" if killed + survived else ""
        tried = [killed, survived, found["equivalent"], found["not tried"]]
        yield f"| {name} | {' | '.join(str(count) for count in (sum(tried), *tried))} | {score} |"
