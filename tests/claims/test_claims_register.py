"""The register: an entry with numbers cannot change what it is judged by without a line that says so."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from toy_paper import CLAIMS

from benchmarks.claims import register, stored_numbers
from benchmarks.claims.files import Paper, papers
from benchmarks.claims.stored_numbers import Number
from benchmarks.commands.claims import command
from benchmarks.errors import UserError

ID = "T-better/slow"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder of claims, with a number of its one claim."""
    (tmp_path / "toy.yaml").write_text(CLAIMS)
    number = Number(ID, "a", 0, 0.5, "k", "2026-11-23T00:00:00+00:00", "here")
    stored_numbers.merge(stored_numbers.path("toy", "small", tmp_path / "results"), [ID], [number])
    return tmp_path


def read(toy: Path) -> Paper:
    return papers(toy)["toy"]


def decide(toy: Path, *ids: str, entries: str = "T-*") -> None:
    """Write these decisions."""
    words = {"change": "It changed.", "known": "It failed.", "reason": "It was wrong."}
    lines = [{"id": id_, "entries": [entries], **words} for id_ in ids]
    (toy / "decisions").mkdir(exist_ok=True)
    (toy / "decisions" / "toy.yaml").write_text(yaml.safe_dump({"decisions": lines}))


CHANGES = [
    ("arrangement: paper", "arrangement: reading"),
    ("workload: paper", "workload: stand-in"),
    ("looks: [3]", "looks: [3, 5]"),
    ("kind: better", "kind: better\n    margin: 0.1"),
    ("metric: distance", "metric: excess_loss"),
    ("clock: updates", "clock: time"),
    ("kind: better", "kind: better\n    unjudged: Left open."),
]


PROSE = [
    ("nearer to", "closer to"),
    ("place: §1", "place: §2"),
    ("kind: better", "kind: better\n    note: Mind."),
]


def test_what_bears_on_the_verdict_is_a_change_and_prose_is_none(toy: Path) -> None:
    register.record_first_numbers(read(toy), toy / "results")
    for old, new in (*CHANGES, *PROSE):
        (toy / "toy.yaml").write_text(CLAIMS.replace(old, new))
        assert register.changed(read(toy), toy / "results") == [ID] * ((old, new) in CHANGES), new


def test_a_change_needs_a_line(toy: Path) -> None:
    results = toy / "results"
    assert register.record(read(toy), results) == 1
    assert register.changed(read(toy), results) == []
    (toy / "toy.yaml").write_text(CLAIMS.replace("looks: [3]", "looks: [3, 5]"))
    before = register.history(read(toy), results)
    with pytest.raises(UserError, match=rf"toy\.yaml: .*{ID}"):
        register.record(read(toy), results)
    assert register.history(read(toy), results) == before
    decide(toy, "2026-11-23-it")
    assert register.record(read(toy), results) == 1
    assert register.changed(read(toy), results) == []
    assert [decision for _, decision in register.history(read(toy), results)[ID]] == ["", "2026-11-23-it"]


def test_a_main_result_does_not_change_its_readings_without_a_line(toy: Path) -> None:
    """Neither by other patterns nor by an entry more that they match."""
    results, main = (
        toy / "results",
        {"id": "it", "words": "It works", "place": "§1", "readings": ["T-*/slow*"]},
    )

    def write(claims: str = CLAIMS, **changed: object) -> None:
        (toy / "toy.yaml").write_text(f"{claims}\nmain: {json.dumps([{**main, **changed}])}\n")

    write()
    register.record_first_numbers(read(toy), results)
    write(words="It hardly works", open="How is lost.", readings=[ID])
    assert register.changed(read(toy), results) == []
    document = yaml.safe_load(CLAIMS)
    (entry,) = (one for one in document["claims"] if one["id"] == ID)
    document["claims"].append({**entry, "id": f"{ID}-again"})
    write(yaml.safe_dump(document, allow_unicode=True))
    assert register.changed(read(toy), results) == ["main/it"]
    decide(toy, "2026-11-23-it", entries="main/it")
    assert register.record(read(toy), results) == 1
    assert register.changed(read(toy), results) == []


def test_a_line_serves_one_change_of_an_entry(toy: Path) -> None:
    results = toy / "results"
    register.record_first_numbers(read(toy), results)
    decide(toy, "2026-11-23-it")
    (toy / "toy.yaml").write_text(CLAIMS.replace("looks: [3]", "looks: [4]"))
    register.record(read(toy), results)
    (toy / "toy.yaml").write_text(CLAIMS.replace("looks: [3]", "looks: [5]"))
    with pytest.raises(UserError):
        register.record(read(toy), results)
    decide(toy, "2026-11-23-it", "2026-11-24-other", entries="T-worse*")
    with pytest.raises(UserError):
        register.record(read(toy), results)


def test_what_has_no_numbers_is_free(toy: Path) -> None:
    stored_numbers.path("toy", "small", toy / "results").unlink()
    assert register.record(read(toy), toy / "results") == 0
    (toy / "toy.yaml").write_text(CLAIMS.replace("looks: [3]", "looks: [4]"))
    assert register.changed(read(toy), toy / "results") == []


def test_the_first_numbers_begin_the_history_and_never_rewrite_it(toy: Path) -> None:
    register.record_first_numbers(read(toy), toy / "results")
    (toy / "toy.yaml").write_text(CLAIMS.replace("looks: [3]", "looks: [4]"))
    register.record_first_numbers(read(toy), toy / "results")
    assert register.changed(read(toy), toy / "results") == [ID]


def test_the_command_stores_or_says_what_is_missing(toy: Path) -> None:
    CliRunner().invoke(command, ["register", "--claims", str(toy)], catch_exceptions=False)
    assert register.changed(read(toy), toy / "results") == []
    (toy / "toy.yaml").write_text(CLAIMS.replace("looks: [3]", "looks: [4]"))
    with pytest.raises(UserError, match=ID):
        command.main(["register", "--claims", str(toy)], standalone_mode=False)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("toy.yaml", "decisions: [{id: yesterday, entries: [x]}]", "decisions.0.id"),
        ("toy.yaml", "decisions: 3", "decisions"),
        ("toy.csv", "entry,digest\nT-better/slow,3\n", "is damaged: the columns must be"),
        ("toy.csv", "entry,digest,decision\nT-better/slow,3\n", "is damaged"),
    ],
)
def test_damaged_files_are_told_in_a_line(toy: Path, file: str, text: str, words: str) -> None:
    (toy / "decisions").mkdir()
    (toy / "decisions" / file).write_text(text)
    with pytest.raises(UserError) as raised:
        register.record(read(toy), toy / "results")
    assert words in raised.value.lines[0] and file in raised.value.lines[0]
