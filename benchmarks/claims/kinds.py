"""Kinds of claims: a class for each, with the samples to compare and the band for a claim to hold.

`KINDS` has them by the `kind` of an entry; `reports/claims/verdicts.py` computes the number that is compared
with the band.

Fixed: names and defaults of fields, which the register's digests contain. Margins and bands decide verdicts.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from benchmarks.claims.claim import Band, Claim, Evidence, Finite, Sample
from fl_core.parts import FieldError

HALF_POINT = 0.005  # half a percentage point of accuracy: default margin of `same` and of printed numbers

Printed = Annotated[str, Field(pattern=r"^-?\d*\.?\d+(e-?\d{1,3})?$")]
Margin = Annotated[float, Field(gt=0)]
Terms = Annotated[tuple[Sample, ...], Field(min_length=1)]


def _must_have_a_margin(claim: Same | Value) -> None:
    if claim.margin is None and not claim.shares:
        raise FieldError(
            "margin", "is missing: the metric is not a share, such as an accuracy, so a margin is needed"
        )


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _numbered(**sides: tuple[Sample, ...]) -> dict[str, Sample]:
    """Return samples keyed by side and number."""
    return {f"{side} {n}": term for side, terms in sides.items() for n, term in enumerate(terms, start=1)}


def rounding(printed: str) -> float:
    """Return the rounding error of a printed number: half a unit of the last digit."""
    digits, _, exponent = printed.partition("e")
    return float(f"1e{int(exponent or 0) - len(digits.partition('.')[2])}") / 2


class Better(Claim):
    """A is better than B; differences within the margin, if any, count as equality."""

    shared_clock: ClassVar[bool] = True
    a: Sample
    b: Sample
    margin: Margin | None = None

    @property
    def holds(self) -> Band:
        return 0, None

    def parts(self) -> dict[str, Sample]:
        return {"a": self.a, "b": self.b}

    @model_validator(mode="after")
    def _has_a_direction(self) -> Self:
        unknown = [metric.name for metric in self.metrics if metric.higher is None]
        if self.higher is None and unknown:
            raise FieldError(
                "higher", f"must be true or false: whether higher values of '{unknown[0]}' are better"
            )
        return self


class Same(Better):
    """A and B differ by less than the margin."""

    @property
    def allowed(self) -> float:
        """The margin; by default half a percentage point."""
        return HALF_POINT if self.margin is None else self.margin

    @property
    def holds(self) -> Band:
        return -self.allowed, self.allowed

    @model_validator(mode="after")
    def _has_a_margin(self) -> Self:
        _must_have_a_margin(self)
        return self


class Value(Claim):
    """A number of the paper: printed, or said to lie in a band."""

    printed: Annotated[Printed | None, BeforeValidator(_text)] = None
    band: Band | None = None
    margin: Margin | None = None  # about the printed number, where runs are judged
    runs: Annotated[int, Field(ge=1)] = 1  # of the paper, whose mean is printed; 1 where it does not say

    @property
    def allowed(self) -> float:
        """The margin; by default half a percentage point."""
        return HALF_POINT if self.margin is None else self.margin

    @property
    def holds(self) -> Band | None:
        return self.band

    @property
    def rounding(self) -> float:
        """The rounding error of the printed value."""
        return rounding(self.printed or "0")

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        if (self.printed is None) == (self.band is None):
            raise ValueError("must have `printed` or `band`, not both")
        if self.printed is not None:
            _must_have_a_margin(self)
        return self


class Theorem(Claim):
    """A theorem, or a printed number, decided without runs by a test in the repository.

    It holds where the result of the test lies in the band; or equals the printed value, a text to its last
    digit, anything else to a relative error of 1e-9.
    """

    needs_runs: ClassVar[bool] = False
    test: Annotated[str, Field(pattern=r"^[\w./-]+\.py::\w+$")]
    arguments: dict[str, Any] = Field(default_factory=dict)  # of the test
    found: Any  # the test's result: numbers, truths and fractions in lists and mappings
    printed: Any = None
    band: Band | None = None
    bound: bool = False  # proven, and seen to hold: the result is its slack, bound over measured

    @property
    def evidence(self) -> Evidence:
        return "bound" if self.bound else "statement"

    @property
    def holds(self) -> Band | None:
        return self.band

    @property
    def function(self) -> str:
        """Name of the test, without the file."""
        return self.test.rpartition(":")[2]

    def parts(self) -> dict[str, Sample]:
        return {}

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        if (self.printed is None) == (self.band is None):
            raise ValueError("must have `printed` or `band`, not both")
        return self


class Contrast(Claim):
    """Σ times · value over the terms, seed by seed, lies in a band, by default above 0.

    With a margin, the claim is a sum above 0, and a sum within the margin counts as no difference.
    """

    terms: Terms
    band: Band = (0, None)
    log: bool = False  # of the logarithms of the values: fitted exponents
    margin: Margin | None = None

    @property
    def holds(self) -> Band:
        return self.band

    def parts(self) -> dict[str, Sample]:
        return _numbered(term=self.terms)

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if self.margin is not None and self.band != (0, None):
            raise FieldError(
                "margin", "applies to the default band only, a sum above 0: leave out margin or band"
            )
        return self


class Ratio(Claim):
    """A ratio of sums Σ times · value lies in a band; of means, or of spreads over seeds."""

    top: Terms
    bottom: Terms
    band: Band
    of: Literal["mean", "spread"] = "mean"

    @property
    def holds(self) -> Band:
        return self.band

    def parts(self) -> dict[str, Sample]:
        return _numbered(top=self.top, bottom=self.bottom)


class Rank(Claim):
    """Means over seeds rank the samples like other samples, or in a given order."""

    compared: Annotated[tuple[Sample, ...], Field(min_length=3, alias="samples")]
    against: tuple[Sample, ...] = ()
    order: tuple[Finite, ...] = ()
    at_least: Annotated[float, Field(ge=-1, le=1)] = 0.8  # Spearman's ρ

    @property
    def holds(self) -> Band:
        return self.at_least, None

    def parts(self) -> dict[str, Sample]:
        return _numbered(sample=self.compared, against=self.against)

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if len(self.compared) != len(self.against or self.order) or (self.against and self.order):
            raise ValueError("must have `against` or `order`, not both, with one entry for each sample")
        return self


class Report(Claim):
    """A statement without a measure: shown with the findings, not judged."""


KINDS: dict[str, type[Claim]] = {
    kind.__name__.lower(): kind for kind in (Better, Same, Value, Contrast, Ratio, Rank, Report, Theorem)
}
