"""The page in a real browser: light and dark, phone and desktop, on paper, with and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import POOLED, diverged, plausible, quickstart, records

from reports.figures import look
from reports.page import write
from reports.records.records import RecordedSuite

SCENARIOS = ("digits · i.i.d. · F80", "digits · Dirichlet 0.1 · two-speed")
WIDTHS = {"phone": 375, "desktop": 1280}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page of twelve runs, one of them diverged, and one long name."""
    fakes = [
        plausible(strategy, scenario, seed)
        for scenario in SCENARIOS
        for strategy in ("ACE", "FedAvg", "FedBuff")
        for seed in range(2)
    ]
    fakes[0] = diverged(fakes[0])
    long = "a strategy with a rather long name [and, whatever, else, tells, it, apart]"
    fakes += [replace(fake, strategy=long) for fake in fakes if fake.strategy == "FedAvg"]
    folder = tmp_path_factory.mktemp("page")
    return write(records(*fakes, pooled=POOLED), folder / "page.html").as_uri()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Opens a page in a fresh window; whatever it complains of fails the test."""
    windows, complaints = [], []

    def open_page(address: str, **how: Any) -> Any:
        windows.append(browser.new_context(**how))
        tab = windows[-1].new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request", lambda request: complaints.append(request.url) if "http" in request.url[:5] else None
        )
        tab.goto(address)
        return tab

    yield open_page
    for window in windows:
        window.close()
    assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_it_fits_the_window_in_the_colours_asked_for(opened: Any, page: str, scheme: str, width: int) -> None:
    tab = opened(page, color_scheme=scheme, viewport={"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 29)"}[scheme]
    ink = tab.evaluate("getComputedStyle(document.querySelector('.card svg text')).fill")
    assert ink == {"light": "rgb(95, 103, 115)", "dark": "rgb(154, 163, 175)"}[scheme]
    lines = (
        "[...document.querySelectorAll('.card [data-s=\"0\"] path')].map(one => getComputedStyle(one).stroke)"
    )
    assert {"light": "rgb(36, 77, 133)", "dark": "rgb(92, 139, 179)"}[scheme] in tab.evaluate(lines)


def column(tab: Any, at: int) -> list[str]:
    """Texts of a column of the first ranking."""
    rows = tab.locator("table.ranking").first.locator("tbody tr")
    texts = [rows.nth(row).locator("> *").nth(at).inner_text() for row in range(rows.count())]
    return [text.removeprefix("≈").split()[0] for text in texts]


def test_a_click_on_a_heading_sorts(opened: Any, page: str) -> None:
    tab = opened(page)
    heading = tab.locator("table.ranking").first.locator("th button").nth(1)
    heading.click()
    rising = [float(text) for text in column(tab, 1)]
    assert rising == sorted(rising) and len(rising) == 4
    heading.click()
    assert [float(text) for text in column(tab, 1)] == rising[::-1]
    tab.locator("table.ranking").first.locator("th button").first.click()
    names = column(tab, 0)
    assert names == sorted(names, key=str.casefold)


def visible(tab: Any) -> list[str]:
    """The clocks of the curves that are seen."""
    found = tab.locator("#curves .tab svg")
    return [
        found.nth(at).get_attribute("aria-label").split(" against ")[1].split(",")[0]
        for at in range(found.count())
        if found.nth(at).is_visible()
    ]


def test_one_switch_moves_all_scenarios_to_a_clock(opened: Any, page: str) -> None:
    tab = opened(page)
    assert visible(tab) == ["client updates"] * 2
    tab.locator("#curves .card").first.get_by_text("Virtual time", exact=True).first.click()
    assert visible(tab) == ["virtual time"] * 2


def test_a_switch_works_without_scripts(opened: Any, page: str) -> None:
    tab = opened(page, java_script_enabled=False)
    tab.locator("#curves .switch label").first.click()
    assert visible(tab) == ["server iterations", "client updates"]


def test_paper_shows_all_clocks_in_light_colours(opened: Any, page: str) -> None:
    tab = opened(page, color_scheme="dark")
    tab.emulate_media(media="print")
    assert visible(tab) == ["server iterations", "client updates", "virtual time"] * 2
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_key_fades_the_other_strategies(opened: Any, page: str) -> None:
    tab = opened(page)
    card = tab.locator("#curves .card").first
    faded = "[...document.querySelectorAll('#curves .card:first-child .faded')].map(one => one.dataset.s)"
    card.locator(".keys li").nth(1).hover()
    assert "1" not in tab.evaluate(faded) and {"0", "2", "3"} <= set(tab.evaluate(faded))
    tab.mouse.move(1, 1)
    assert tab.evaluate(faded) == []


def test_an_empty_page(opened: Any, tmp_path: Path) -> None:
    path = write(RecordedSuite("nothing", "sqlite:///mlflow.db"), tmp_path / "page.html")
    tab = opened(path.as_uri(), viewport={"width": 375, "height": 800})
    assert "No run of this suite is recorded" in tab.locator("body").inner_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with everything that a page can have."""
    ramp = np.arange(1.0, 31.0)
    terms = dict.fromkeys(("noise_sq", "bias_sq", "delay_sq", "gradient_sq"), 1 / ramp)
    fakes = [
        replace(one, diagnostics={"iteration": np.arange(30), **terms}, totals={"kept_bytes/server": 1e6})
        for one in quickstart(2)
    ]
    folder = tmp_path_factory.mktemp("whole")
    return write(records(*fakes, pooled=POOLED), folder / "page.html").as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_every_part_fits(opened: Any, whole: str, scheme: str, width: int) -> None:
    tab = opened(whole, color_scheme=scheme, viewport={"width": width, "height": 800})
    parts = tab.eval_on_selector_all("section", "all => all.map(one => one.id)")
    assert {"behind", "curves", "target", "grid", "errors", "cost"} <= set(parts)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    # Numbers in a heatmap can be read on their cells: one theme's ink or paper on one of its amounts.
    of = look.palette(dark=scheme == "dark")
    fills = tab.eval_on_selector_all(
        "#grid svg path", "all => [...new Set(all.map(one => getComputedStyle(one).fill))]"
    )
    amounts = {rgb(of[f"a{at}"]) for at in range(9)}
    assert len(amounts & set(fills)) >= 3


def test_a_figure_leads_to_its_runs(opened: Any, whole: str) -> None:
    tab = opened(whole)
    row = tab.locator("#provenance tr[id]").first
    assert not row.is_visible()
    tab.locator("#errors .behind summary").nth(1).click()
    link = tab.locator("#errors .behind a").first
    link.click()
    target = link.get_attribute("href")
    assert tab.locator(f"#provenance tr{target}").is_visible()


def rgb(shade: str) -> str:
    """As a browser writes it."""
    return f"rgb({', '.join(str(int(shade[at : at + 2], 16)) for at in (1, 3, 5))})"
