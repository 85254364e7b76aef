"""Peers: results of other frameworks' servers, our options with equal results, and repeated runs.

`asyncfl list peers` and the documentation show them. `python -m tests.peers` writes the entries,
`peers.yaml`: it replays recorded arrivals through the code of each framework, and makes a run of each
framework twice.

Fixed: names of the fields, in which `peers.yaml` is stored. A test repeats every entry with our strategies.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from benchmarks import yaml_io
from fl_core.parts import Frozen

FILE = Path(__file__).parent / "peers.yaml"
TOLERANCE = 1e-10  # largest difference of a coordinate at which models agree


class Peer(Frozen):
    """An asynchronous server of another framework in a given setting, on the recorded arrivals."""

    id: str  # the framework's short name and the number of the setting
    framework: str
    package: str
    version: str
    algorithm: str  # FedAsync or FedBuff, by the framework's documentation
    where: str  # class or function
    setting: str  # options of the framework
    computes: str  # the formula in its source
    ours: Mapping[str, Any] | None  # fields of our strategy with equal results; None if there are none
    paper: Mapping[str, Any] = {}  # fields of our strategy for the paper's rule in this setting
    tolerance: float = TOLERANCE  # larger if the framework computes in float32
    # First arrival after which the model differs from the paper's rule, on quadratics; None if it never does
    first_step: int | None
    first_step_digits: int | None  # the same, on digits
    error: str = ""  # of the framework's code; empty without any
    note: str = ""
    stubs: str = ""  # replaced modules that are not installed

    @property
    def short(self) -> str:
        """The framework's short name."""
        return self.id.rpartition("-")[0]

    @property
    def strategy(self) -> str:
        """Name of the package's strategy with the options."""
        return {"FedAsync": "fedasync", "FedBuff": "fedbuff"}[self.algorithm]

    @property
    def verdict(self) -> str:
        """Agreement with the paper's rule, in a few words."""
        if self.error:
            return "fails"
        if self.first_step is None and self.first_step_digits is None:
            return "agrees" if self.tolerance == TOLERANCE else "agrees, float32"
        return f"differs from arrival {self.first_step or self.first_step_digits}"

    @property
    def options(self) -> str:
        """Strategy and options of the package with equal results, as for `--set`; empty without any."""
        if self.ours is None:
            return ""
        return " ".join([self.strategy, *(f"{key}={value}" for key, value in self.ours.items())])


class Repeat(Frozen):
    """A run of another framework, made twice with an equal seed, both times in a fresh process."""

    id: str  # the framework's short name and the number of the run
    framework: str
    package: str
    version: str
    example: str  # script of the framework
    setting: str  # options and environment
    # Largest difference of a coordinate of the final models, to one digit. None if not run, or if updates
    # arrived in another order, after which differences are random
    difference: float | None
    same_order: bool | None  # whether updates arrived in the same order; None: not run
    note: str = ""  # reason of a difference, or of not being run

    @property
    def short(self) -> str:
        """The framework's short name."""
        return self.id.rpartition("-")[0]

    @property
    def verdict(self) -> str:
        """Outcome in a few words."""
        if self.same_order is None:
            return "not run"
        if not self.same_order:
            return "different, another order of arrivals"
        return (
            f"different by {self.difference:.0e}, the same order of arrivals"
            if self.difference
            else "identical"
        )


def peers() -> tuple[Peer, ...]:
    """Return all settings of servers; raise pydantic's ValidationError if the file is invalid."""
    return TypeAdapter(tuple[Peer, ...]).validate_python(_stored()["servers"])


def repeats() -> tuple[Repeat, ...]:
    """Return all repeated runs; raise pydantic's ValidationError if the file is invalid."""
    return TypeAdapter(tuple[Repeat, ...]).validate_python(_stored()["repeats"])


def _stored() -> Mapping[str, Any]:
    stored: Mapping[str, Any] = yaml_io.parse(FILE.read_bytes())[0]
    return stored
