"""A recorded run as the functions of this folder see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pandas as pd


class Tables(Protocol):
    """The record of a run."""

    @property
    def curve(self) -> pd.DataFrame:
        """One row per evaluation: iteration, updates, time, then metrics by name."""

    @property
    def clients(self) -> pd.DataFrame:
        """One row per client."""


class Ran(Protocol):
    """A recorded run."""

    @property
    def status(self) -> str:
        """`done`, `diverged` or `stalled`."""

    @property
    def params(self) -> Mapping[str, str]:
        """Its description, flat: `problem.partition.alpha` → `0.1`."""

    @property
    def totals(self) -> Mapping[str, float]:
        """Metrics of the whole run: `kept_bytes/server`, `staleness/mean`, `diagnostics/noise_sq`."""

    @property
    def files(self) -> Tables:
        """Its tables."""
