"""The memory of a strategy and local work: bytes at the server and at the clients."""

from fl_core.loop.simulation import Simulation
from fl_core.server.state import attributes, tensor_bytes


def overhead(simulation: Simulation) -> dict[str, int]:
    """Return the bytes of tensors besides models and updates: at the server, at all clients together."""
    server = simulation.server
    memory, local = attributes(server.memory), attributes(server.local)
    memory["optimizer"] = simulation.state.moments
    kept = {name: memory[name] for name in simulation.strategy.kept_by_clients}
    own = {name: local[name] for name in simulation.local.kept_by_clients}
    clients = tensor_bytes(kept) + tensor_bytes(own)
    moments = tensor_bytes(simulation.state.client_moments)
    up, down = tensor_bytes(simulation.state.uplink), tensor_bytes(simulation.state.downlink)
    links = (simulation.messages.uplink, simulation.messages.downlink)
    both = [link is not None and link.feedback == "ef21" for link in links]
    return {
        "server": tensor_bytes(memory) + tensor_bytes(local) - clients + both[0] * up + down,
        "clients": clients + moments + up + both[1] * down,
    }
