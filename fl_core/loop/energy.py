"""The energy of a run: the power of each client in each phase, times the duration of the phase.

`Simulation` has a meter if the scenario declares power; the `Recorder` reads the meter at each evaluation.

Fixed: the joules, which are recorded and stored on the leaderboard.
"""

from collections.abc import Sequence
from fractions import Fraction

from fl_core.loop.service import Service
from fl_core.timing.power import PHASES, Power


class EnergyMeter:
    """The energy drawn by n clients, exact up to the last division."""

    def __init__(
        self,
        power: Power,
        service: Service,
        n: int,
        seed: int,
        tick: Fraction,
        *,
        ids: Sequence[str] | None = None,
    ) -> None:
        watts = power.watts(n, seed, ids)
        self._idle = sum(watts["idle"], Fraction(0))
        self._above_idle = [
            [more - less for more, less in zip(watts[phase], watts["idle"], strict=True)] for phase in PHASES
        ]
        self._service, self._tick = service, tick  # seconds
        service.ended = []  # from now on the service keeps the times of ended jobs, for `spent`

    def used(self, tick: int | Fraction) -> float:
        """Return the joules spent from the start to a tick.

        The tick may lie between the latest two events, where a mark of the budget can fall, but not before.
        """
        spent = self._service.spent(tick)
        watt_ticks = self._idle * tick + sum(
            watts * ticks
            for of_clients, ticks_of_clients in zip(self._above_idle, spent, strict=True)
            for watts, ticks in zip(of_clients, ticks_of_clients, strict=True)
            if watts and ticks
        )
        return float(watt_ticks * self._tick)
