"""The colour of a strategy in MLflow's charts, the same as on the report page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# Okabe–Ito hues, each with a contrast of 3 : 1 to white (see `reports.figures.look`).
COLOURS = ("#244d85", "#cf2f17", "#3a7e66", "#d77f29", "#a280b1", "#4e94fe", "#3e204a", "#7f43cf")


def colours(strategies: Iterable[str]) -> dict[str, str]:
    """A colour for each label, in the order of the alphabet; after eight they begin again."""
    ordered = sorted(set(strategies), key=natural)
    return {strategy: COLOURS[at % len(COLOURS)] for at, strategy in enumerate(ordered)}


def natural(text: str) -> list[Any]:
    """A key that sorts 'F8' before 'F80' and 'FedBuff 5' before 'FedBuff 10'."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text.casefold())
    return [(0, float(part), "") if at % 2 else (1, 0.0, part) for at, part in enumerate(parts)]
