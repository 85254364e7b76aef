"""Files of claims: `benchmarks/claims/*.yaml`, read and checked; mistakes are reported with file and key.

`papers` is the entry to all claims: commands, plans and pages start with it. `claims/claim.py` shows the form
of a file.

Fixed: keys of the files, and the ids that they give. Free: messages about mistakes.
"""

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import Field, ValidationError

from benchmarks.claims.claim import (
    SCALES,
    Arrangement,
    Arrangements,
    Claim,
    Looks,
    Need,
    ScaleName,
    Workload,
    Workloads,
)
from benchmarks.claims.expansion import members
from benchmarks.claims.kinds import KINDS
from benchmarks.errors import UserError
from benchmarks.suite.validation_errors import complaints, lines_of
from benchmarks.yaml_io import place, read
from fl_core.parts import FieldError, Frozen
from fl_core.text import unknown

FOLDER = Path(__file__).parent


class Entries(Frozen):
    """Defaults for the entries of a scenario."""

    arrangement: Arrangements | None = None
    workload: Workloads | None = None
    looks: Looks | None = None


class MainResult(Frozen):
    """A main result of a paper, and all entries serving as readings, whatever the verdicts."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    words: str
    place: str
    readings: Annotated[tuple[str, ...], Field(min_length=1)]  # ids, or patterns of ids
    open: str = ""  # what the text leaves open


class WrittenScenario(Frozen):
    """A scenario as written in a claims file: a suite's document, and changes by scale."""

    suite: str | None = None  # a shipped one to start from
    set: dict[str, Any] = Field(default_factory=dict)  # dotted keys → values, at every scale
    scales: dict[ScaleName, dict[str, Any]] = Field(default={"small": {}}, min_length=1)
    needs: dict[ScaleName, Need] = Field(default_factory=dict)
    entries: Entries = Field(default_factory=Entries)
    document: dict[str, Any] = Field(default_factory=dict)  # the suite's keys, where it is written out


class Head(Frozen):
    """A file of claims, before the entries are read individually."""

    paper: Annotated[str, Field(pattern=r"^[a-z]\w*$")]
    title: str
    scenarios: dict[str, dict[str, Any]] = Field(default_factory=dict)
    claims: list[dict[str, Any]]
    main: tuple[MainResult, ...] = ()
    words: dict[str, str] = Field(default_factory=dict)  # value in an entry's `each` → how statements say it
    terms: dict[str, str] = Field(default_factory=dict)  # symbol in statements → what it means
    # Id, or pattern such as 'A-best/*' → what was seen, where the entry itself does not say it.
    seen: dict[str, str] = Field(default_factory=dict)
    found: dict[str, Any] = Field(default_factory=dict)  # id of a theorem → result of its test


@dataclass(frozen=True, eq=False)
class Paper:
    """All claims of a paper."""

    name: str
    title: str
    scenarios: dict[str, WrittenScenario] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)  # scenario → its file and line
    claims: dict[str, Claim] = field(default_factory=dict)  # by id
    main: dict[str, MainResult] = field(default_factory=dict)  # by id
    words: dict[str, str] = field(default_factory=dict)  # values and names of conditions, for readers
    terms: dict[str, str] = field(default_factory=dict)  # symbols, for readers

    def scales(self, claim: Claim) -> tuple[str, ...]:
        """Return the possible scales of a claim, smallest first; none for a theorem."""
        scales_of_samples = [
            self.scenarios[sample.scenario].scales for sample in claim.samples.values() if sample.scenario
        ]
        return tuple(
            scale
            for scale in SCALES
            if scales_of_samples and all(scale in scales for scales in scales_of_samples)
        )

    def readings(self, result: MainResult) -> tuple[str, ...]:
        """Return the ids of the readings of a main result, in the order of entries."""
        patterns = result.readings
        return tuple(
            id_ for id_ in self.claims if any(fnmatch.fnmatchcase(id_, pattern) for pattern in patterns)
        )

    def needs(self, claim: Claim, scale: str) -> Need | None:
        """Return the resources of a claim at a scale beyond an evening on two cores; None if not needed."""
        scenarios = [self.scenarios[sample.scenario] for sample in claim.samples.values() if sample.scenario]
        needs = [claim.needs, *(scenario.needs for scenario in scenarios)]
        return next((need[scale] for need in needs if scale in need), None)


def papers(folder: Path = FOLDER) -> dict[str, Paper]:
    """All claims, by paper; UserError with every mistake in the files."""
    by_name: dict[str, Paper] = {}
    mistakes: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        mistakes += _read_into(by_name, path)
    mistakes += [line for paper in by_name.values() for line in _without_readings(paper, folder)]
    if mistakes:
        raise UserError(*mistakes)
    return by_name


def _read_into(papers: dict[str, Paper], path: Path) -> Iterator[str]:
    """Add the claims of a file to the papers, and yield a line for each mistake."""
    document = read(path)
    try:
        head = Head.model_validate(document)
    except ValidationError as error:
        yield from lines_of(path, error, Head, document)
        return
    paper = papers.setdefault(head.paper, Paper(head.paper, head.title))
    paper.words.update(head.words)
    paper.terms.update(head.terms)
    ids = {id_ for earlier_paper in papers.values() for id_ in earlier_paper.claims}
    yield from _scenarios_into(paper, head, path, document)
    yield from _entries_into(paper, head, path, document, ids)
    for result in head.main:
        if result.id in paper.main:
            yield f"{place(path, document, ('main',))}: main.{result.id}: duplicate id of a main result"
        paper.main[result.id] = result
    for key, patterns in (("seen", head.seen), ("found", head.found)):
        yield from (
            f"{place(path, document, (key, id_))}: {key}.{id_}: no claim has this id"
            for id_ in patterns
            if not fnmatch.filter(paper.claims, id_)
        )


def _scenarios_into(paper: Paper, head: Head, path: Path, document: Any) -> Iterator[str]:
    """Add the scenarios of a file to a paper, and yield a line for each mistake."""
    for name, written in head.scenarios.items():
        location = place(path, document, ("scenarios", name))
        if name in paper.scenarios:
            yield f"{location}: scenarios.{name}: is a duplicate (already in {paper.places[name]})"
            continue
        allowed = {
            key: value
            for key, value in written.items()
            if key in WrittenScenario.model_fields and key != "document"
        }
        rest = {key: value for key, value in written.items() if key not in allowed}
        if "suite" in allowed and rest:
            key = f"scenarios.{name}.{next(iter(rest))}"
            yield f"{location}: {key}: write changes of a suite under `set` or `scales`"
            continue
        try:
            paper.scenarios[name] = WrittenScenario.model_validate({**allowed, "document": rest})
            paper.places[name] = location
        except ValidationError as error:
            yield from _lines_of_entry(location, error, WrittenScenario, written, f"scenarios.{name}.")


def _entries_into(paper: Paper, head: Head, path: Path, document: Any, ids: set[str]) -> Iterator[str]:
    """Add the expanded entries of a file to a paper, and yield a line for each mistake."""
    for number, entry in enumerate(head.claims):
        location = place(path, document, ("claims", number))
        label = f"{location}: claims.{entry.get('id', number)}"
        try:
            for member in members(entry, path.parent, head.words):
                member_id = str(member.get("id", ""))
                seen = [text for id_, text in head.seen.items() if fnmatch.fnmatchcase(member_id, id_)]
                more = {"seen": seen[0]} if seen else {}
                more |= {"found": head.found[member_id]} if member_id in head.found else {}
                claim = _placed(_claim({**member, **more}), paper)
                yield from (
                    f"{location}: claims.{claim.id}: {reason}" for reason in _mistakes(claim, paper, ids)
                )
                ids.add(claim.id)
                paper.claims[claim.id] = claim
        except ValidationError as error:
            yield from _lines_of_entry(
                location, error, KINDS[member["kind"]], member, f"claims.{member.get('id', number)}."
            )
        except ValueError as error:
            yield f"{label}: {error}"


def _without_readings(paper: Paper, folder: Path) -> Iterator[str]:
    """Yield a line for each pattern of a main result without a matching entry."""
    for result in paper.main.values():
        for pattern in result.readings:
            if not fnmatch.filter(paper.claims, pattern):
                yield f"{folder}: {paper.name}: main.{result.id}: no claim has the id {pattern}"


def _claim(entry: Mapping[str, Any]) -> Claim:
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise FieldError("kind", unknown("kind", kind, KINDS))
    return KINDS[kind].model_validate(entry)


def _placed(claim: Claim, paper: Paper) -> Claim:
    """Return the claim, completed with the scenario's arrangement, workload and looks."""
    names = [sample.scenario for sample in claim.samples.values()]
    places = [paper.scenarios[name] for name in names if name in paper.scenarios]
    defaults = {
        key: next((value for place in places if (value := getattr(place.entries, key)) is not None), None)
        for key in ("arrangement", "workload", "looks")
        if getattr(claim, key) is None
    }
    return claim.model_copy(update=defaults)


def _mistakes(claim: Claim, paper: Paper, ids: set[str]) -> Iterator[str]:
    """Yield the faults of a claim in relation to the paper: id, scenarios, scales, arrangement, workload."""
    if claim.id in ids:
        yield "duplicate id"
    for name, sample in claim.samples.items():
        if sample.scenario not in paper.scenarios:
            yield f"{name}: {unknown('scenario', sample.scenario, paper.scenarios)}"
            return
    if claim.samples and not paper.scales(claim):
        yield "its scenarios have no scale in common"
    elif claim.samples:
        for key, values, meaning in (
            ("arrangement", Arrangement, "the origin of the experiment"),
            ("workload", Workload, "the origin of data and model"),
        ):
            value = getattr(claim, key)
            named = set(value) if isinstance(value, dict) else set(SCALES)
            if value is None or not set(paper.scales(claim)) <= named:
                yield f"{key}: must give {meaning} at each scale of the claim: {', '.join(get_args(values))}"


def _lines_of_entry(
    label: str, error: ValidationError, model: type[Frozen], document: Any, prefix: str
) -> Iterator[str]:
    """Yield a line for each mistake in a possibly expanded entry, at the line of the entry's beginning."""
    for complaint in complaints(error, model, document):
        key = ".".join(map(str, complaint.steps))
        yield f"{label}: {(prefix + key).rstrip('.')}: {complaint.sentence}"
