"""Files of claims: `benchmarks/claims/*.yaml`, read and checked; mistakes are reported with file and key."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from benchmarks.claims.claim import SCALES, Arrangements, Claim, Looks, Refutation, Scale
from benchmarks.claims.families import members
from benchmarks.documents import place, read
from benchmarks.errors import UserError
from benchmarks.suite.complaints import complaints, told
from benchmarks.suite.document import nearest
from fl_core.parts import Frozen

FOLDER = Path(__file__).parent


class Entries(Frozen):
    """Defaults for the entries of a scenario."""

    arrangement: Arrangements | None = None
    looks: Looks | None = None


class Place(Frozen):
    """A scenario as its claims file writes it: a suite's document, and what scales change in it."""

    suite: str | None = None  # a shipped one to start from
    set: dict[str, Any] = Field(default_factory=dict)  # dotted keys → values, at every scale
    scales: dict[Scale, dict[str, Any]] = Field(default={"small": {}}, min_length=1)
    needs: dict[Scale, str] = Field(default_factory=dict)
    entries: Entries = Field(default_factory=Entries)
    document: dict[str, Any] = Field(default_factory=dict)  # the suite's keys, where it is written out


class Head(Frozen):
    """A file of claims, before its entries are read one by one."""

    paper: Annotated[str, Field(pattern=r"^[a-z]\w*$")]
    title: str
    scenarios: dict[str, dict[str, Any]] = Field(default_factory=dict)
    claims: list[dict[str, Any]]
    words: dict[str, str] = Field(default_factory=dict)  # value in an entry's `each` → how statements say it
    # Id, or pattern such as 'A-best/*' → what was seen, where the entry itself does not say it.
    seen: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """All claims of one paper."""

    name: str
    title: str
    scenarios: dict[str, Place] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)  # scenario → its file
    places: dict[str, str] = field(default_factory=dict)  # scenario → its file and line
    claims: dict[str, Claim] = field(default_factory=dict)  # by id

    def scales(self, claim: Claim) -> tuple[str, ...]:
        """The scales at which a claim can be judged, smallest first; none for what is computed."""
        each = [self.scenarios[one.scenario].scales for one in claim.samples.values() if one.scenario]
        return tuple(scale for scale in SCALES if each and all(scale in of for of in each))

    def needs(self, claim: Claim, scale: str) -> str:
        """What a claim needs at a scale beyond two cores; empty if they suffice."""
        own = claim.needs.get(scale, "")
        theirs = (
            self.scenarios[one.scenario].needs.get(scale, "")
            for one in claim.samples.values()
            if one.scenario
        )
        return own or next(filter(None, theirs), "")

    def refutation(self, claim: Claim, scale: str) -> Refutation:
        """What a refutation of a claim at a scale would mean; only the first kind is counted.

        The published code's arrangement counts as the paper's where no entry of its row follows the text.
        """
        if claim.ours:
            return "ours"
        if claim.refutation is not None:
            return claim.refutation
        arranged = claim.arranged(scale)
        silent = claim.row not in self._told_rows
        return (
            "contradicts" if arranged == "paper" or (arranged == "code" and silent) else "other_arrangement"
        )

    @cached_property
    def _told_rows(self) -> set[str]:
        """The rows with an entry in the paper's own arrangement."""
        return {
            claim.row
            for claim in self.claims.values()
            if any(claim.arranged(scale) == "paper" for scale in self.scales(claim) or ("",))
        }


def papers(folder: Path = FOLDER) -> dict[str, Paper]:
    """All claims, by paper; UserError with every mistake in the files."""
    found: dict[str, Paper] = {}
    mistakes: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        mistakes += _read_into(found, path)
    if mistakes:
        raise UserError(*mistakes)
    return found


def _read_into(found: dict[str, Paper], path: Path) -> Iterator[str]:
    document = read(path)
    try:
        head = Head.model_validate(document)
    except ValidationError as error:
        yield from told(path, error, Head, document)
        return
    paper = found.setdefault(head.paper, Paper(head.paper, head.title))
    known = {id_ for other in found.values() for id_ in other.claims}
    for name, written in head.scenarios.items():
        here = place(path, document, ("scenarios", name))
        if name in paper.scenarios:
            yield f"{here}: scenarios.{name}: stands in {paper.files[name].name} already"
            continue
        own = {
            key: value for key, value in written.items() if key in Place.model_fields and key != "document"
        }
        rest = {key: value for key, value in written.items() if key not in own}
        if "suite" in own and rest:
            key = f"scenarios.{name}.{next(iter(rest))}"
            yield f"{here}: {key}: changes of a suite stand under `set` and `scales`"
            continue
        try:
            paper.scenarios[name] = Place.model_validate({**own, "document": rest})
            paper.files[name], paper.places[name] = path, here
        except ValidationError as error:
            yield from _told(here, error, Place, written, f"scenarios.{name}.")
    for number, entry in enumerate(head.claims):
        here = place(path, document, ("claims", number))
        where = f"{here}: claims.{entry.get('id', number)}"
        try:
            for one in members(entry, path.parent, head.words):
                seen = next((said for id_, said in head.seen.items() if _means(id_, one)), None)
                claim = _placed(_claim(one if seen is None else {**one, "seen": seen}), paper)
                yield from (f"{here}: claims.{claim.id}: {why}" for why in _mistakes(claim, paper, known))
                known.add(claim.id)
                paper.claims[claim.id] = claim
        except ValidationError as error:
            yield from _told(here, error, Claim.KINDS[one["kind"]], one, f"claims.{one.get('id', number)}.")
        except ValueError as error:
            yield f"{where}: {error}"
    yield from (
        f"{place(path, document, ('seen', id_))}: seen.{id_}: no claim has this id"
        for id_ in head.seen
        if not fnmatch.filter(paper.claims, id_)
    )


def _means(pattern: str, entry: Mapping[str, Any]) -> bool:
    return fnmatch.fnmatchcase(str(entry.get("id", "")), pattern)


def _claim(entry: Mapping[str, Any]) -> Claim:
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in Claim.KINDS:
        raise ValueError(
            f"kind: no kind '{kind}'{nearest(str(kind), Claim.KINDS)} There are: {', '.join(Claim.KINDS)}"
        )
    return Claim.KINDS[kind].model_validate(entry)


def _placed(claim: Claim, paper: Paper) -> Claim:
    """The claim, with its scenario's arrangement and looks where it names none."""
    names = [sample.scenario for sample in claim.samples.values()]
    places = [paper.scenarios[name] for name in names if name in paper.scenarios]
    own = {
        key: next((said for place in places if (said := getattr(place.entries, key)) is not None), None)
        for key in ("arrangement", "looks")
        if getattr(claim, key) is None
    }
    return claim.model_copy(update=own)


def _mistakes(claim: Claim, paper: Paper, known: set[str]) -> Iterator[str]:
    if claim.id in known:
        yield "another entry has this id"
    for name, sample in claim.samples.items():
        if sample.scenario not in paper.scenarios:
            there, meant = (
                ", ".join(paper.scenarios) or "none",
                nearest(str(sample.scenario), paper.scenarios),
            )
            yield f"{name}: no scenario '{sample.scenario}'{meant} There are: {there}"
            return
    if claim.samples and not paper.scales(claim):
        yield "its scenarios have no scale in common"
    elif claim.samples:
        named = claim.arrangement.keys() if isinstance(claim.arrangement, dict) else SCALES
        if claim.arrangement is None or not set(paper.scales(claim)) <= set(named):
            yield (
                "arrangement: must say whose experiment it is at each of its scales: paper, code or variant"
            )


def _told(
    where: str, error: ValidationError, model: type[Frozen], document: Any, prefix: str
) -> Iterator[str]:
    """Of an entry that may have been filled in: the line is where it begins."""
    for complaint in complaints(error, model, document):
        key = ".".join(map(str, complaint.steps))
        yield f"{where}: {(prefix + key).rstrip('.')}: {complaint.sentence}"
