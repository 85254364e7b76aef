"""Every bit of a stored file that changes is noticed, or changes nothing; the file is named in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.claims import kept
from benchmarks.errors import UserError
from benchmarks.suite import tuned
from reports.gate import baseline
from tuning.storage import open_storage

SHIPPED = Path(kept.__file__).parents[1]
JOURNAL = b'{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [1]}\n' * 3


def rewritten_baseline(path: Path) -> Callable[[], object]:
    baseline.write(baseline.read(SHIPPED / "baselines/ci.json"), path)
    return lambda: baseline.read(path)


def rewritten_tuned(path: Path) -> Callable[[], object]:
    tuned.write(path, tuned.load(SHIPPED / "tuned/quickstart.yaml", "quickstart").spec)
    return lambda: tuned.load(path, "quickstart").spec


KINDS = {"baseline.json": rewritten_baseline, "tuned.yaml": rewritten_tuned}


@pytest.mark.parametrize("name", KINDS)
def test_no_damage_changes_what_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    read = KINDS[name](path)
    whole, meant = path.read_bytes(), repr(read())

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, len(whole) - 1), st.integers(0, 8))
    def damaged(at: int, bit: int) -> None:
        flipped = bytes([whole[at] ^ 1 << bit % 8])
        path.write_bytes(whole[:at] if bit == 8 else whole[:at] + flipped + whole[at + 1 :])
        try:
            assert repr(read()) == meant  # a blank for a line break, say
        except UserError as error:
            refusal = error.lines
        else:
            return
        assert all(line.startswith(str(path)) for line in refusal)

    damaged()


def test_files_without_a_checksum_are_still_read() -> None:
    """Those of versions before there were checksums."""
    for path in (SHIPPED / "tuned").glob("*.yaml"):
        assert tuned.load(path, path.stem).spec.tuned
    assert baseline.read(SHIPPED / "baselines/ci.json").checksum == ""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("claim,sample", "claim,simple", ":2: is damaged: here stand the columns claim, sample, "),
        ("0.5", "o.5", ":3: is damaged: no number of a claim"),
        (",1\n", ",7\n", ":3: is damaged: no number of a claim"),
        ("r1,", "", ":3: is damaged: no number of a claim"),
    ],
)
def test_damaged_numbers_of_claims(tmp_path: Path, old: str, new: str, line: str) -> None:
    path = tmp_path / "toy-small.csv"
    kept.merge(path, ["T/a"], [kept.Number("T/a", "a", 0, 0.5, "r1", "now", "abc, torch 2")])
    (number,) = kept.read(path)
    assert (number.value, number.origin) == (0.5, "abc, torch 2")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError) as caught:
        kept.read(path)
    assert caught.value.lines[0].startswith(f"{path}{line}")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, len(JOURNAL) - 1), bit=st.integers(0, 8))
def test_a_damaged_journal_is_named(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int) -> None:
    path = tmp_path_factory.mktemp("journal") / "tuning.journal"
    flipped = bytes([JOURNAL[at] ^ 1 << bit % 8])
    path.write_bytes(JOURNAL[:at] if bit == 8 else JOURNAL[:at] + flipped + JOURNAL[at + 1 :])
    try:
        open_storage(str(path))
    except UserError as error:
        refusal = error.lines
    else:
        return  # Optuna leaves out a last line that was cut, and reads what is still a line of its own
    assert len(refusal) == 1 and refusal[0].startswith(f"--storage {path}: ")
