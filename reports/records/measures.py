"""Metrics by their recorded names: what they are called on paper, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reports import numbers


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric."""

    name: str  # as recorded
    title: str
    higher: bool | None = None  # whether more of it is better; None if nobody said
    share: bool = False  # between 0 and 1, and shown in per cent

    @property
    def heading(self) -> str:
        """The title with its unit."""
        return f"{self.title} (%)" if self.share else self.title

    @property
    def in_text(self) -> str:
        """The title inside a sentence."""
        return self.title if self.title[:2].isupper() else self.title[0].lower() + self.title[1:]

    def text(self, value: float) -> str:
        """A value, without its unit."""
        return numbers.percent(value) if self.share else numbers.number(value)

    def round_text(self, value: float) -> str:
        """A value that somebody chose, such as a target, with its unit: 85 %, 0.05."""
        return (
            f"{numbers.short(round(100 * value, 10))}\N{NO-BREAK SPACE}%"
            if self.share
            else numbers.short(value)
        )


KNOWN = {
    measure.name: measure
    for measure in (
        Measure("test/accuracy", "Test accuracy", higher=True, share=True),
        Measure("worst_client/accuracy", "Worst client’s accuracy", higher=True, share=True),
        Measure("test/loss", "Test loss", higher=False),
        Measure("fp/loss", "FP loss", higher=False),
        Measure("fp/std", "FP loss, std over clients", higher=False),
        Measure("sp/loss", "SP loss", higher=False),
        Measure("sp/std", "SP loss, std over clients", higher=False),
        Measure("distance", "Distance to the optimum", higher=False),
        Measure("excess_loss", "Excess loss", higher=False),
    )
}


def measure(name: str, higher: bool | None = None) -> Measure:
    """The metric of that name; what the runs themselves say of `higher` outranks what is known here."""
    known = KNOWN.get(name, Measure(name, name))
    return known if higher is None else replace(known, higher=higher)
