"""Metrics: name, title, direction, unit. Each is declared once, and the declaration travels with the run.

A problem says which metrics it records (`Problem.metrics`), a user's LightningModule in its attribute
`metrics`. Pages, tables, tuning, claims and the terminal read the declarations.

Fixed: names and directions; names are recorded, and suites and claims contain them. Titles are recorded too,
and stand on published pages, but nothing is found by them.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from pydantic import TypeAdapter

from fl_core.recorded_names import BYTES, CLOCKS, DIAGNOSED, ENERGY, SPREAD, TO_TARGET, Name, Total


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity measured on a model: name, title, direction, unit."""

    name: str  # as recorded, e.g. test/accuracy
    title: str = ""  # in tables and figures; the name if left out
    higher: bool | None = None  # whether higher values are better; None: no direction, so it cannot rank
    share: bool = False  # between 0 and 1, and shown in per cent
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name)

    @property
    def short(self) -> str:
        """The name without the data set: accuracy."""
        return self.name.rpartition("/")[2]

    @property
    def in_text(self) -> str:
        """The title inside a sentence."""
        return self.title if self.title[:2].isupper() else self.title[0].lower() + self.title[1:]

    @property
    def heading(self) -> str:
        """Return the title and the unit."""
        unit = "%" if self.share else self.unit
        return f"{self.title} ({unit})" if unit else self.title

    @property
    def sign(self) -> int:
        """1 where higher is better, −1 where lower is.

        Raises:
            ValueError: No direction is declared.
        """
        if self.higher is None:
            raise ValueError(
                f"metric {self.name} cannot be ranked: set `higher`, whether higher values are better"
            )
        return 1 if self.higher else -1

    def judged_on(self, data: str = "") -> Self:
        """Return the metric with the name of other data than test data in the title, or of no data."""
        bare = self.title.removeprefix("Test ")
        named = f"{data} {bare}" if data and bare != self.title else bare[0].upper() + bare[1:]
        return replace(self, title=named)

    @property
    def worst_client(self) -> Metric:
        """The metric on the client with the worst value."""
        title = self.judged_on().in_text
        return Metric(
            f"worst_client/{self.short}", f"Worst client’s {title}", self.higher, self.share, self.unit
        )

    def worst(self, values: np.ndarray) -> float:
        """Return the worst of the clients' values [n]."""
        return float(values.min() if self.sign > 0 else values.max())


ACCURACY = Metric("test/accuracy", "Test accuracy", higher=True, share=True)
LOSS = Metric("test/loss", "Test loss", higher=False)
DISTANCE = Metric("distance", "Distance to the optimum", higher=False)
EXCESS_LOSS = Metric("excess_loss", "Excess loss", higher=False)

FP_LOSS = "fp/loss"

# Of the clients' training losses, recorded for every problem (`fl_core.recording.evaluation.metrics`): at the
# end of a run, and at earlier marks if requested.
FEDERATED = (
    Metric(FP_LOSS, "Federated loss Σ pᵢLᵢ", higher=False),
    Metric("fp/std", "Federated loss, std over clients", higher=False),
    Metric("sp/loss", "Surrogate loss Σ sᵢLᵢ", higher=False),
    Metric("sp/std", "Surrogate loss, std over clients", higher=False),
)
TRAINING = frozenset(metric.name for metric in FEDERATED)
SURROGATE = frozenset(name for name in TRAINING if name.startswith("sp/"))

# Metrics of a whole run, with titles for columns.
TOTALS = (
    Metric(Total.TRANSFER_SHARE, "Working time in transfers", share=True),
    Metric(Total.SERVER_BUSY, "Server busy", share=True),
    Metric(Total.LOCAL_STEPS, "Local steps"),
    Metric(Total.WALL_SECONDS, "Computing time", unit="s"),
)
# Metrics by name, for runs whose record declares none.
UNDECLARED = {
    metric.name: metric
    for metric in (ACCURACY, ACCURACY.worst_client, LOSS, *FEDERATED, DISTANCE, EXCESS_LOSS, *TOTALS)
}


# Columns of curves and metrics of whole runs, whose names no metric of a problem may have …
RESERVED = frozenset((*CLOCKS, BYTES, ENERGY, Name.UPLOADS, Name.DOWNLOADS, Name.TOKENS, *TO_TARGET, *Total))
# … and beginnings of such names
RESERVED_PREFIXES = ("clock/", "fp/", "sp/", "worst_client/", DIAGNOSED, SPREAD)
VALID_NAME = re.compile(r"[/\w.\- :]{1,250}")  # what MLflow records


@functools.cache
def name_fault(name: str) -> str:
    """Return the reason why a name is not allowed for a problem's metric, or an empty text."""
    if name in RESERVED or name.startswith(RESERVED_PREFIXES):
        return (
            f"'{name}' is the name of a quantity that every run records: choose another, such as test/{name}"
        )
    path = posixpath.normpath(name)
    if not VALID_NAME.fullmatch(name) or path != name or path.startswith((".", "/")):
        return (
            f"'{name}' is no name of a metric in MLflow: use letters, digits, _, -, ., spaces, colons and "
            "slashes, such as test/recall_at_5"
        )
    return ""


def named(name: str, declared: Iterable[Metric] = ()) -> Metric:
    """Return the metric called `name`: as declared, as known here, or without a direction."""
    return next((metric for metric in declared if metric.name == name), UNDECLARED.get(name, Metric(name)))


def as_data(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
    """Return declarations as JSON data for the record, without fields at defaults."""
    data: list[dict[str, Any]] = TypeAdapter(list[Metric]).dump_python(list(metrics), exclude_defaults=True)
    return data


@functools.lru_cache  # thousands of runs have equal declarations
def from_text(text: str) -> tuple[Metric, ...]:
    """Return the declarations in a recorded JSON text; none if the text is damaged."""
    try:
        return TypeAdapter(tuple[Metric, ...]).validate_json(text or "[]", strict=True)
    except ValueError:
        return ()
