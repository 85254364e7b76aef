"""Tuned values as data: the file `tuned/<suite>.yaml`, written by `asyncfl tune` and read by suites.

`asyncfl run --tuned` and suites with `lr: tuned` load it. An entry is used only for a scenario and strategy
with its `digest`.

Fixed: `digest`, or else no entry of an existing file is used; keys and checksum of the file.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field, NonNegativeInt, PrivateAttr, ValidationError

from benchmarks.errors import UserError, warn, writing
from benchmarks.suite.validation_errors import complaints, lines_of
from benchmarks.yaml_io import content_of, dump, mapping
from fl_core import keys
from fl_core.import_guard import ALLOWED, HOW, not_own
from fl_core.parts import Frozen
from fl_core.recording.atomic import whole
from fl_core.scenario import Scenario
from fl_core.strategies.hyperparameters import FACTOR, default_of, fields_of, with_parameters
from fl_core.strategies.strategy import Strategy
from fl_core.text import nearest

FOLDER = Path(__file__).parents[1] / "tuned"
HEAD = "# Written by asyncfl tune; used by asyncfl run --tuned."
CHECKSUM = "# SHA-256 of what follows: "


class TunedEntry(Frozen):
    """Tuned values of a strategy in a scenario."""

    scenario: str
    strategy: str
    digest: str  # of scenario and strategy, without seeds and what was tuned
    parameters: dict[str, float | int | str]
    value: float  # of the objective; mean over seeds
    spread: float | None  # standard deviation over seeds; None for a single one
    by_seed: tuple[float, ...]
    diverged: int = 0  # number of diverged seeds
    unreached: int = 0  # number of seeds that missed the target
    before: float | None = None  # objective with the suite's own values; None if not tried
    # Largest over smallest rate, local × server, of the trials whose objective is within 2 % of the best
    width: float | None = None
    study: str  # `Study.name`
    reused_from: str | None = None  # strategy whose values these are, by `tuning.reuse`


class TunedFile(Frozen):
    """Settings and results of a campaign; the tuned values of a suite."""

    suite: str
    objective: str
    metric: str
    direction: str
    judged_on: str
    trials: int  # of each strategy in each scenario
    seeds: tuple[NonNegativeInt, ...]
    budget: str
    sampler: str
    versions: dict[str, str]
    tuned: tuple[TunedEntry, ...]
    code: dict[str, str] = Field(default_factory=dict)  # digests of the user's own code, by import path
    _path: Path = PrivateAttr(default=Path())  # of the file, once it is read

    def warn_of_edits(self, code: Mapping[str, str]) -> None:
        """Warn if user code, given by current digests, was edited after the values were tuned."""
        tuned_with = self.code
        if edited := [path for path in tuned_with if code.get(path, tuned_with[path]) != tuned_with[path]]:
            warn(f"{self._path}: tuned before {', '.join(edited)} was edited. Rerun `asyncfl tune`.")

    def strategy(
        self, scenario: Scenario, strategy: Strategy, scenario_label: str, strategy_label: str
    ) -> Strategy:
        """Return the strategy with the values tuned in the scenario.

        Entries are found by digest; labels only decide between several of them, since suites may rename them.

        Raises:
            UserError: There is no such entry, or its values are not valid for the strategy.
        """
        sets = {frozenset(entry.parameters) for entry in self.tuned}
        digests = {names: digest(scenario, strategy, names) for names in sets}
        fitting = [entry for entry in self.tuned if entry.digest == digests[frozenset(entry.parameters)]]
        labels = {(entry.scenario, entry.strategy) for entry in self.tuned}
        if not fitting and (scenario_label, strategy_label) in labels:
            budget, difference = scenario.budget.label(), "another scenario or other hyper-parameters"
            if budget != self.budget:
                difference = f"a budget of {self.budget}, not of {budget}"
            raise UserError(
                f"{self._path}: the values of {strategy_label} in {scenario_label} were tuned for "
                f"{difference}. Rerun `asyncfl tune`."
            )
        if not fitting:
            places = list(dict.fromkeys(entry.scenario for entry in self.tuned))
            missing = (
                scenario_label if scenario_label not in places else f"{strategy_label} in {scenario_label}"
            )
            hint = nearest(scenario_label, places) if scenario_label not in places else "."
            raise UserError(f"{self._path}: no tuned values for {missing}{hint} Rerun `asyncfl tune`.")
        entry = max(
            fitting, key=lambda entry: (entry.scenario == scenario_label, entry.strategy == strategy_label)
        )
        try:
            return with_parameters(strategy, entry.parameters, scenario)
        except ValidationError as error:
            first = next(complaints(error, type(strategy), strategy.model_dump()))
            wrong = f"{'.'.join(map(str, first.steps))}: {first.sentence}"
        except ValueError as error:
            wrong = str(error)
        raise UserError(
            f"{self._path}: the values of {strategy_label} in {scenario_label} do not fit: {wrong}. "
            "Rerun `asyncfl tune`"
        )

    def check_seeds(self, seeds: tuple[int, ...]) -> None:
        """Raise UserError for values tuned on any of the given seeds."""
        if shared := sorted(set(seeds) & set(self.seeds)):
            raise UserError(
                f"{self._path}: tuned on seed {shared[0]}, which is also a seed of the suite. Tune "
                "on other seeds (tuning.seeds)"
            )


def load(path: Path, suite: str) -> TunedFile:
    """Load the values of a file; UserError if missing or not a suite's tuned values."""
    if not path.is_file():
        raise UserError(f"{suite} is not tuned: {path} does not exist. Create it with asyncfl tune")
    text = content_of(path)
    document = mapping(path, text)
    _check_digest(path, text)
    try:
        spec = TunedFile.model_validate(document)
    except ValidationError as error:
        first = next(lines_of(path, error, TunedFile, document))
        raise UserError(f"{first}. The file was not written by asyncfl tune. Name another") from None
    if names := [value for entry in spec.tuned for value in entry.parameters.values() if ":" in str(value)]:
        refusal = not_own(path)
        if refusal and not ALLOWED.get():
            raise UserError(f"{path}: '{names[0]}' is not imported, since {refusal}: {HOW}")
    spec._path = path
    return spec


def _check_digest(path: Path, text: bytes) -> None:
    """Raise UserError for a checksum mismatch."""
    try:
        head, mark, rest = text.decode().replace("\r\n", "\n").partition(CHECKSUM)
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8. Rerun `asyncfl tune`") from None
    if mark and head.startswith("#"):
        checksum, _, values = rest.partition("\n")
        if checksum != _checksum(values):
            raise UserError(
                f"{path}: checksum mismatch: the file is corrupt or was edited by hand. Rerun `asyncfl tune`"
            )


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: Path, tuned: TunedFile) -> None:
    """Write the file atomically; may raise UserError."""
    text = dump(tuned.model_dump(mode="json"))
    with writing(path, "; name another file with --out"), whole(path) as partial:
        partial.write_text(f"{HEAD}\n{CHECKSUM}{_checksum(text)}\n{text}", encoding="utf-8")


def digest(scenario: Scenario, strategy: Strategy, tuned: Iterable[str]) -> str:
    """Return a hash of scenario and strategy, without the parameters set by tuning.

    Defaults are left out, so that old entries stay valid if a new key is added to suites.
    """
    setting = scenario.model_dump(mode="json", exclude_defaults=True, exclude={"evaluations"})
    setting["problem"].pop("target", None)  # without influence on models
    sets = {"local_lr" if name == FACTOR else name for name in tuned}
    fixed = {
        key: str(value)
        for key, value in fields_of(strategy).items()
        if key not in sets and (key == "local.name" or value != default_of(strategy, key))
    }
    return keys.digest(json.dumps([setting, strategy.reference(), fixed], sort_keys=True).encode())
