"""The links of a scenario between clients and server: rates, latencies and shared capacity.

`loop/transfers.py` takes rates from here for transfers of a run; `link_sharing` computes shared links.
"""

from collections.abc import Sequence
from enum import StrEnum, auto
from fractions import Fraction
from math import inf

from fl_core.parts import Bytes, Count, FieldError, Frozen, Length
from fl_core.timing.link_sharing import GRAIN, Rate
from fl_core.timing.per_client import Constant, NumberOrLaw, checked

MBIT = 125_000  # bytes


class Way(StrEnum):
    """The direction of a transfer, seen from the client."""

    DOWN = auto()
    UP = auto()


class Shared(Frozen):
    """Shared links: transfers in progress get equal parts, at most the rate of the client's link."""

    downlink: Length | None = None  # Mbit/s for all downloads together; None: no limit
    uplink: Length | None = None  # Mbit/s for all uploads together; None: no limit
    # Client i belongs to cell i mod `cells`, and each cell has links of its own; 1: they are the server's
    cells: Count = 1


class Network(Frozen):
    """The links between clients and server: a message takes bytes / rate, and the latency."""

    downlink: NumberOrLaw | None = None  # Mbit/s to each client; None: no limit
    # Mbit/s from each client; None: no limit. Drawn like `downlink`: who is slow in one is slow in both
    uplink: NumberOrLaw | None = None
    latency: NumberOrLaw | None = None  # seconds on the way, the same in both directions; None: none
    shared: Shared = Shared()  # links that clients share
    # Bytes of a whole model, or text such as "40 MB"; None: those of the simulated one. Of a small stand-in,
    # messages and all counts of bytes are multiplied by the ratio
    message: Bytes | None = None

    def rates(
        self, way: Way, n: int, seed: int, ids: Sequence[str] | None = None
    ) -> tuple[Fraction | float, ...]:
        """Return each client's Mbit/s [n], infinite without a limit; `ids` are from `Timing.ids`.

        Raises:
            ValueError: The law does not fit n clients, or gives a rate of 0.
        """
        law, field = (self.downlink, "downlink") if way is Way.DOWN else (self.uplink, "uplink")
        rates = (inf,) * n if law is None else checked(law, n, seed, "rates", ids)
        if min(rates) <= 0:
            prefix = "" if law is None or isinstance(law, Constant) else f"{law.label()}: "
            raise FieldError(field, f"{prefix}must be above 0 Mbit/s for every client")
        return rates

    def capacity(self, way: Way) -> Fraction | float:
        """Return the Mbit/s of a shared link, infinite without a limit."""
        capacity = self.shared.downlink if way is Way.DOWN else self.shared.uplink
        return inf if capacity is None else capacity

    def latencies(self, n: int, seed: int, ids: Sequence[str] | None = None) -> Sequence[Fraction]:
        """Return each client's seconds of latency [n]; `ids` are from `Timing.ids`.

        Raises:
            ValueError: The law does not fit n clients.
        """
        return checked(self.latency, n, seed, "latency", ids)

    def check(self, n: int, ids: Sequence[str] | None = None) -> None:
        """Raise ValueError if a law does not fit n clients, or gives a rate of 0."""
        self.latencies(n, 0, ids)
        for way in Way:
            self.rates(way, n, 0, ids)

    def label(self) -> str:
        """Return a short name for tables and figures: "links of 50 and 10 Mbit/s, 1000 shared"."""
        links = {"down": self.downlink, "up": self.uplink}
        shared = {"down": self.shared.downlink, "up": self.shared.uplink}
        link_labels = [f"{law.label()} {way}" for way, law in links.items() if law]
        together = [f"{float(rate):g} {way}" for way, rate in shared.items() if rate]
        message = "" if self.message is None else f", model of {size(self.message)}"
        shared_links = f", shared {', '.join(together)}" if together else ""
        return f"links of {', '.join(link_labels) or '∞'}{shared_links}{message}"


def size(number: int) -> str:
    """Return a number of bytes with a unit to three digits, for example "40 MB"."""
    exponent = min(3, (len(str(number)) - 1) // 3)
    return f"{number / 1000**exponent:.3g} {('B', 'kB', 'MB', 'GB')[exponent]}"


def grains(speed: Fraction | float) -> Rate:
    """Return bytes a tick as grains a tick, at least 1."""
    return max(1, speed.numerator * GRAIN // speed.denominator) if isinstance(speed, Fraction) else inf
