"""The server as seen by strategies and local work: model and state, clients, jobs in flight.

`server.Server` is the interface for strategies; the loop (`fl_core/loop`) creates it and owns its state.
Fixed: the public names (docs/reference/strategy.md), and every draw and sum, bit for bit.
"""
