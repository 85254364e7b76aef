"""Keys: hashes that identify a computation or a file, for finding existing results.

`Experiment.key` names a run in MLflow; digests of the user's code and data stand beside it.

Fixed: both hashes. Stored runs, studies, tuned values and digests of data are found by their texts.
"""

import hashlib
import json
import re
from typing import Any

# Prefix of all keys, raised when any run may give other numbers than before: no stored run counts any more.
# If only one part changes its meaning, raise the part's `version` instead.
RESULTS = 2

KEY = re.compile(r"([0-9]+-)?[0-9a-f]{16}")  # of any version


def digest(content: bytes | memoryview) -> str:
    """Return the name of a content: 16 hex digits of the SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def key(identity: Any) -> str:
    """Return the key of an identity in plain JSON data."""
    return f"{RESULTS}-{digest(json.dumps(identity, sort_keys=True).encode())}"


def is_older(key: str) -> bool:
    """Return whether a key is from an earlier version with possibly different results."""
    return bool(KEY.fullmatch(key)) and not key.startswith(f"{RESULTS}-")
