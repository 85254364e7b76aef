"""ACED: ACE without outdated updates.

Mitigating participation imbalance bias in asynchronous federated learning. arXiv 2511.19066, Algorithm a.1:
A(t) = {i : t − t_i ≤ τ_algo}, and the step is the mean over A(t); nothing changes where it is empty. The
algorithm sets t_i to the present iteration at each arrival; its list of notation calls it the iteration of
the model that the cached update was made from. `stamp` selects one of the two readings.

It starts as ACE does (Algorithm 1), with a first pass at w^0; `start: when_all_heard` is that of IA²SGD
(`ace`). So A(t) never holds a client that has not been heard from.

The authors' code steps once in N arrivals (erratum X-22), `trigger: n_arrivals`: clients receive the newest
model at once, whether there was a step or not, and a step uses some N times as many gradients as one of ACE.
Two details of that code are left out: it makes no step from the first pass, and the client whose update
causes a step receives the model from before that step.

Where several updates arrive in one server iteration, all of them enter the table before A(t) is formed.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from fl_core.strategies import caches
from fl_core.strategies.table_start import TableStrategy
from fl_core.strategies.toolkit import Count, Send, Server, Tune, Update


class ACED(TableStrategy):
    """ACED, ACE over clients heard within τ_algo iterations (arXiv 2511.19066, 2025, Algorithm a.1)."""

    name: ClassVar[str] = "aced"
    title: ClassVar[str] = "ACED"

    max_age: Annotated[Count, Tune(1, 100)] = 10  # τ_algo, server iterations
    # An update's age counts from its arrival, or from its model
    stamp: Literal["arrival", "model"] = "arrival"
    cache: caches.Precision = "full"  # precision of the updates that are kept
    # How it begins: a pass over all clients, or as IA²SGD, which steps once all were heard before
    start: Literal["first_pass", "when_all_heard"] = "first_pass"
    # What makes a step: an arrival. A defect of the ACE code, X-22, is `n_arrivals`: one step in N of them
    trigger: Literal["arrival", "n_arrivals"] = "arrival"

    def remarks(self) -> Sequence[str]:
        if self.trigger == "arrival":
            return ()
        defect = "X-22, a defect of published code: a step waits for as many updates as there are clients"
        return (f"{self.reference()}: trigger n_arrivals is that of {defect}",)

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.cache = caches.empty(server, self.cache)  # U_i
        server.memory.stamp = {}  # t_i of the clients in A(t)
        server.memory.stamped = {}  # the same the other way round: t → clients
        server.memory.count = 0  # arrivals since the last step

    def receive(self, server: Server, update: Update) -> None:
        self.receive_together(server, [update])

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        memory = server.memory
        filled = self.first_pass or self.complete(server)  # before these updates
        for update in updates:
            caches.put(memory.cache, update.client, update.delta, server)
            self.note(server, update)
        memory.count += len(updates)
        due = self.trigger == "arrival" or memory.count >= server.n
        if not (self.complete(server, *updates) and filled and due):
            return
        memory.count = 0
        for client in memory.stamped.pop(server.version - self.max_age - 1, ()):
            del memory.stamp[client]
        newest = caches.rows(memory.cache, sorted(memory.stamp), server.model)  # of A(t)
        server.step(self.server_lr * newest.mean(0) if len(newest) else None)

    def next(self, server: Server) -> Iterable[int | Send]:
        if self.trigger == "n_arrivals" and self.concurrency is None:
            return list(server.idle)
        return super().next(server)

    def note(self, server: Server, update: Update) -> None:
        """Set t_i of an update's client; the client is in A(t) unless the update is too old."""
        stamp, stamped, client = server.memory.stamp, server.memory.stamped, update.client
        if client in stamp:
            del stamped[stamp.pop(client)][client]
        t = server.version if self.stamp == "arrival" else update.version
        if server.version - t <= self.max_age:
            stamp[client] = t
            stamped.setdefault(t, {})[client] = None
