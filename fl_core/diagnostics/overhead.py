"""The memory of a strategy and local work: bytes at the server and at the clients.

`Recorder` measures it at the end of a run.

Fixed: what is counted. Claims on memory have stored numbers of it (A-memory).
"""

from fl_core.loop.simulation import Simulation
from fl_core.server.state import attributes, tensor_bytes


def overhead(simulation: Simulation) -> dict[str, int]:
    """Return the bytes of tensors besides models and updates: at the server, at all clients together.

    A coding with error feedback keeps a memory per client and link: the sender's residual (`up`, `down`) and,
    for EF21, the receiver's copy as well.
    """
    server = simulation.server
    memory, local = attributes(server.memory), attributes(server.local)
    memory["optimizer"] = simulation.state.moments
    server_state = {name: memory[name] for name in simulation.strategy.kept_by_clients}
    local_state = {name: local[name] for name in simulation.local.kept_by_clients}
    clients = tensor_bytes(server_state) + tensor_bytes(local_state)
    moments = tensor_bytes(simulation.state.client_moments)
    up, down = tensor_bytes(simulation.state.uplink), tensor_bytes(simulation.state.downlink)
    links = (simulation.messages.uplink, simulation.messages.downlink)
    with_memory = [link is not None and link.feedback == "ef21" for link in links]
    return {
        "server": tensor_bytes(memory) + tensor_bytes(local) - clients + with_memory[0] * up + down,
        "clients": clients + moments + up + with_memory[1] * down,
    }
