"""The energy of a run: the power of each client in each phase, times how long it lasted."""

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
        service.ended = []

    def used(self, tick: int | Fraction) -> float:
        """Return the joules from the start to a tick, not before the event before the latest."""
        spent = self._service.spent(tick)
        watt_ticks = self._idle * tick + sum(
            watts * ticks
            for of_clients, ticks_of_clients in zip(self._above_idle, spent, strict=True)
            for watts, ticks in zip(of_clients, ticks_of_clients, strict=True)
            if watts and ticks
        )
        return float(watt_ticks * self._tick)
