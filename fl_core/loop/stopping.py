"""The end of a run: budget or target, no client left, stalled (docs/rules.md, rules 9, 12, 17).

`Simulation` asks `Ends.reached` before every event. The texts of the reasons are recorded with each run.

Fixed: when a run ends, and with which status. Free: texts that are not in `Reason`, since no code compares
them.
"""

from math import floor, inf

from fl_core.loop.state import RunState
from fl_core.recorded_names import Reason, Status
from fl_core.scenario import Budget
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy
from fl_core.timing.clock import VirtualClock

EXTRA_TIME_AFTER_TARGET = 0.1  # fraction of the time to target
NOTHING_COMES = (
    "nothing is in flight and no alarm is set: the strategy sends no client to work (without a concurrency, "
    "clients wait for the step after their update)"
)
NO_UPDATE = f"{Reason.NO_CLIENT}, and no update came"
MAX_LISTED_CLIENTS = 10  # in a reason
MAX_CONSECUTIVE_DISMISSALS = 1000  # per client, without an update from any client between


class Ends:
    """The conditions for the end of a run."""

    def __init__(self, budget: Budget, clock: VirtualClock, strategy: Strategy) -> None:
        self.budget, self.clock, self.strategy = budget, clock, strategy
        self.iterations = budget.iterations or inf
        self.updates = budget.updates or inf
        self.bytes = budget.bytes or inf
        self.deadline = inf if budget.time is None else floor(budget.time / clock.unit)  # ticks
        self.at_deadline = Reason.TIME

    def met(self, time: float) -> None:
        """Bring the deadline forward, since the target was met at a virtual time; the recorder calls this."""
        deadline = floor((1 + EXTRA_TIME_AFTER_TARGET) * time / float(self.clock.unit))
        if deadline < self.deadline:
            self.deadline, self.at_deadline = deadline, Reason.TARGET

    def share(self, state: RunState) -> float:
        """Return the used share of the budget."""
        return max(
            state.version / self.iterations,
            state.updates / self.updates,
            sum(state.sent.values()) / self.bytes,
            self.clock.time(state.now) / float(self.budget.time) if self.budget.time else 0.0,
        )

    def reached(self, state: RunState, server: Server, upcoming: float | None) -> tuple[Status, str] | None:
        """Return status and reason of the end; None if a next event exists, not before tick `upcoming`."""
        none_comes = not (state.serving or state.returns)
        reason = None
        if state.version >= self.iterations:
            reason = Reason.ITERATIONS
        elif state.updates >= self.updates:
            reason = Reason.UPDATES
        elif self.bytes < inf and sum(state.sent.values()) >= self.bytes:
            reason = Reason.BYTES
        elif upcoming is not None and upcoming > self.deadline:
            reason = self.at_deadline
        elif none_comes and state.roster.absent == server.n:
            if not state.updates:
                return Status.STALLED, NO_UPDATE
            reason = Reason.NO_CLIENT
        elif state.gone and (missing := self._missing(state, server)):
            listed = ", ".join(map(str, missing[:MAX_LISTED_CLIENTS]))
            more = " …" if len(missing) > MAX_LISTED_CLIENTS else ""
            return Status.STALLED, f"waiting for clients that left permanently: {listed}{more}"
        elif none_comes and not state.alarms:
            return Status.STALLED, NOTHING_COMES
        elif self.deadline == inf and state.abandoned > MAX_CONSECUTIVE_DISMISSALS * server.n:
            return (
                Status.STALLED,
                f"no job ends in time: {state.abandoned:,} were dismissed, and no update came",
            )
        return None if reason is None else (Status.DONE, str(reason))

    def _missing(self, state: RunState, server: Server) -> list[int]:
        """Return the clients gone for good but needed for any further step, in order (17)."""
        missing = self.strategy.stalled_by(server, state.silent)
        state.asked, state.unasked = state.version, []
        if not (missing or state.serving or state.returns or state.alarms):
            missing = state.flight  # all jobs in flight were sent to such clients and never begin
        return sorted(missing)
