"""Keys: short names of what is computed, by which it is known as computed already."""

from __future__ import annotations

import hashlib
import json
from typing import Any

# What all keys begin with: raised when every run may give other numbers than before. Where only the meaning
# of a part changes, its `version` is raised instead.
RESULTS = 2


def key(identity: Any) -> str:
    """The key of what has this identity, plain JSON data."""
    text = json.dumps(identity, sort_keys=True)
    return f"{RESULTS}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def is_older(key: str) -> bool:
    """Whether a key was made by an earlier version, whose results are not those of this one."""
    return not key.startswith(f"{RESULTS}-")
