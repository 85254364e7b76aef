"""Flower's records as tensors, and back: arrays as a vector, a client's state as bytes.

`FlowerWorld` sends models to the ClientApp as records, and reads updates and states from its replies.

Fixed: the order of arrays in the vector, and records in Flower's own form.
"""

from __future__ import annotations

import json
import math
from io import BytesIO
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from torch import Tensor, nn

NUMPY = "numpy.ndarray"  # the serialisation of an array's data
LENGTH = 8  # bytes at the start of a packed state, with the length of its JSON
RECORDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (ArrayRecord, ConfigRecord, MetricRecord)}


class ArraySlot(NamedTuple):
    """An array's place in the vector."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    header: bytes  # of NumPy's format, before the array's data
    first: int  # in the vector
    size: int

    @property
    def whole(self) -> bool:
        """True if the array holds integers or booleans, rounded when sent."""
        return self.dtype.kind in "iub"


class Layout:
    """The arrays of a model as a vector [d], in order.

    The vector is in double precision if an array is, and else in single. Integers, such as a layer's count of
    mini-batches, are numbers of the vector like all others, and are rounded when they are sent.

    Raises:
        ValueError: There is no array, or an array holds no numbers.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        if not arrays:
            raise ValueError("it has no array: return the model's arrays")
        self.slots: list[ArraySlot] = []
        self.d = 0
        for name, array in arrays.items():
            if array.dtype.kind not in "fiub":
                raise ValueError(f"array '{name}' must be of numbers, not of type {array.dtype}")
            slot = ArraySlot(name, array.dtype, array.shape, _header(array), self.d, array.size)
            self.slots.append(slot)
            self.d += array.size
        double = any(slot.dtype == np.float64 for slot in self.slots)
        self.dtype = torch.float64 if double else torch.float32

    @classmethod
    def of(cls, model: Any) -> tuple[Self, Tensor]:
        """Return layout and vector of a model: a record, a module, a state_dict, or a list of arrays.

        Raises:
            ValueError: It is none of these.
        """
        arrays = {name: array.numpy() for name, array in record_of(model).items()}
        layout = cls(arrays)
        return layout, layout._joined(list(arrays.values()))

    def record(self, vector: Tensor) -> ArrayRecord:
        """Return a vector [d] as arrays of the types and shapes of the first model."""
        numbers = vector.detach().cpu().numpy()
        return ArrayRecord({slot.name: self._array(slot, numbers) for slot in self.slots})

    def vector(self, record: ArrayRecord) -> Tensor:
        """Return the vector [d] of returned arrays, by name or by place.

        Raises:
            ValueError: There are more or fewer of them, or one has another shape.
        """
        names = [slot.name for slot in self.slots]
        if len(record) != len(names):
            raise ValueError(
                f"it returned {len(record)} arrays, but must return {len(names)}, as it received"
            )
        by_name = record.keys() == set(names)
        arrays = [record[name] for name in names] if by_name else list(record.values())
        return self._joined([_read(slot, array) for slot, array in zip(self.slots, arrays, strict=True)])

    def _array(self, slot: ArraySlot, numbers: np.ndarray) -> Array:
        """Return a slot's part of a vector [d] as Flower's array."""
        part = numbers[slot.first : slot.first + slot.size]
        if slot.whole:
            part = np.rint(part)
        data = np.ascontiguousarray(part.astype(slot.dtype, copy=False))
        return Array(
            dtype=str(slot.dtype), shape=slot.shape, stype=NUMPY, data=b"".join((slot.header, data.data))
        )

    def _joined(self, arrays: list[np.ndarray]) -> Tensor:
        """Return arrays in the order of the slots as a vector [d]."""
        vector = torch.empty(self.d, dtype=self.dtype)
        numbers = vector.numpy()
        for slot, array in zip(self.slots, arrays, strict=True):
            numbers[slot.first : slot.first + slot.size] = array.reshape(-1)
        return vector


def record_of(model: Any) -> ArrayRecord:
    """Return a model as Flower's arrays.

    Raises:
        ValueError: It is neither a record, a module, a state_dict nor a list of arrays.
    """
    if isinstance(model, nn.Module):
        model = model.state_dict()
    if isinstance(model, ArrayRecord):
        return model
    if isinstance(model, dict) and all(isinstance(value, Tensor) for value in model.values()):
        return ArrayRecord(model)
    if isinstance(model, list | tuple) and all(isinstance(value, np.ndarray) for value in model):
        return ArrayRecord([*model])
    kind = type(model).__name__
    raise ValueError(f"it returned a {kind}: return an ArrayRecord, a module, a state_dict or NumPy arrays")


def _header(array: np.ndarray) -> bytes:
    """Return the header of an array in NumPy's format."""
    file = BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return file.getvalue()[: len(file.getvalue()) - array.nbytes]


def _read(slot: ArraySlot, array: Array) -> np.ndarray:
    """Return the numbers of a returned array; raise ValueError for another shape."""
    data = array.data
    if data.startswith(slot.header) and len(data) == len(slot.header) + slot.size * slot.dtype.itemsize:
        return np.frombuffer(data, slot.dtype, slot.size, len(slot.header))
    numbers = array.numpy()
    if numbers.shape != slot.shape:
        raise ValueError(
            f"it returned array '{slot.name}' of shape {list(numbers.shape)}, but must keep the "
            f"shape {list(slot.shape)}"
        )
    if numbers.dtype.kind not in "fiub":
        raise ValueError(f"it returned array '{slot.name}' of type {numbers.dtype}, but must return numbers")
    return numbers


def packed(state: RecordDict) -> dict[str, Tensor]:
    """Return a client's state as a tensor of bytes, by name."""
    data: list[bytes] = []

    def plain(value: Any) -> Any:
        if isinstance(value, Array):
            data.append(value.data)
            return [value.dtype, list(value.shape), value.stype, len(value.data)]
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    records = [
        [name, type(record).__name__, [[key, plain(value)] for key, value in record.items()]]
        for name, record in state.items()
    ]
    header = json.dumps(records).encode()
    content = b"".join([len(header).to_bytes(LENGTH, "little"), header, *data])
    return {"state": torch.frombuffer(bytearray(content), dtype=torch.uint8)}


def unpacked(tensors: dict[str, Tensor]) -> RecordDict:
    """Return a client's state from the result of `packed`; an empty state from no tensor."""
    state = RecordDict()
    if not tensors:
        return state
    content = tensors["state"].cpu().numpy().tobytes()
    at = LENGTH + int.from_bytes(content[:LENGTH], "little")

    def array(dtype: str, shape: list[int], stype: str, length: int) -> Array:
        nonlocal at
        at += length
        return Array(dtype=dtype, shape=tuple(shape), stype=stype, data=content[at - length : at])

    for name, kind, items in json.loads(content[LENGTH:at]):
        if kind == ArrayRecord.__name__:
            state[name] = ArrayRecord({key: array(*value) for key, value in items})
        else:
            state[name] = RECORDS[kind]({key: _unpacked(value) for key, value in items})
    return state


def _unpacked(value: Any) -> Any:
    """Return a value of a record from its JSON; bytes are written in hex."""
    if isinstance(value, dict):
        return bytes.fromhex(value["bytes"])
    return [_unpacked(item) for item in value] if isinstance(value, list) else value


def numbers(content: RecordDict) -> dict[str, float]:
    """Return the single numbers among the metrics of a reply."""
    return {
        name: float(value)
        for record in content.metric_records.values()
        for name, value in record.items()
        if isinstance(value, int | float)
    }


def is_loss(name: str) -> bool:
    """Return whether a metric is a loss, by name."""
    return name.lower().replace("-", "_").rpartition("_")[2] == "loss"


def mean(values: list[float], weights: list[float]) -> float:
    """Return the weighted mean of the clients' values."""
    total = math.fsum(weights)
    products = [value * weight for value, weight in zip(values, weights, strict=True)]
    return math.fsum(products) / total if total else math.nan
