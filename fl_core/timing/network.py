"""The links between clients and server: rates, latencies, shared capacity, and laws of numbers for clients.

A law gives each client a number: the rate of a link, a latency, or watts (`power`). Numbers depend on the
seed only, so all strategies meet equal clients. `loop/transfers.py` takes the rates for the transfers of a
run; `link_sharing` computes shared links.
"""

from collections.abc import Sequence
from enum import StrEnum, auto
from fractions import Fraction
from math import inf
from numbers import Rational
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, SerializeAsAny

from fl_core import file_reading, keys, user_code
from fl_core.parts import Bytes, Count, FieldError, Frozen, Length, Part, Rate, Share, Time, exact, ordered
from fl_core.streams import stream
from fl_core.text import many, miscounted
from fl_core.timing import traces
from fl_core.timing.clock import MICRO
from fl_core.timing.durations import on_unit
from fl_core.timing.law_labels import chosen, label
from fl_core.timing.link_sharing import GRAIN
from fl_core.user_code import filled_in

MBIT = 125_000  # bytes


class PerClient(Part):
    """Base of laws with a number for each client: Mbit/s of a link, seconds of latency, or watts."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.timing.network",)

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        """Return a number for each client [n].

        Args:
            n: The number of clients.
            seed: The seed of the run.
            purpose: Names the random stream: under a common purpose, laws put the clients in the same order.

        Raises:
            ValueError: The law does not fit n clients.
        """
        raise FieldError(
            "values",
            f"{type(self).__name__} does not define `values`: write `def values(self, n, seed, purpose)`",
        )

    def values_of(self, ids: Sequence[str], seed: int, purpose: str) -> tuple[Fraction, ...]:
        """Return a number for each client of known id [n]; laws without ids need the clients' count alone.

        Raises:
            ValueError: The law does not fit these clients.
        """
        return self.values(len(ids), seed, purpose)

    def label(self) -> str:
        return label(self)


def checked(
    law: PerClient | None, n: int, seed: int, purpose: str, ids: Sequence[str] | None = None
) -> tuple[Fraction, ...]:
    """Return a law's checked numbers [n]; zeros without a law.

    Args:
        law: The law, or None.
        n: The number of clients.
        seed: The seed of the run.
        purpose: Names the random stream.
        ids: The ids of the clients, if files are joined by ids.

    Raises:
        ValueError: There is no exact number, 0 or more, for each client.
    """
    if law is None:
        return (Fraction(0),) * n
    values = law.values(n, seed, purpose) if ids is None else law.values_of(ids, seed, purpose)
    if not isinstance(values, Sequence | np.ndarray):
        raise FieldError("values", f"{law.reference()} must return a number for each client, not {values!r}")
    if len(values) != n:
        raise FieldError("values", f"{law.reference()}: {miscounted(values, n)}")
    for client, value in enumerate(values):
        if not (isinstance(value, Rational) and value >= 0):
            message = f"{law.reference()} gives client {client} {value!r}"
            raise FieldError("values", f"{message}: must be a whole number or a Fraction, 0 or more")
    return tuple(map(Fraction, values))


class Constant(PerClient):
    """Constant: equal for all clients."""

    name: ClassVar[str] = "constant"

    value: Time  # of every client

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        return (self.value,) * n

    def label(self) -> str:
        return f"{float(self.value):g}"


class LogNormal(PerClient):
    """Log-normal over clients, cut off at both ends."""

    name: ClassVar[str] = "lognormal"

    median: Length  # of the law, before its ends are cut off
    sigma: Rate = 1.0  # standard deviation of the logarithm
    low: Time = Fraction(0)  # what is drawn below is set to this
    high: Length | None = None  # what is drawn above is set to this

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        drawn = float(self.median) * np.exp(self.sigma * stream(seed, purpose).standard_normal(n))
        high = np.inf if self.high is None else float(self.high)
        return on_unit(np.clip(drawn, float(self.low), high), MICRO)

    def label(self) -> str:
        return f"log-normal {float(self.median):g}"


class TwoClasses(PerClient):
    """Two classes: a random share of the clients has less than the others."""

    name: ClassVar[str] = "two_classes"

    share: Share  # of clients that have `less`, rounded to a whole number of them
    less: Time  # of those clients
    more: Time  # of all others

    _ordered = ordered("less", "more")

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        poor = chosen(self.share, n, seed, purpose)
        return tuple(self.less if client in poor else self.more for client in range(n))


class TableLaw(PerClient):
    """Table: a number for each client, as given."""

    name: ClassVar[str] = "table"

    table: tuple[Time, ...]  # by client

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        if len(self.table) != n:
            raise FieldError("table", miscounted(self.table, n))
        return self.table


class PhoneLinks(PerClient):
    """Base of phones' links: each client has the links of a phone, drawn evenly from 19.

    Means of what was measured for FLASH (Yang et al., WWW 2021), in models/speed_distri.json of the authors'
    repository (github.com/PKU-Chengxu/FLASH). The unit is given as "kb/s", here kilobits; their simulator
    divides kilobytes by the rates, and so is eight times as fast.
    """

    # kbit/s down and up, rounded
    MEASURED: ClassVar[tuple[tuple[int, int], ...]] = (
        *((7491, 4935), (4055, 3006), (2370, 2774), (9913, 6635), (4209, 2974), (3778, 2632), (3473, 5141)),
        *((4668, 3205), (3298, 2337), (4284, 3642), (3658, 2547), (7214, 4040), (8885, 6279), (5125, 3730)),
        *((7271, 5743), (4318, 3286), (6708, 665), (17333, 5641), (3177, 431)),
    )
    up: ClassVar[bool]

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        phones = stream(seed, purpose).integers(len(self.MEASURED), size=n)
        return tuple(Fraction(self.MEASURED[phone][self.up], 1000) for phone in phones)

    def label(self) -> str:
        return "phones"


class PhonesDown(PhoneLinks):
    """Downlinks of phones, 2.4 to 17 Mbit/s, as measured for FLASH (Yang et al., WWW 2021)."""

    name: ClassVar[str] = "phones_down"
    up: ClassVar[bool] = False


class PhonesUp(PhoneLinks):
    """Uplinks of phones, 0.4 to 6.6 Mbit/s, as measured for FLASH (Yang et al., WWW 2021)."""

    name: ClassVar[str] = "phones_up"
    up: ClassVar[bool] = True


class ColumnLaw(PerClient):
    """A column of a CSV file with a header and a row for each client; further rows are left out.

    Rows are in the order of the clients, or have their ids in the column `client`. By these ids they belong
    to the clients of the traces, or else of the first such column, of the same timing.
    """

    name: ClassVar[str] = "column"

    path: Path  # of the CSV file
    column: str  # as the header names it
    client: str | None = None  # column of the clients' ids, as the header names it; None: rows are in order
    # Of the content, filled in: part of a run's identity
    digest: Annotated[
        str, Field(validate_default=True), filled_in(lambda path: keys.digest(_content(path)))
    ] = ""

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        header, rows = self._rows()
        if len(rows) < n:
            raise FieldError(
                "path",
                f"{self.path} has {many(len(rows), 'row')} for {many(n, 'client')}: add rows, or reduce "
                "problem.clients",
            )
        if self.client is not None:
            return tuple(self._by_id().values())[:n]
        place = header.index(self.column)
        return tuple(self._number(line, cells, place, len(header)) for line, cells in rows[:n])

    def values_of(self, ids: Sequence[str], seed: int, purpose: str) -> tuple[Fraction, ...]:
        if self.client is None:
            return self.values(len(ids), seed, purpose)
        by_id = self._by_id()
        for client in ids:
            if client not in by_id:
                raise FieldError("path", f"{self.path} has no row for client '{client}'")
        return tuple(by_id[client] for client in ids)

    def ids(self, n: int | None = None) -> list[str]:
        """Return the ids of the first n clients of a file with ids; None: of all.

        Raises:
            ValueError: The file cannot be read, or has fewer clients.
        """
        ids = list(self._by_id())
        if n is not None and len(ids) < n:
            raise FieldError(
                "path",
                f"{self.path} has {many(len(ids), 'row')} for {many(n, 'client')}: add rows, or reduce "
                "problem.clients",
            )
        return ids[:n]

    def _by_id(self) -> dict[str, Fraction]:
        """Return the numbers by the clients' ids, in the order of the rows."""
        header, rows = self._rows()
        place, of_client = header.index(self.column), header.index(self.client or "")
        by_id: dict[str, Fraction] = {}
        for line, cells in rows:
            number = self._number(line, cells, place, len(header))
            client = traces.normal_id(cells[of_client].strip())
            if not client or client in by_id:
                raise FieldError(
                    "path", f"{self.path}, line {line}: client '{client}' is missing or repeated"
                )
            by_id[client] = number
        return by_id

    def _rows(self) -> tuple[list[str], list[tuple[int, list[str]]]]:
        """Return the header, with the named columns, and line number and cells of each row."""
        content = _content(self.path, self.digest)
        try:
            (_, header), *rows = file_reading.rows(content)
        except ValueError as error:
            reason = error if content.strip() else "is empty"
            raise FieldError("path", f"{self.path}: {reason}") from None
        for field, name in (("column", self.column), ("client", self.client)):
            if name is not None and name not in header:
                raise FieldError(field, f"{self.path} has no column '{name}'. It has: {', '.join(header)}")
        return header, rows

    def _number(self, line: int, cells: list[str], place: int, columns: int) -> Fraction:
        """Return the number of a row; raise FieldError if missing."""
        if len(cells) != columns:
            raise FieldError(
                "path", f"{self.path}, line {line}: has {many(len(cells), 'cell')}, not {columns}"
            )
        cell = cells[place]
        try:
            number = exact(cell)
        except ValueError:
            number = Fraction(-1)
        if number < 0:
            raise FieldError(
                "path",
                f"{self.path}, line {line}: '{self.column}' must be a number of 0 or more, not '{cell}'",
            )
        return number

    def label(self) -> str:
        return f"{self.column} of {self.path.name}"


def _content(path: Path, digest: str = "") -> bytes:
    """Return the content of a law's file; FieldError of `path` if unreadable, or of another digest."""
    try:
        return user_code.content("file", path, digest)
    except ValueError as error:
        raise FieldError("path", str(error)) from None


def _named(value: Any) -> Any:
    """Return the law `constant` for a number in a suite; other values unchanged."""
    try:
        return {"name": Constant.name, "value": exact(value)}
    except ValueError:
        return value


# A law, or a number that is the same for all clients.
NumberOrLaw = Annotated[
    SerializeAsAny[PerClient], BeforeValidator(_named, json_schema_input_type=Rate | PerClient)
]


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


def grains(speed: Fraction | float) -> int | float:
    """Return bytes a tick as grains a tick, at least 1."""
    return max(1, speed.numerator * GRAIN // speed.denominator) if isinstance(speed, Fraction) else inf
