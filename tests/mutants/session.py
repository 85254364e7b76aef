"""Results that are kept: Cosmic Ray's own session file, which `cr-report` and `cr-html` read too."""

from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tests.mutants.mutant import Mutant

OUTCOMES = {
    "killed": TestOutcome.KILLED,
    "survived": TestOutcome.SURVIVED,
    "no mutant": TestOutcome.INCOMPETENT,
}
NAMES = {outcome: name for name, outcome in OUTCOMES.items()}


@dataclass(frozen=True)
class Result:
    """What became of a mutant."""

    outcome: str  # a key of OUTCOMES
    output: str  # killed: by which test; survived: the digest of the tests


class Session:
    """Results by mutant; a mutant is the same as long as its file is."""

    def __init__(self, path: Path) -> None:
        self._database = WorkDB(path, WorkDB.Mode.create)
        self.results = {
            key: Result(NAMES[found.test_outcome], found.output or "")
            for key, found in self._database.results
        }

    def set(self, mutant: Mutant, result: Result) -> None:
        """Keep a result, in place of an earlier one."""
        if mutant.key not in self.results:
            spec = MutationSpec(mutant.file, mutant.operator, mutant.occurrence, mutant.start, mutant.end)
            self._database.add_work_item(WorkItem.single(mutant.key, spec))
        outcome = OUTCOMES[result.outcome]
        self._database.set_result(mutant.key, WorkResult(WorkerOutcome.NORMAL, result.output, outcome))
        self.results[mutant.key] = result

    def settled(self, mutant: Mutant, tests: str) -> bool:
        """Whether there is nothing to try: a survivor is tried again when the tests have changed."""
        result = self.results.get(mutant.key)
        return result is not None and (result.outcome != "survived" or result.output == tests)

    def killer(self, mutant: Mutant) -> str:
        """The test that killed it, "" if none did or none is known."""
        result = self.results.get(mutant.key)
        return result.output if result is not None and result.outcome == "killed" else ""

    def close(self) -> None:
        """Close the file."""
        self._database.close()
