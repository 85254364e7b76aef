"""Verdicts on the page of the runs that they were made from."""

import pytest

from benchmarks.claims.files import Paper, papers
from reports.page import SECTIONS, render
from reports.records.records import RecordedSuite
from reports.sections.about import claims
from reports.sections.section import Results, Section


@pytest.fixture(scope="module")
def paper() -> Paper:
    return papers()["fraboni"]


def shown(name: str) -> Section | None:
    """The section on the page of that name."""
    return claims.section(Results.of(RecordedSuite(name, "sqlite://")))


def test_verdicts_come_first_and_scales_are_never_mixed(paper: Paper) -> None:
    assert SECTIONS[0] is claims.section
    section = shown("claims-fraboni-small")
    assert section is not None
    small, computed = section.shows["blocks"]
    ids = {line["claim"].id for line in small["lines"]}
    assert ids == {id_ for id_, one in paper.claims.items() if "small" in paper.scales(one)}
    assert {line["claim"].id for line in computed["lines"]} == {
        id_ for id_, one in paper.claims.items() if one.computed
    }


@pytest.mark.parametrize("name", ["quickstart", "claims-nobody-small", "claims-"])
def test_other_pages_have_none(name: str) -> None:
    assert shown(name) is None


def test_the_template_says_all_of_it(paper: Paper) -> None:
    from reports.page import _environment

    section = shown("claims-fraboni-small")
    assert section is not None
    text = _environment().get_template(section.template).render(shows=section.shows)
    for line in section.shows["blocks"][0]["lines"]:
        assert f"<small>{line['claim'].id} · {line['claim'].place}" in text
    assert render(RecordedSuite("claims-fraboni-small", "sqlite://"))  # a page without runs is a page
