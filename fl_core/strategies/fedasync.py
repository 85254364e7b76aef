"""FedAsync: every arrival is mixed into the model, with less weight for staler updates.

Xie, Koyejo, Gupta: Asynchronous federated optimization. arXiv 1903.03934 (OPT 2020), Algorithm 1: w ← (1 −
α_t) w + α_t w_new with α_t = α s(τ), clients minimising L_i(w) + ρ/2 ‖w − w_τ‖². The mixing weight is
computed afresh each time; an implementation that multiplies it cumulatively drives it to zero. `base` and
`staleness_since` are readings of other frameworks, see docs/explanation/frameworks.md.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from fl_core.local_work import LocalWork, Prox
from fl_core.strategies import staleness
from fl_core.strategies.toolkit import Rate, Server, Strategy, Tune, Update


class FedAsync(Strategy):
    """FedAsync, mixing with a staleness-dependent weight (Xie et al., OPT 2020, Algorithm 1)."""

    name: ClassVar[str] = "fedasync"
    title: ClassVar[str] = "FedAsync"

    server_lr: Annotated[Rate, Tune(0.05, 1)] = 0.6  # α, weight of a fresh update
    decay: Literal["constant", "hinge", "polynomial"] = "polynomial"  # s(τ), of the weight with staleness
    hinge_slope: Rate = 10.0  # a of the hinge
    # b of the hinge, staleness up to which s = 1
    hinge_start: Annotated[float, Field(ge=0)] = 4.0
    power: Annotated[Rate, Tune(0.1, 2)] = 0.5  # a of the polynomial (1 + τ)^(−a)
    # What a client's model is compared to: the newest, which mixes the two, or the model that it started from
    base: Literal["current", "start"] = "current"
    # From where τ counts: the dispatch of the job, or the client's previous upload
    staleness_since: staleness.StalenessOrigin = "dispatch"
    local: SerializeAsAny[LocalWork] = Prox(mu=0.005)  # ρ, the proximal term's weight

    @property
    def refuses_optimizer(self) -> str | None:
        if self.base == "start":
            return None
        return "it mixes models, (1 − α) w + α w_new, and steps in no direction"

    def begin(self, server: Server) -> None:
        staleness.begin(server)

    def receive(self, server: Server, update: Update) -> None:
        since_dispatch = self.staleness_since == "dispatch"
        age = update.staleness if since_dispatch else staleness.since_upload(server, update)
        change = update.model - server.model if self.base == "current" else update.delta
        server.step(self.server_lr * self.scale(age) * change)
        if not since_dispatch:
            staleness.note_uploads(server, [update])

    def scale(self, age: int) -> float:
        """Return s(τ)."""
        if self.decay == "constant":
            return 1.0
        if self.decay == "polynomial":
            return (1 + age) ** -self.power
        late = age - self.hinge_start
        return 1.0 if late <= 0 else 1 / (self.hinge_slope * late + 1)
