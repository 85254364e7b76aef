"""Register of decisions: changes of entries after numbers of an entry were seen, and proof by digests.

It shows that entries were not adapted to results in secret. `benchmarks/claims/decisions/<paper>.yaml` has a
line for each decision. Beside it, `<paper>.csv` has the digests of the judged keys of each entry: the first
from the time when its first numbers were stored, then one for each decision that changed it. Digests named
`main/ID` are of the ids of a main result's readings, so that an added reading is a change. A test refuses an
entry that differs from its last digest: it was changed without a decision.

Fixed: `digest` and `KEYS_WITHOUT_INFLUENCE`; with others, no stored digest would fit.
"""

import fnmatch
import hashlib
import json
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from benchmarks.claims import stored_numbers
from benchmarks.claims.claim import SCALES, Claim
from benchmarks.claims.files import Paper
from benchmarks.errors import UserError
from benchmarks.suite.validation_errors import lines_of
from benchmarks.yaml_io import read
from fl_core.parts import Frozen

FOLDER = "decisions"  # beside the results
COLUMNS = ("entry", "digest", "decision")
KEYS_WITHOUT_INFLUENCE = {
    "id",
    "place",
    "statement",
    "note",
    "seen",
    "needs",
    "case",
    "table",
    "unjudged",
    "found",
}


class Decision(Frozen):
    """A change of a class, margin, rule or space after numbers of the entries were seen."""

    id: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d-[a-z0-9-]+$")]  # its date, and a name
    entries: Annotated[tuple[str, ...], Field(min_length=1)]  # ids, or patterns, as they were then
    change: str
    known: str  # outcome of the entries at the time of the decision
    reason: str

    @property
    def date(self) -> str:
        """Day of the decision."""
        return self.id[:10]

    def concerns(self, claim: str) -> bool:
        """Return whether the decision concerns an entry."""
        return any(fnmatch.fnmatchcase(claim, pattern) for pattern in self.entries)


class Register(Frozen):
    """All decisions on the entries of a paper, the oldest first."""

    decisions: tuple[Decision, ...] = ()


def decisions(paper: Paper, results: Path = stored_numbers.RESULTS) -> tuple[Decision, ...]:
    """Return the decisions on a paper's entries; none without a file. UserError with every mistake."""
    path = _path(paper, results, "yaml")
    if not path.exists():
        return ()
    document = read(path)
    try:
        return Register.model_validate(document).decisions
    except ValidationError as error:
        raise UserError(*lines_of(path, error, Register, document)) from None


def digest(claim: Claim) -> str:
    """Return a short hash of all keys relevant to the judgement of an entry."""
    judged = claim.model_dump(mode="json", exclude=KEYS_WITHOUT_INFLUENCE, exclude_defaults=True)
    return _hash({**judged, "unjudged": bool(claim.unjudged)})


def _hash(judged_by: object) -> str:
    return hashlib.sha256(json.dumps(judged_by, sort_keys=True).encode()).hexdigest()[:12]


def history(paper: Paper, results: Path = stored_numbers.RESULTS) -> dict[str, list[tuple[str, str]]]:
    """Return the digests of each entry, each with the causal decision; empty for the first numbers."""
    path = _path(paper, results, "csv")
    decisions_by_entry: dict[str, list[tuple[str, str]]] = {}
    for entry, digest, decision in stored_numbers.table(path, COLUMNS, tuple):
        decisions_by_entry.setdefault(entry, []).append((digest, decision))
    return decisions_by_entry


def changed(paper: Paper, results: Path = stored_numbers.RESULTS) -> list[str]:
    """Return the entries with numbers, and main results, with a digest other than the last stored."""
    last = {id_: digests[-1][0] for id_, digests in history(paper, results).items()}
    return [id_ for id_, digest in _digests(paper, results).items() if last.get(id_) != digest]


def record(paper: Paper, results: Path = stored_numbers.RESULTS) -> int:
    """Store the digests of new entries and of changes by decision, and return the count.

    UserError, and nothing is stored, if something was changed without a line in the register.
    """
    past, all_decisions, wrong = history(paper, results), decisions(paper, results), []
    fresh, digests = changed(paper, results), _digests(paper, results)
    for id_ in fresh:
        used = {decision for _, decision in past.get(id_, ())}
        concerned = (decision.id for decision in reversed(all_decisions) if decision.concerns(id_))
        reason = next((decision_id for decision_id in concerned if decision_id not in used), "")
        if id_ in past and not reason:
            wrong.append(
                f"{_path(paper, results, 'yaml')}: no decision on {id_}, which was changed after its numbers "
                "were seen: say what, with the outcome known and the reason"
            )
        past.setdefault(id_, []).append((digests[id_], reason))
    if wrong:
        raise UserError(*wrong)
    _write(_path(paper, results, "csv"), past)
    return len(fresh)


def record_first_numbers(paper: Paper, results: Path = stored_numbers.RESULTS) -> None:
    """Store the digests of entries with first numbers."""
    past = history(paper, results)
    first = {id_: [(digest, "")] for id_, digest in _digests(paper, results).items() if id_ not in past}
    _write(_path(paper, results, "csv"), past | first)


def _digests(paper: Paper, results: Path) -> dict[str, str]:
    """Return the digests of entries with numbers, of theorems, and of the main results."""
    files = (stored_numbers.path(paper.name, scale, results) for scale in SCALES)
    ids = {number.claim for file in files for number in stored_numbers.read(file)}
    entries = {
        id_: digest(claim) for id_, claim in paper.claims.items() if id_ in ids or not claim.needs_runs
    }
    main = {f"main/{id_}": _hash(sorted(paper.readings(result))) for id_, result in paper.main.items()}
    return entries | main


def _write(path: Path, past: dict[str, list[tuple[str, str]]]) -> None:
    stored_numbers.write(path, COLUMNS, ((id_, *state) for id_, states in past.items() for state in states))


def _path(paper: Paper, results: Path, kind: str) -> Path:
    return results.parent / FOLDER / f"{paper.name}.{kind}"
