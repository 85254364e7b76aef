"""How often verdicts are false: the stored rates, and the campaigns that they were counted in."""

import numpy as np
import pytest

from benchmarks.claims.files import Paper
from benchmarks.claims.kinds import Better, Contrast, Ratio, Same, Value
from reports.claims import false_verdicts
from reports.claims.false_verdicts import SimulatedRow, centred


@pytest.fixture(scope="module")
def rows(all_papers: dict[str, Paper]) -> dict[tuple[str, str, str], SimulatedRow]:
    found = (row for paper in all_papers.values() for row in false_verdicts.rows(paper))
    return {(row.paper, row.scale, row.name): row for row in found}


def test_five_per_cent_of_rows_at_most_hold_a_false_verdict(
    rows: dict[tuple[str, str, str], SimulatedRow],
) -> None:
    stored = false_verdicts.stored()
    assert {(rate.paper, rate.scale, rate.row): rate.claims for rate in stored} == {
        key: len(row.claims) for key, row in rows.items()
    }
    assert sum(rate.campaigns for rate in stored) >= 2000
    assert np.mean([rate.share for rate in stored]) <= 0.05


@pytest.mark.parametrize("names", [{"N-cs-repairs"}, pytest.param(None, marks=pytest.mark.slow, id="all")])
def test_stored_rates_are_counted_again(
    rows: dict[tuple[str, str, str], SimulatedRow], names: set[str] | None
) -> None:
    for stored in false_verdicts.stored():
        if names is None or stored.row in names:
            row = rows[stored.paper, stored.scale, stored.row]
            assert false_verdicts.rate(row, stored.campaigns) == stored, row.name


@pytest.mark.parametrize("at_margin", [False, True])
def test_no_effect_is_left_but_the_margin(
    rows: dict[tuple[str, str, str], SimulatedRow], at_margin: bool
) -> None:
    seen = set()
    for row in rows.values():
        for id_, claim in row.claims.items():
            table = centred(claim, row.numbers[id_], at_margin)
            times = np.array([sample.times for sample in claim.samples.values()])
            if isinstance(claim, Better):
                gap = claim.sign * (table[0] - table[1])
                target = claim.allowed if isinstance(claim, Same) else at_margin * (claim.margin or 0.0)
                middle = np.median(gap) if row.paper in {"ace", "asyncsgd"} else gap.mean()
                assert min(abs(middle - target), abs(gap.mean() - target)) < 1e-9, id_
            elif isinstance(claim, Contrast):
                total = times @ (np.log(table) if claim.log else table)
                edge = claim.band[0] if claim.band[0] is not None else claim.band[1]
                target = (edge or 0.0) + at_margin * (claim.margin or 0.0)
                assert min(abs(total.mean() - target), abs(np.median(total) - target)) < 1e-9, id_
            elif isinstance(claim, Ratio) and claim.of == "spread":
                spread = [np.abs(side - np.median(side)).mean() for side in table]
                assert spread[0] == pytest.approx((claim.band[0] or 0.0) * spread[1]) or not spread[0]
            elif isinstance(claim, Value):
                assert table.mean() == pytest.approx(claim.band[0] or 0.0 if claim.band else 0.0, abs=1e-9)
            seen.add(claim.kind)
    assert seen == {"better", "same", "contrast", "ratio", "value"}
