"""Tables with a row for each client [n, d]: at full or half precision, or quantised to 8 bits.

Strategies that remember every client's update keep one in `server.memory`. A table holds rows only for the
clients that were heard from: it grows by blocks of rows, none of which moves.

Fixed: rows and their rounding, whose noise comes from the stream "rounding". Free: the layout in blocks.
"""

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from fl_core.server.server import Server

Precision = Literal["full", "half", "int8"]
Table = dict[str, Any]  # plain data, as `server.memory` takes it
LEVELS = 127  # of an 8-bit number, on each side of zero
MAX_BLOCK_BYTES = 2**20  # of a block with two rows or more


def empty(server: Server, precision: Precision = "full") -> Table:
    """Return a table of zeros: each client's place among all rows, blocks of rows, and for int8 its scale."""
    dtype = {"full": server.model.dtype, "half": torch.half, "int8": torch.int8}[precision]
    rows = min(server.n, max(1, MAX_BLOCK_BYTES // (dtype.itemsize * len(server.model))))
    table: Table = {"places": {}, "blocks": [server.zeros(rows).to(dtype)]}
    return table | {"scales": {}} if precision == "int8" else table


def put(table: Table, client: int, value: Tensor, server: Server) -> None:
    """Keep a client's newest update [d]."""
    if "scales" in table:
        value = _quantised(table, client, value, server)
    _place(table, client).copy_(value)


def add(table: Table, client: int, value: Tensor) -> None:
    """Add to a client's row [d], at full precision."""
    _place(table, client).add_(value)


def row(table: Table, client: int, like: Tensor) -> Tensor:
    """Return a client's row [d] in the type of `like`; at full precision a view."""
    update = _place(table, client).to(like.dtype)
    return update * table["scales"].get(client, 0) if "scales" in table else update


def rows(table: Table, clients: Iterable[int], like: Tensor) -> Tensor:
    """Return a copy of the rows of k clients [k, d], in order and in the type of `like`."""
    places, blocks = table["places"], table["blocks"]
    if not (clients := list(clients)):
        return like.new_zeros((0, len(like)))
    if len(blocks) == 1 and all(client in places for client in clients):
        index = torch.tensor([places[client] for client in clients], dtype=torch.long, device=like.device)
        updates = blocks[0][index]
    else:
        zero = blocks[0].new_zeros(blocks[0].shape[1:])
        updates = torch.stack([_place(table, i) if i in places else zero for i in clients])
    updates = updates.to(like.dtype)
    if "scales" in table:
        scales = [table["scales"].get(client, like.new_zeros(())) for client in clients]
        updates = updates * torch.stack(scales).unsqueeze(-1)
    return updates


def _place(table: Table, client: int) -> Tensor:
    """Return the memory of a client's row [d], new if missing."""
    places, blocks = table["places"], table["blocks"]
    block, place = divmod(places.setdefault(client, len(places)), len(blocks[0]))
    if block == len(blocks):
        blocks.append(torch.zeros_like(blocks[0]))
    memory: Tensor = blocks[block][place]
    return memory


def _quantised(table: Table, client: int, value: Tensor, server: Server) -> Tensor:
    """Return q = ⌊U/s + u⌋ with s = max|U|/127 and u uniform in [0, 1): s·q is U on average."""
    scale = table["scales"][client] = value.abs().max() / LEVELS
    if scale == 0:
        return torch.zeros_like(value, dtype=torch.int8)
    noise = torch.from_numpy(server.stream("rounding", client, server.updates).random(len(value)))
    return (value / scale + noise.to(value)).floor().clamp(-LEVELS, LEVELS).to(torch.int8)
