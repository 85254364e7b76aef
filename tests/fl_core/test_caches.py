"""Tables of clients' updates: as a dense table would hold them, and no larger than who was heard from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from worlds import play, scenario

from fl_core.server.server import Server
from fl_core.strategies import caches
from fl_core.strategies.asgd import ASGD


def server_of(clients: int, d: int, monkeypatch: pytest.MonkeyPatch, block_rows: int) -> Server:
    """A server with models [d] in float64, whose tables grow by so many rows at full precision."""
    monkeypatch.setattr(caches, "MAX_BLOCK_BYTES", 8 * d * block_rows)
    simulation, _ = play(ASGD(), scenario([1] * clients, centres=[[0.0] * d] * clients, updates=1))
    return simulation.server


@pytest.mark.parametrize("block_rows", [1, 3, 100])
def test_a_table_holds_what_a_dense_one_does(block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are put, added to and read in random order, also of clients never heard from."""
    n, d = 11, 3
    server, random = server_of(n, d, monkeypatch, block_rows), np.random.default_rng(1)
    table, dense = caches.empty(server), torch.zeros(n, d, dtype=torch.float64)
    for client in random.integers(0, 8, 40).tolist():
        value = torch.from_numpy(random.normal(size=d))
        if random.random() < 0.5:
            caches.put(table, client, value, server)
            dense[client] = value
        else:
            caches.add(table, client, value)
            dense[client] += value
        assert torch.equal(caches.row(table, client, value), dense[client])
        some = random.permutation(n)[: random.integers(n + 1)].tolist()
        assert torch.equal(caches.rows(table, some, value), dense[some])
    assert torch.equal(caches.rows(table, range(n), value), dense)


@pytest.mark.parametrize(("precision", "word"), [("full", 8), ("half", 2), ("int8", 1)])
def test_a_table_grows_with_the_clients_heard_from(
    precision: caches.Precision, word: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows a block at full precision: after k clients, the blocks that hold k rows."""
    n, d = 50, 4
    server = server_of(n, d, monkeypatch, 2)
    table = caches.empty(server, precision)
    rows = 16 // word  # of a block
    for heard in range(1, n + 1):
        caches.put(table, (7 * heard) % n, server.zeros() + heard, server)
        assert len(table["blocks"]) == -(-heard // rows)
        assert sum(block.numel() for block in table["blocks"]) * word < (heard + rows) * d * word
    kept = caches.rows(table, [(7 * heard) % n for heard in (1, 30, 50)], server.model)
    assert kept.tolist() == [pytest.approx([heard] * d, rel=1e-3) for heard in (1, 30, 50)]
