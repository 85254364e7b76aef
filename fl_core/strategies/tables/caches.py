"""Tables of the clients' newest updates [n, d]: at full or half precision, or quantised to 8 bits."""

from typing import Literal

import torch
from torch import Tensor

from fl_core.server.server import Server

Precision = Literal["full", "half", "int8"]
LEVELS = 127  # of an 8-bit number, on each side of zero


def empty(server: Server, precision: Precision) -> dict[str, Tensor]:
    """Return a table of zeros."""
    zeros = server.zeros(server.n)
    if precision == "full":
        return {"rows": zeros}
    if precision == "half":
        return {"rows": zeros.half()}
    return {"rows": zeros.to(torch.int8), "scale": zeros[:, 0].clone()}


def put(cache: dict[str, Tensor], client: int, value: Tensor, server: Server) -> None:
    """Keep a client's newest update [d]."""
    if "scale" in cache:
        value = _quantised(cache, client, value, server)
    cache["rows"][client] = value


def rows(cache: dict[str, Tensor], which: int | Tensor, like: Tensor) -> Tensor:
    """Return the cached updates of a client [d], or of a mask's clients [k, d], in the type of `like`."""
    updates = cache["rows"][which].to(like.dtype)
    return updates * cache["scale"][which].unsqueeze(-1) if "scale" in cache else updates


def _quantised(cache: dict[str, Tensor], client: int, value: Tensor, server: Server) -> Tensor:
    """Return q = ⌊U/s + u⌋ with s = max|U|/127 and u uniform in [0, 1): s·q is U on average."""
    scale = value.abs().max() / LEVELS
    cache["scale"][client] = scale
    if scale == 0:
        return torch.zeros_like(value, dtype=torch.int8)
    noise = torch.from_numpy(server.stream("rounding", client, server.updates).random(len(value)))
    return (value / scale + noise.to(value)).floor().clamp(-LEVELS, LEVELS).to(torch.int8)
