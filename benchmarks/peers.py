"""Peers: results of other frameworks' servers on recorded arrivals, and options with equal results.

The entries are written by `python -m tests.peers`, which replays the arrivals through each framework's code.
"""

from collections.abc import Mapping, Sequence
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
    difference: float | None  # largest difference from `ours` on both problems
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


def peers() -> tuple[Peer, ...]:
    """Return all entries; raise pydantic's ValidationError if the file is invalid."""
    return TypeAdapter(tuple[Peer, ...]).validate_python(yaml_io.parse(FILE.read_bytes())[0])


def save(entries: Sequence[Peer]) -> None:
    """Write the entries."""
    comment = "# Written by `python -m tests.peers` from tests/peers/frameworks.yaml; not edited by hand.\n"
    dumped = [entry.model_dump(mode="json") for entry in entries]
    FILE.write_text(comment + yaml_io.dump(dumped))
