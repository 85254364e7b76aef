"""Buffers of updates from randomly drawn clients, also as drawn in the code of the ACE paper.

The base class of FedBuff and CA2FL. That code (arXiv 2511.19066, erratum X-21) returns a client that has
finished to the list of idle clients only if the list is empty, and gives the next job to the first of that
list, which is shuffled once. So every client works once; after n − M_c updates the M_c clients then at work
go on alone, and the data of the others are never seen again. `selection: starved` reproduces this defect. A
client that is away when its turn comes gives its place to any idle client; in that code no client is ever
away.

Fixed: fields (keys of runs), and the order of draws, defect included: claims compare both selections.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import model_validator

from fl_core.parts import FieldError
from fl_core.strategies.participation import Participation, buffered
from fl_core.strategies.toolkit import Count, Scenario, Send, Server, Strategy, Tune


class BufferedStrategy(Strategy):
    """Base of buffers for which M_c clients work at a time, each drawn from all that are idle."""

    buffer: Annotated[Count, Tune(1, 32)] = 10  # updates a step waits for
    concurrency: Count | None = 20  # M_c, jobs kept in flight
    # Who is drawn: any idle client. A defect of the ACE code, X-21, is `starved`: in the end M_c clients only
    selection: Literal["idle", "starved"] = "idle"

    @model_validator(mode="after")
    def _starves_some(self) -> Self:
        """Refuse `starved` without a concurrency: all clients work then, and none could starve."""
        if self.selection == "starved" and self.concurrency is None:
            raise FieldError(
                "selection",
                "'starved' needs a concurrency, since without one all clients work: set concurrency, "
                "or leave out selection",
            )
        return self

    @property
    def refuses_arrangement(self) -> str | None:
        return "the defect is in the choice of clients" if self.selection == "starved" else None

    def remarks(self) -> Sequence[str]:
        if self.selection == "idle":
            return ()
        defect = f"of X-21, a defect of published code: in the end {self.concurrency} clients train alone"
        return (f"{self.reference()}: selection starved is that {defect}",)

    def participation(self, scenario: Scenario) -> Participation | None:
        """Return the shares for drawn clients; unknown if some are starved by chance."""
        return buffered(self.concurrency, self.buffer, scenario) if self.selection == "idle" else None

    def begin(self, server: Server) -> None:
        if self.selection == "starved":
            server.memory.never_sent = dict.fromkeys(range(server.n))
            server.memory.at_work = []

    def next(self, server: Server) -> Iterable[int | Send]:
        if self.selection == "idle":
            return super().next(server)
        assert self.concurrency is not None
        memory, free_places = server.memory, self.concurrency - server.in_flight
        finished = [client for client in memory.at_work if not server.jobs_of(client)]
        chosen: list[int] = []
        if memory.never_sent:
            chosen = server.draw(free_places, among(memory.never_sent, server.n))
        if len(chosen) < free_places:
            present = [client for client in finished if server.present[client]]
            chosen += present[len(present) - min(len(present), free_places - len(chosen)) :]
        if len(chosen) < free_places:
            chosen += server.draw(free_places - len(chosen), 1 - among(chosen, server.n))
        for client in chosen:
            memory.never_sent.pop(client, None)
        memory.at_work = [client for client in memory.at_work if client not in finished] + chosen
        return chosen


def among(clients: Iterable[int], n: int) -> np.ndarray:
    """Return 1 for the given clients and 0 for the others [n]."""
    indicator = np.zeros(n)
    indicator[list(clients)] = 1
    return indicator
