"""Discrepancies between a paper's text, published code and computed results, with our reading.

`discrepancies.yaml` has the entries. `asyncfl list errata` prints them, and report pages show those that
concern their runs.

Fixed: names of the fields, and the ids, which docs and code cite.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from benchmarks import yaml_io
from fl_core.parts import Frozen
from fl_core.recorded_names import OF_STRATEGY, STRATEGY_NAME

FILE = Path(__file__).parent / "discrepancies.yaml"

SHOW = "show"  # the key of a suite's shown metrics

Settings = Mapping[str, Any]  # dotted keys of a suite → values, as in `--set KEY=VALUE`


class Discrepancy(Frozen):
    """A difference relevant to users between a paper and the paper's code, with both readings."""

    id: Annotated[str, Field(pattern=r"^X-\d+$")]
    paper: str  # paper and place in it
    text: str  # statement of the paper
    code: str  # behaviour of the paper's code, or a computed result
    reading: str  # of this package, and how to choose the other one
    module: str  # of this package, with the implementation
    about: Settings  # settings of the suites concerned
    ours: Settings = Field(default_factory=dict)  # our reading, which is the default
    other: Settings = Field(default_factory=dict)  # the other reading; empty if not available

    def concerns(self, params: Mapping[str, str], metrics: Collection[str] = ()) -> bool:
        """Return whether the discrepancy concerns a run with parameters (by dotted key) and shown metrics."""
        if not set(self.about.get(SHOW, metrics)) <= {*metrics}:
            return False
        return all({params.get(key), params.get(f"{key}.name")} & names for key, names in self._conditions())

    def _conditions(self) -> Iterator[tuple[str, set[str]]]:
        """Yield the recorded parameters required of a run, each with the matching values.

        Of a strategy the name alone counts: its other fields in `about` only complete a valid suite.
        """
        for key, value_of_key in self.about.items():
            if key == "strategies":
                yield (
                    STRATEGY_NAME,
                    {part if isinstance(part, str) else part["name"] for part in value_of_key},
                )
            elif key != SHOW:
                prefix = f"{OF_STRATEGY}local" if key == "local" else key
                for name, value in value_of_key.items():
                    yield f"{prefix}.{name}", {str(value)}


def discrepancies() -> tuple[Discrepancy, ...]:
    """Return all entries, by number; raise pydantic's ValidationError if the file is invalid."""
    return TypeAdapter(tuple[Discrepancy, ...]).validate_python(yaml_io.parse(FILE.read_bytes())[0])
