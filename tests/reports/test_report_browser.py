"""The page in a real browser: light and dark, phone and desktop, on paper, with and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE
from synthetic import POOLED, curve, diverged, plausible, quickstart, records

from benchmarks.colours import COLOURS, slots
from reports.figures import styles
from reports.page import write

pytestmark = pytest.mark.slow

LONG = "a strategy with a rather long name [and, whatever, else, tells, it, apart]"
SLOTS = {label: str(slot) for label, slot in slots([LONG, "ACE", "FedAvg", "FedBuff"]).items()}
SCENARIOS = ("digits · i.i.d. · F80", "digits · Dirichlet 0.1 · two-speed")
WINDOWS = {"phone": (375, "dark"), "desktop": (1280, "light")}


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
    fakes += [replace(fake, strategy=LONG) for fake in fakes if fake.strategy == "FedAvg"]
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


@pytest.mark.parametrize(("width", "scheme"), WINDOWS.values(), ids=WINDOWS)
def test_it_fits_the_window_in_the_colours_asked_for(opened: Any, page: str, scheme: str, width: int) -> None:
    tab = opened(page, color_scheme=scheme, viewport={"width": width, "height": 800})
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 29)"}[scheme]
    ink = tab.evaluate("getComputedStyle(document.querySelector('.card svg text')).fill")
    assert ink == {"light": "rgb(95, 103, 115)", "dark": "rgb(154, 163, 175)"}[scheme]
    for slot in SLOTS.values():
        lines = f"[...document.querySelectorAll('.card [data-s=\"{slot}\"] path')]"
        strokes = tab.evaluate(f"{lines}.map(one => getComputedStyle(one).stroke)")
        assert {*strokes} - {"none"} == {rgb(COLOURS[int(slot)])}


def test_headings_sort_by_keyboard_and_say_the_order(opened: Any, page: str) -> None:
    """A heading with a link has a button beside it; a mean that is missing stays last either way."""
    tab = opened(page)
    glance = tab.locator("table.glance")
    assert glance.locator("thead button").count() == glance.locator("thead th").count()
    button = glance.get_by_label(f"Sort by {SCENARIOS[0]}")
    button.focus()
    orders = []
    for order in ("ascending", "descending"):
        tab.keyboard.press("Enter")
        assert glance.locator("th[aria-sort]").get_attribute("aria-sort") == order
        values = glance.locator("tbody td:nth-child(2)").evaluate_all("all => all.map(one => one.dataset.v)")
        orders.append([float(value) for value in values if value != "nan"])
        assert "nan" not in values[:-1]
    assert orders[0] == sorted(orders[0]) == orders[1][::-1]


def test_a_row_leads_to_its_settings_and_its_runs(opened: Any, page: str) -> None:
    tab = opened(page)
    tab.locator("#ranking summary").first.click()
    row = tab.locator("table.ranking").first.locator("tbody tr", has_text="FedBuff")
    row.locator("th a").click()
    target = tab.evaluate("document.getElementById(location.hash.slice(1)).textContent")
    assert target.strip() == "FedBuff"
    row.locator("a[data-filter]").click()
    runs = tab.locator("#runs-1 tbody tr:visible")
    assert runs.locator("th").all_inner_texts() == ["FedBuff"] * 2
    assert all("/runs/" in one for one in runs.locator("a").evaluate_all("all => all.map(one => one.href)"))


def test_rows_are_filtered_by_words(opened: Any, page: str) -> None:
    tab = opened(page)
    tab.goto(f"{page}#runs-1")
    field = tab.locator("#runs-1").get_by_label("Filter rows")
    rows, shown = tab.locator("#runs-1 tbody tr"), tab.locator("#runs-1 tbody tr:visible")
    field.fill("fed done")
    texts = [text.lower() for text in rows.all_inner_texts()]
    assert shown.count() == sum("fed" in text and "done" in text for text in texts) < rows.count()
    assert tab.locator("#runs-1 output").inner_text() == f"{shown.count()} of {rows.count()} rows"
    field.fill("")
    assert shown.count() == rows.count()


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
    assert visible(tab) == ["virtual time"] * 2
    tab.locator("#curves .card").first.get_by_text("Client updates", exact=True).first.click()
    assert visible(tab) == ["client updates"] * 2


def test_a_switch_works_without_scripts(opened: Any, page: str) -> None:
    tab = opened(page, java_script_enabled=False)
    tab.locator("#curves .switch label").first.click()
    assert visible(tab) == ["server iterations", "virtual time"]


def test_paper_shows_all_clocks_in_light_colours(opened: Any, page: str) -> None:
    tab = opened(page, color_scheme="dark")
    tab.emulate_media(media="print")
    assert visible(tab) == ["server iterations", "client updates", "virtual time"] * 2
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with everything that a page can have."""
    ramp = np.arange(1.0, 31.0)
    terms = dict.fromkeys(("noise_sq", "bias_sq", "delay_sq", "gradient_sq"), 1 / ramp)
    fakes = [
        replace(one, diagnostics={"iteration": np.arange(30), **terms}, totals={"kept_bytes/server": 1e6})
        for one in quickstart(2)
        if one.strategy in ("ACE", "FedAvg", "FedBuff", "Vanilla ASGD")
    ]
    folder = tmp_path_factory.mktemp("whole")
    return write(records(*fakes, pooled=POOLED), folder / "page.html").as_uri()


@pytest.mark.parametrize(("width", "scheme"), WINDOWS.values(), ids=WINDOWS)
def test_every_part_fits(opened: Any, whole: str, scheme: str, width: int) -> None:
    tab = opened(whole, color_scheme=scheme, viewport={"width": width, "height": 800})
    parts = tab.eval_on_selector_all("section", "all => all.map(one => one.id)")
    assert {"behind", "curves", "target", "errors", "cost"} <= set(parts)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    # Text can be read: its size on the screen, in pixels, is font size in units of the figure times scale.
    sizes = tab.eval_on_selector_all(
        "svg[role] text",
        """all => all.filter(one => one.checkVisibility())
        .map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)""",
    )
    assert len(sizes) > 200 and min(sizes) >= 10.5


def test_a_figure_leads_to_its_runs(opened: Any, whole: str) -> None:
    tab = opened(whole)
    row = tab.locator("#provenance tbody tr").first
    assert not row.is_visible()
    tab.locator("#errors .behind a").first.click()
    row.wait_for(timeout=PATIENCE * 1000)


def test_the_first_screen_has_sentence_and_figures(opened: Any, whole: str) -> None:
    tab = opened(whole, viewport={"width": 1280, "height": 800})
    assert "Best mean rank in test accuracy over 4 scenarios" in tab.locator(".lead").inner_text()
    for figure in tab.locator("#answer svg[role]").all():
        box = figure.bounding_box()
        assert box["y"] + box["height"] < 800


def test_pointing_at_a_line_names_it_with_its_value(opened: Any, page: str) -> None:
    tab = opened(page, viewport={"width": 1280, "height": 800})
    card = tab.locator("#curves .card").last
    card.scroll_into_view_if_needed()
    line = card.locator(f".tab:visible svg [data-s='{SLOTS['ACE']}'] use").last.bounding_box()
    # Beside its last mark, not on it.
    tab.mouse.move(line["x"] + line["width"] / 2 + 5, line["y"] + line["height"] / 2 + 5)
    said = card.locator(".readout").inner_text()
    assert said.startswith(("ACE: ", "FedAvg: ", "FedBuff: "))
    assert said.endswith(" % at the end")
    named = card.locator(".tab:visible svg g:not(.faded)[data-s]").first.get_attribute("data-s")
    assert said.startswith(next(label for label, slot in SLOTS.items() if slot == named))
    tab.mouse.move(1, 1)
    assert not card.locator(".readout").is_visible()


def test_a_key_names_its_line_when_focused_and_hides_it_when_pressed(opened: Any, page: str) -> None:
    tab = opened(page)
    card = tab.locator("#curves .card").last
    key = card.locator(".keys button").nth(2)
    key.focus()
    assert card.locator(".readout").inner_text().startswith(f"{key.inner_text()}: ")
    mine = card.locator(f".tab:visible svg [data-s='{SLOTS[key.inner_text()]}']")
    assert mine.count() and mine.first.is_visible()
    tab.keyboard.press("Enter")
    assert key.get_attribute("aria-pressed") == "false" and not mine.first.is_visible()
    other = SLOTS[card.locator(".keys button").nth(1).inner_text()]
    assert card.locator(f".tab:visible svg [data-s='{other}']").first.is_visible()
    assert card.locator(".faded").count() == 0  # what is left is seen, not faded for a line that is hidden
    tab.keyboard.press("Enter")
    assert mine.first.is_visible()


def test_the_first_key_press_leads_to_the_results(opened: Any, page: str) -> None:
    tab = opened(page)
    tab.keyboard.press("Tab")
    link = tab.locator("a.skip")
    assert link.evaluate("one => one === document.activeElement") and link.bounding_box()["y"] >= 0
    assert link.get_attribute("href") == "#main" and tab.locator("main#main").count() == 1


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page of 25 strategies in seven scenarios."""
    fakes = [
        replace(
            plausible("FedBuff", SCENARIOS[0], 0, 4),
            scenario=f"digits · split {at} · F80",
            strategy=f"strategy {name}",
            curve=curve([0.1, 0.8 - 0.01 * name], [0, 100]),
        )
        for at in range(7)
        for name in range(25)
    ]
    return write(records(*fakes), tmp_path_factory.mktemp("many") / "page.html").as_uri()


def test_of_many_scenarios_one_is_shown(opened: Any, many: str) -> None:
    tab = opened(many, viewport={"width": 1280, "height": 800})

    def shown() -> list[str]:
        found: list[str] = tab.locator("#curves h3:visible").all_inner_texts()
        return found

    assert shown() == ["digits · split 0 · F80"]
    assert tab.evaluate("document.documentElement.scrollHeight") < 14_000
    tab.locator("#pick").select_option("3")
    assert shown() == ["digits · split 2 · F80"]
    assert tab.locator("#scenario-3").get_attribute("open") is not None
    tab.get_by_label("next scenario").click()
    assert shown() == ["digits · split 3 · F80"]
    tab.locator(".glance a").nth(6).click()
    tab.wait_for_function("document.getElementById('pick').value === '7'")
    assert shown() == ["digits · split 6 · F80"]
    tab.locator("#pick").select_option("")
    assert len(shown()) == 7


def test_without_scripts_all_scenarios_are_there(opened: Any, many: str) -> None:
    tab = opened(many, java_script_enabled=False)
    assert tab.locator("#curves h3:visible").count() == 7
    assert not tab.locator("#pick").is_visible()


def test_of_many_strategies_the_leaders_have_colours(opened: Any, many: str) -> None:
    tab = opened(many, viewport={"width": 1280, "height": 800})
    drawn = "[...document.querySelectorAll('#curves figure:not([hidden]) .tab.c2 [data-s] path')]"
    strokes = tab.evaluate(f"[...new Set({drawn}.map(one => getComputedStyle(one).stroke))]")
    of = styles.palette()
    coloured = {rgb(shade) for shade in COLOURS} & set(strokes)
    assert len(coloured) == 6 and rgb(of["quiet"]) in strokes
    keys = tab.locator("#curves .keys").first.locator("li").all_inner_texts()
    assert keys == [*(f"strategy {at}" for at in range(6)), "19 others"]
    tab.locator("#curves .keys").first.locator("button").last.click()
    assert not tab.locator("#curves .tab.c2 [data-s='1000']").first.is_visible()


def test_of_many_strategies_how_runs_went_is_folded(opened: Any, many: str) -> None:
    """A link of the page opens a part."""
    tab = opened(many, viewport={"width": 1280, "height": 800})
    staleness = tab.locator("#staleness figure")
    assert staleness.count() and not staleness.first.is_visible() and tab.locator("#curves figure").count()
    tab.locator("nav a[href='#staleness']").click()
    tab.wait_for_selector("#staleness > details[open]")
    assert not tab.locator("#cost > details[open]").count()


def test_one_of_the_grey_is_picked_out_by_keyboard(opened: Any, many: str) -> None:
    tab = opened(many, viewport={"width": 1280, "height": 800})
    tab.get_by_label("Strategy", exact=True).focus()
    tab.keyboard.type("strategy 17")
    tab.wait_for_selector("#curves .picked", state="attached")
    drawn = tab.locator("#curves figure:not([hidden]) .tab.c2 .picked")
    assert drawn.locator("title").inner_html().startswith("strategy 17: ")
    stroke = drawn.locator("path").first.evaluate("one => getComputedStyle(one).stroke")
    assert stroke == rgb(styles.palette()["ink"])


def test_highlighted_strategies_are_shown_everywhere(opened: Any, tmp_path: Path) -> None:
    fakes = [
        replace(one, strategy=f"{one.strategy} {letter}" if letter else one.strategy)
        for one in quickstart(2)
        for letter in ("", "b")
    ]
    mine = "Vanilla ASGD b"  # neither of the leaders nor of the first rows
    suite = replace(records(*fakes, pooled=POOLED), highlight=(mine,))
    tab = opened(write(suite, tmp_path / "page.html").as_uri(), viewport={"width": 1280, "height": 800})
    parts = ("answer", "behind", "curves", "target", "fairness", "staleness")
    for part in parts:
        labels = tab.locator(f"#{part} svg [data-s='{styles.OWN}'], #{part} h3").evaluate_all(
            "all => all.map(one => one.dataset.s ?? one.textContent)"
        )
        assert str(styles.OWN) in labels or mine in labels, part
    assert tab.locator(f"tr.own th:has-text('{mine}')").count() >= 6  # at a glance, ranked, and of costs
    assert tab.locator("#behind figure").count() == 4


def test_tables_say_what_they_hold(opened: Any, whole: str) -> None:
    tab = opened(whole)
    assert tab.locator("table").count() == tab.locator("table > caption").count() > 5
    assert tab.locator("th:not([scope])").count() == 0
    assert tab.locator("tbody tr:not(:has(> th:first-child[scope=row]))").count() == 0


def test_tables_fit_the_paper(opened: Any, tmp_path: Path) -> None:
    """A4 within its margins, or browsers print all of it smaller; details are set smaller than values."""
    two = [
        replace(one, totals=dict.fromkeys(("kept_bytes/server", "kept_bytes/clients"), 52e3 * (1 + one.seed)))
        for one in quickstart(6)
        if "0.1" in one.scenario
    ]
    page = write(records(*two, pooled=POOLED), tmp_path / "page.html")
    tab = opened(page.as_uri(), viewport={"width": 703, "height": 1000})
    tab.emulate_media(media="print")
    rights = tab.eval_on_selector_all("table", "all => all.map(one => one.getBoundingClientRect().right)")
    assert len(rights) > 5 and max(rights) <= 703
    size = "all => all.map(one => parseFloat(getComputedStyle(one).fontSize))"
    details, values = (tab.eval_on_selector_all(one, size) for one in ("td small", "td:has(> small)"))
    assert max(details) < min(values)


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of all claims."""
    from benchmarks.claims.files import papers
    from reports.claims import html
    from reports.claims.readings import all_of

    found = all_of(papers().values())
    return html.write(found, tmp_path_factory.mktemp("claims") / "claims.html").as_uri()


def test_claims_are_filtered(opened: Any, claims: str) -> None:
    tab = opened(claims, viewport={"width": 375, "height": 800})
    every = tab.locator("[data-claim]").count()
    assert tab.locator(".filters output").inner_text() == f"{every} shown"
    assert not tab.locator("[data-claim]").first.is_visible()
    tab.locator("select[name=verdict]").select_option("refuted")
    tab.locator("select[name=paper]").select_option("asyncsgd")
    tab.locator("select[name=scale]").select_option("small")
    wanted = tab.locator("[data-paper=asyncsgd][data-scale=small][data-verdict=refuted]")
    shown = tab.locator("[data-claim]:visible")
    assert 0 < shown.count() == wanted.count() < every
    assert tab.locator(".claims-block:visible").count() == 1
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    assert tab.locator(".strip:visible").count() == shown.count()


def test_main_results_are_sorted_and_filtered_with_their_readings(opened: Any, claims: str) -> None:
    tab = opened(claims)
    table = tab.locator("table.sortable").first
    results = table.locator("tbody")
    n = results.count()
    table.locator("thead button").nth(1).click()
    outcomes = table.locator("tr[data-main] td:nth-child(2)").evaluate_all(
        "all => all.map(one => one.dataset.v)"
    )
    assert outcomes == sorted(outcomes) and len(set(outcomes)) > 1
    assert results.evaluate_all("all => all.every(one => one.rows[1].className === 'readings')")
    tab.get_by_label("Filter rows").first.fill("FedBuff")
    assert 0 < table.locator("tr.readings:visible").count() < n
    tab.locator(".filters input").fill("no such words")
    assert tab.locator("[data-claim]:visible").count() == 0


def test_claims_can_be_read_without_scripts(opened: Any, claims: str) -> None:
    tab = opened(claims, java_script_enabled=False)
    block = tab.locator(".claims-block").first
    block.locator("summary").first.click()
    shown = block.locator("[data-claim]:visible").count()
    assert shown == block.locator("[data-claim]").count() > 0 and not tab.locator(".filters").is_visible()


def rgb(shade: str) -> str:
    """As a browser writes it."""
    return f"rgb({', '.join(str(int(shade[at : at + 2], 16)) for at in (1, 3, 5))})"
