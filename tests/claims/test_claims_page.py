"""Verdicts on pages: that of the runs that they were made from, and that of all claims."""

import re
from collections import Counter
from dataclasses import replace
from math import inf
from urllib.parse import unquote

import pytest

from benchmarks.claims.files import Paper
from reports.claims import forest_plot, html
from reports.claims.html import blocks, sections
from reports.claims.main_results import Outcome
from reports.claims.readings import Reading, readings
from reports.claims.verdicts import Verdict
from reports.page import render
from reports.records.records import RecordedSuite


@pytest.fixture(autouse=True)
def _papers_read_once(all_papers: dict[str, Paper], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "papers", lambda: all_papers)


@pytest.fixture(scope="module")
def paper(all_papers: dict[str, Paper]) -> Paper:
    return all_papers["fraboni"]


@pytest.fixture(scope="module")
def page(all_readings: list[Reading]) -> str:
    return html.render(all_readings)


def test_verdicts_come_first_and_scales_are_never_mixed(paper: Paper) -> None:
    (section,) = sections("claims-fraboni-small")
    small, theorems = section.shows["blocks"]
    ids = {reading.claim.id for row in small.rows for reading, _ in row.entries}
    ran = {one.claim.id for one in readings(paper, "small") if one.ran}
    assert ids == ran <= {id_ for id_, one in paper.claims.items() if "small" in paper.scales(one)}
    assert {reading.claim.id for row in theorems.rows for reading, _ in row.entries} == {
        id_ for id_, one in paper.claims.items() if one.kind == "theorem"
    }


def test_other_pages_have_none() -> None:
    assert [sections(name) for name in ("quickstart", "claims-nobody-small", "claims-")] == [[]] * 3


def test_the_page_of_a_suite_of_claims_says_all_of_it(paper: Paper) -> None:
    (section,) = sections("claims-fraboni-small")
    text = render(RecordedSuite("claims-fraboni-small", "sqlite://", runs=()), [section])
    ran = [one.claim.id for one in readings(paper, "small") if one.ran]
    assert ran and all(f'data-claim="{id_}"' in text for id_ in ran)
    for row in section.shows["blocks"][0].rows:
        assert row.ends is None or len(row.ends) == 2
        assert all(
            figure for reading, figure in row.entries if forest_plot.effect(reading.claim, reading.verdict)
        )


def test_every_claim_that_ran_is_on_the_page_of_all(all_readings: list[Reading], page: str) -> None:
    ran = [(one.paper.name, one.scale, one.claim.id, one.word) for one in all_readings if one.ran]
    found = re.findall(
        r'<li id="[^"]+" data-claim="([^"]+)" data-paper="(\w+)" data-class="[^"]+" '
        r'data-verdict="([^"]+)" data-scale="(\w+)"',
        page,
    )
    assert sorted((paper, scale, id_, word) for id_, paper, word, scale in found) == sorted(ran)
    assert len(ran) > 500 and "http://" not in page and "https://" not in page
    shown = {(paper, scale) for paper, scale, *_ in ran}
    waiting = sum(not one.ran and (one.paper.name, one.scale) in shown for one in all_readings)
    said = [int(n) for n in re.findall(r"(\d+) further claims? of this scale: not run yet", page)]
    assert sum(said) == waiting


def test_a_strip_lies_where_its_numbers_are(all_readings: list[Reading]) -> None:
    """Three effects on an axis from −1 to 3: a quarter of it is one."""
    claim = next(one.claim for one in all_readings if one.claim.kind == "better")
    claim = claim.model_copy(update={"margin": 0.5})
    effect = forest_plot.effect(claim, Verdict("confirmed", 1.0, 0.5, 7.0, 8))
    assert effect is not None
    assert (effect.claimed, effect.margin) == ((0.0, inf), 0.5)
    drawn = str(forest_plot.strip(effect, forest_plot.Axis(-1.0, 3.0), "confirmed", "<confirmed>"))
    quarter, edge = (240 - 2 * 8) / 4, 8
    assert f'd="M{edge + 1.5 * quarter:.1f} 9H{240 - edge:.1f}"' in drawn  # the interval, cut at the end
    assert f"M{240 - edge:.1f} 5l5 4l-5 4Z" in drawn  # and its arrow
    assert f"translate({edge + 2 * quarter:.1f} 9)" in drawn  # the effect
    assert f'class="zero" d="M{edge + quarter:.1f} ' in drawn
    assert f'class="margin" d="M{edge + 0.5 * quarter:.1f} 5H{edge + 1.5 * quarter:.1f}' in drawn
    assert f'class="claimed" d="M{edge + quarter:.1f} 1H{240 - edge:.1f}' in drawn
    assert 'aria-label="&lt;confirmed&gt;"' in drawn


def test_an_axis_has_room_for_effects_and_what_was_claimed() -> None:
    near = forest_plot.DrawnEffect(1.0, 0.8, 1.2, (0.0, inf))
    axis = forest_plot.Axis.around([near, replace(near, found=-1.0, low=-60.0, high=1.0)])
    assert axis.low == pytest.approx(-7.0 - 0.03 * 8.2) and axis.high == pytest.approx(1.2 + 0.03 * 8.2)
    alone = forest_plot.Axis.around([forest_plot.DrawnEffect(0.0, 0.0, 0.0, (inf, inf))])
    assert alone.low < 0 < alone.high


def test_printed_numbers_are_shown_by_their_distance(all_readings: list[Reading]) -> None:
    values = [one.claim for one in all_readings if one.claim.kind == "value"]
    claim = values[0].model_copy(update={"printed": "0.250"})
    effect = forest_plot.effect(claim, Verdict("refuted", 0.3, 0.28, 0.32, 8))
    assert effect is not None
    assert (effect.found, effect.low, effect.high) == pytest.approx((0.05, 0.03, 0.07))
    assert effect.claimed == pytest.approx((-0.0005, 0.0005))
    assert forest_plot.effect(claim, Verdict("undecided")) is None


def test_the_page_opens_with_all_readings_of_all_main_results(
    all_readings: list[Reading], main_results: list[Outcome], page: str
) -> None:
    """A row for each, with its word; a mark for each reading that has a verdict, which leads to its entry."""
    entries = set(re.findall(r'<li id="([^"]+)"', page))
    rows = re.findall(r'<tr data-main="([^"]+)">(.*?)</tr>', page, re.DOTALL)
    mark = r'<a class="[a-z-]+" href="#([^"]+)" title="[^"]+" aria-label'
    assert [id_ for id_, _ in rows] == [outcome.result.id for outcome in main_results]
    assert page.index(rows[-1][0]) < page.index('id="entries"')
    for outcome, (_, row) in zip(main_results, rows, strict=True):
        assert f">{outcome.word}</b>" in row
        marked = Counter(map(unquote, re.findall(mark, row)))
        judged = [one for one in outcome.readings if one.word not in {"not run", "reported"}]
        assert marked == Counter(f"{one.claim.id}@{one.scale}" for one in judged)
        shown = re.findall(r'class="effect" href="#([^"]+)"', row)
        assert {unquote(href) for href in shown} <= marked.keys() <= entries


def test_rows_have_what_matters_first(all_readings: list[Reading]) -> None:
    decided, leaning = ["refuted", "confirmed", "equal", "no effect"], ["leans against", "leans for"]
    order = [*decided, *leaning, "compatible", "undecided", "reported"]
    for block in blocks(all_readings):
        for row in block.rows:
            places = [order.index(reading.word) for reading, _ in row.entries]
            assert places == sorted(places)
