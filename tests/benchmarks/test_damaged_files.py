"""Every bit of a stored file that changes is noticed, or changes nothing; the file is named in one line."""

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.claims import stored_numbers
from benchmarks.errors import UserError
from benchmarks.suite import tuned
from reports.claims import false_verdicts
from reports.gate import baseline
from tuning.storage import open_storage, storage_errors_explained

SHIPPED = Path(tuned.__file__).parents[1]


def rewritten_baseline(path: Path) -> Callable[[], object]:
    whole = baseline.read(SHIPPED / "baselines/ci.json")
    baseline.write(whole.model_copy(update={"runs": whole.runs[:4]}), path)
    return lambda: baseline.read(path)


def rewritten_tuned(path: Path) -> Callable[[], object]:
    tuned.write(path, tuned.load(SHIPPED / "tuned/mnist_weights.yaml", "mnist_weights"))
    return lambda: tuned.load(path, "mnist_weights")


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


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("claim,sample", "claim,simple", 1), ("0.5", "o.5", 2), (",1\n", ",7\n", 2), ("r1,", "", 2)],
)
def test_damaged_numbers_of_claims(tmp_path: Path, old: str, new: str, line: int) -> None:
    path = tmp_path / "toy-small.csv"
    stored_numbers.merge(
        path, ["T/a"], [stored_numbers.Number("T/a", "a", 0, 0.5, "r1", "now", "abc, torch 2")]
    )
    (number,) = stored_numbers.read(path)
    assert (number.value, number.origin) == (0.5, "abc, torch 2")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError) as caught:
        stored_numbers.read(path)
    assert caught.value.lines[0].startswith(f"{path}:{line}: is damaged")


@pytest.mark.parametrize("line", [0, 1])
def test_damaged_results_of_claims(tmp_path: Path, line: int) -> None:
    lines = (stored_numbers.RESULTS / "false-verdicts.csv").read_text().splitlines()
    path = tmp_path / "false-verdicts.csv"
    path.write_text("\n".join(lines))
    false_verdicts.stored(tmp_path)
    path.write_text("\n".join([*lines[:line], "<<<<<<< HEAD", *lines[line:]]))
    with pytest.raises(UserError) as caught:
        false_verdicts.stored(tmp_path)
    assert caught.value.lines[0].startswith(f"{path}:{line + 1}: is damaged")


def studies(storage: optuna.storages.BaseStorage) -> list[optuna.Study]:
    names = [study.study_name for study in storage.get_all_studies()]
    return [optuna.load_study(study_name=name, storage=storage) for name in names]


def content(path: Path) -> str:
    """All that is read from a journal, or the line with which it is refused."""
    try:
        return repr([study.get_trials() for study in studies(open_storage(str(path)).optuna)])
    except UserError as error:
        (line,) = error.lines
        return line


def test_a_damaged_journal_is_refused_or_has_lost_its_end(tmp_path: Path) -> None:
    """Numbers that it holds steer the sampler alone: results of trials come from their runs."""
    path = tmp_path / "tuning.journal"
    study = optuna.create_study(study_name="s", storage=open_storage(str(path)).optuna)
    for value in (0.5, 1.5):
        trial = study.ask({"rate": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True)})
        trial.set_user_attr("from", "sampler")
        study.tell(trial, value)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    after = []  # so many lines
    for count in range(len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        after.append(content(path))
    no_journal = f"--storage {path}: is not an Optuna journal. Name another file"
    path.write_bytes(whole.replace(b'"op_code":4', b'"op_code":', 1))
    assert content(path).startswith(f"--storage {path}: is damaged")
    for end in range(0, len(whole), 17):
        path.write_bytes(whole[:end])
        assert content(path) in [no_journal, *after]


def test_damage_is_found_while_a_campaign_goes_on(tmp_path: Path) -> None:
    """Another process has read the journal, and damage comes to what it has not read."""
    path = tmp_path / "tuning.journal"
    storage = open_storage(str(path))
    writer = open_storage(str(path)).optuna
    optuna.create_study(study_name="first", storage=writer)
    assert len(storage.optuna.get_all_studies()) == 1
    optuna.create_study(study_name="second", storage=writer)
    path.write_text(path.read_text().replace('"second"', "second"))
    with pytest.raises(UserError, match="is damaged"), storage_errors_explained(storage.name):
        optuna.create_study(study_name="third", storage=storage.optuna)
