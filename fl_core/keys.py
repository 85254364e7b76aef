"""Keys: short names of computations, by which results that exist already are found."""

import hashlib
import json
from typing import Any

# The prefix of all keys: raised when any run may give other numbers than before. Where only the meaning of
# one part changes, its `version` is raised instead.
RESULTS = 2


def key(identity: Any) -> str:
    """Return the key of an identity, which is plain JSON data."""
    text = json.dumps(identity, sort_keys=True)
    return f"{RESULTS}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def is_older(key: str) -> bool:
    """Return whether a key was made by an earlier version, whose results may differ."""
    return not key.startswith(f"{RESULTS}-")
