"""Peers: results of other frameworks' servers, our options with equal results, and repeated runs.

The entries are written by `python -m tests.peers`. It replays recorded arrivals through each framework's
code, and makes a run of each framework twice.
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
    algorithm: str  # whose rule it follows, as its documentation says
    where: str  # class or function
    setting: str  # options of the framework
    computes: str  # the formula in its source
    ours: Mapping[str, Any] | None  # fields of our strategy that give the same; None: none do
    paper: Mapping[str, Any] = {}  # fields of our strategy that are the paper's rule in this setting
    tolerance: float = TOLERANCE  # larger where the framework computes in float32
    first_step: (
        int | None
    )  # arrival after which it leaves the paper's rule, on quadratics; None: it never does
    first_step_digits: int | None  # the same, on digits
    error: str = ""  # in which the framework's code ended
    note: str = ""
    stubs: str = ""  # what stood in for modules that are not installed

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
    """A run of another framework, made twice with the same seed, each in a fresh process."""

    id: str  # the framework's short name and the number of the run
    framework: str
    package: str
    version: str
    example: str  # what is run
    setting: str  # options and environment
    # Largest difference of a coordinate of the final models, one digit; None: not run, or left to chance, as
    # it is after another order of arrivals
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
