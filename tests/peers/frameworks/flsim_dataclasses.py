"""FLSim's data classes have mutable defaults, which Python refuses from 3.11 on unless they can be hashed."""

import dataclasses
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

original = dataclasses.dataclass


def hashable(kind: Any = None, /, **options: Any) -> Any:
    """Make a data class; one of FLSim can be hashed."""
    if kind is None:
        return functools.partial(hashable, **options)
    if kind.__module__.startswith("flsim"):
        options["unsafe_hash"] = True
    return original(kind, **options)


@contextmanager
def hashable_dataclasses() -> Iterator[None]:
    """Make the data classes of FLSim hashable while its modules are imported."""
    dataclasses.dataclass = hashable
    yield
    dataclasses.dataclass = original
