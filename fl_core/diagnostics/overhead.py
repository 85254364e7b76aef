"""The memory that a strategy and its local work keep: bytes at the server and at the clients."""

from types import SimpleNamespace
from typing import Any

from torch import Tensor

from fl_core.loop.simulation import Simulation
from fl_core.server.state import attributes


def overhead(simulation: Simulation) -> dict[str, int]:
    """Return the bytes of tensors kept beside models and updates: at the server, at all clients together."""
    server = simulation.server
    memory, local = attributes(server.memory), attributes(server.local)
    kept = {name: memory[name] for name in simulation.strategy.kept_by_clients}
    own = {name: local[name] for name in simulation.local.kept_by_clients}
    clients = tensor_bytes(kept) + tensor_bytes(own)
    up, down = tensor_bytes(simulation.state.uplink), tensor_bytes(simulation.state.downlink)
    both = [link is not None and link.feedback == "ef21" for link in (simulation.uplink, simulation.downlink)]
    return {
        "server": tensor_bytes(memory) + tensor_bytes(local) - clients + both[0] * up + down,
        "clients": clients + up + both[1] * down,
    }


def tensor_bytes(value: Any) -> int:
    """Return the bytes of all tensors in nested dicts, lists and namespaces."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    if isinstance(value, dict):
        return sum(map(tensor_bytes, value.values()))
    return sum(map(tensor_bytes, value)) if isinstance(value, list | tuple) else 0
