"""Verdicts on pages: that of the runs that they were made from, and that of all claims."""

import re
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest

from benchmarks.claims import kept
from benchmarks.claims.files import Paper, papers
from reports import claims_page
from reports.claims import forest
from reports.claims.blocks import blocks
from reports.claims.rules import Verdict
from reports.claims.stored import Judged, all_of, judged, standings
from reports.page import SECTIONS, render
from reports.records.records import RecordedSuite
from reports.sections.about import claims
from reports.sections.section import Results, Section


@pytest.fixture(scope="module")
def paper() -> Paper:
    return papers()["fraboni"]


@pytest.fixture(scope="module")
def everything() -> list[Judged]:
    return all_of(papers().values())


def shown(name: str) -> Section | None:
    """The section on the page of that name."""
    return claims.section(Results.of(RecordedSuite(name, "sqlite://")))


def test_verdicts_come_first_and_scales_are_never_mixed(paper: Paper) -> None:
    assert SECTIONS[1] is claims.section  # behind the answer, which a page of claims has not
    section = shown("claims-fraboni-small")
    assert section is not None
    small, computed = section.shows["blocks"]
    ids = {entry.claim.id for row in small.rows for entry in row.entries}
    ran = {id_ for id_, one in judged(paper, "small").items() if one.word != "not run"}
    assert ids == ran <= {id_ for id_, one in paper.claims.items() if "small" in paper.scales(one)}
    assert {entry.claim.id for row in computed.rows for entry in row.entries} == {
        id_ for id_, one in paper.claims.items() if one.computed
    }


@pytest.mark.parametrize(("seeds", "scale"), [(0, "small"), (4, "small"), (5, "paper")])
def test_the_headline_takes_paper_scale_from_its_first_look_on(
    paper: Paper, tmp_path: Path, seeds: int, scale: str
) -> None:
    id_ = "F-weights-FP/mnist-dir0.1"
    for name, count in {"small": 8, "paper": seeds}.items():
        numbers = [
            kept.Number(id_, sample, seed, value * (1 + seed / 100), "", "2026-11-23T00:00:00+00:00", "here")
            for sample, value in {"a": 0.1, "b": 0.4}.items()
            for seed in range(count)
        ]
        kept.merge(kept.path("fraboni", name, tmp_path), [id_], numbers)
    (standing,) = standings(all_of([paper], tmp_path))
    assert (standing.where[id_], standing.verdicts[id_].seeds) == (scale, 5)
    assert standing.tested == {scale: 1}


@pytest.mark.parametrize("name", ["quickstart", "claims-nobody-small", "claims-"])
def test_other_pages_have_none(name: str) -> None:
    assert shown(name) is None


def test_the_page_of_a_suite_of_claims_says_all_of_it(paper: Paper) -> None:
    section = shown("claims-fraboni-small")
    assert section is not None
    text = render(RecordedSuite("claims-fraboni-small", "sqlite://", runs=()))
    assert text  # a page without runs is a page
    for row in section.shows["blocks"][0].rows:
        assert row.ends is None or len(row.ends) == 2
        assert all(entry.figure for entry in row.entries if forest.effect(entry.claim, entry.verdict))


def test_every_claim_that_ran_is_on_the_page_of_all(everything: list[Judged]) -> None:
    text = claims_page.render(everything)
    ran = [
        (one.paper.name, one.scale, id_, verdict.word)
        for one in everything
        for id_, verdict in one.verdicts.items()
        if verdict.word != "not run"
    ]
    found = re.findall(
        r'<li data-claim="([^"]+)" data-paper="(\w+)" data-class="[^"]+" '
        r'data-verdict="([^"]+)" data-scale="(\w+)"',
        text,
    )
    assert sorted((paper, scale, id_, word) for id_, paper, word, scale in found) == sorted(ran)
    assert len(ran) > 500 and "http://" not in text and "https://" not in text
    waiting = sum(one.counts["not run"] for one in everything if one.ran)
    said = [int(n) for n in re.findall(r"(\d+) further claims? of this scale: not run yet", text)]
    assert sum(said) == waiting
    assert claims_page.render(everything) == text


def test_a_strip_lies_where_its_numbers_are(everything: list[Judged]) -> None:
    """Three effects on an axis from −1 to 3: a quarter of it is one."""
    (one, *_) = [claim for of in everything for claim in of.paper.claims.values() if claim.kind == "better"]
    claim = one.model_copy(update={"margin": 0.5, "computed": None})
    effect = forest.effect(claim, Verdict("confirmed", 1.0, 0.5, 7.0, 8))
    assert effect is not None
    assert (effect.claimed, effect.margin) == ((0.0, inf), 0.5)
    drawn = str(forest.strip(effect, forest.Axis(-1.0, 3.0), "confirmed", "<confirmed>"))
    quarter, edge = (240 - 2 * 8) / 4, 8
    assert f'd="M{edge + 1.5 * quarter:.1f} 9H{240 - edge:.1f}"' in drawn  # the interval, cut at the end
    assert f"M{240 - edge:.1f} 5l5 4l-5 4Z" in drawn  # and its arrow
    assert f"translate({edge + 2 * quarter:.1f} 9)" in drawn  # the effect
    assert f'class="zero" d="M{edge + quarter:.1f} ' in drawn
    assert f'class="margin" d="M{edge + 0.5 * quarter:.1f} 5H{edge + 1.5 * quarter:.1f}' in drawn
    assert f'class="claimed" d="M{edge + quarter:.1f} 1H{240 - edge:.1f}' in drawn
    assert 'aria-label="&lt;confirmed&gt;"' in drawn


def test_an_axis_has_room_for_effects_and_what_was_claimed() -> None:
    near = forest.Effect(1.0, 0.8, 1.2, (0.0, inf))
    axis = forest.Axis.around([near, replace(near, found=-1.0, low=-60.0, high=1.0)])
    assert axis.low == pytest.approx(-7.0 - 0.03 * 8.2) and axis.high == pytest.approx(1.2 + 0.03 * 8.2)
    alone = forest.Axis.around([forest.Effect(0.0, 0.0, 0.0, (inf, inf))])
    assert alone.low < 0 < alone.high


def test_printed_numbers_are_shown_by_their_distance(everything: list[Judged]) -> None:
    values = [
        claim
        for of in everything
        for claim in of.paper.claims.values()
        if claim.kind == "value" and not claim.computed and getattr(claim, "printed", None)
    ]
    claim = values[0].model_copy(update={"printed": "0.250"})
    effect = forest.effect(claim, Verdict("refuted", 0.3, 0.28, 0.32, 8))
    assert effect is not None
    assert (effect.found, effect.low, effect.high) == pytest.approx((0.05, 0.03, 0.07))
    assert effect.claimed == pytest.approx((-0.0005, 0.0005))
    assert forest.effect(claim, Verdict("undecided", nan)) is None


def test_rows_have_what_matters_first(everything: list[Judged]) -> None:
    order = ["refuted", "confirmed", "equal", "no effect", "undecided", "reported"]
    for block in blocks(everything):
        for row in block.rows:
            places = [order.index(entry.verdict.word) for entry in row.entries]
            assert places == sorted(places)
