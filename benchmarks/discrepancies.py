"""Discrepancies between a paper's text, the code and computed results, with the reading of the package."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from benchmarks import yaml_io
from fl_core.parts import Frozen
from fl_core.schema import OF_STRATEGY, STRATEGY_NAME

FILE = Path(__file__).parent / "discrepancies.yaml"

Settings = Mapping[str, Any]  # dotted keys of a suite → values, as in `--set KEY=VALUE`


class Discrepancy(Frozen):
    """A difference relevant to users between a paper and the paper's code, with both readings."""

    id: Annotated[str, Field(pattern=r"^X-\d+$")]
    paper: str  # and the place in it
    text: str  # what the paper says
    code: str  # what its code does, or what was computed
    reading: str  # ours, and where to find the other
    module: str  # the code that holds what is offered
    about: Settings  # the part of a suite that is meant
    ours: Settings = Field(default_factory=dict)  # the default, spelled out
    other: Settings = Field(default_factory=dict)  # the other reading; empty where it is not offered

    def concerns(self, params: Mapping[str, str]) -> bool:
        """Return whether a run with parameters, by dotted key, uses the part in question."""
        return all(params.get(key) in names for key, names in self._meant())

    def _meant(self) -> Iterator[tuple[str, set[str]]]:
        """Yield the parameters of the part with possible values; of strategies the names alone."""
        for key, meant in self.about.items():
            if key == "strategies":
                yield STRATEGY_NAME, {part if isinstance(part, str) else part["name"] for part in meant}
                continue
            prefix = f"{OF_STRATEGY}local" if key == "local" else key
            for name, value in meant.items():
                of_part = name != "name" and isinstance(value, str)  # a part within, by its name
                yield f"{prefix}.{name}{'.name' if of_part else ''}", {str(value)}


def discrepancies() -> tuple[Discrepancy, ...]:
    """Return all entries, by number; raise pydantic's ValidationError if the file is invalid."""
    return TypeAdapter(tuple[Discrepancy, ...]).validate_python(yaml_io.parse(FILE.read_bytes())[0])
