"""Colours, dashes, marks: told apart by every eye, on light and on dark paper."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.catalogue import entries
from benchmarks.colours import COLOURS, STRATEGIES, colours, slots
from benchmarks.suite.suite import load
from fl_core.strategies.strategy import Strategy
from reports.figures import styles
from reports.page import TEMPLATES

# Machado, Oliveira, Fernandes (2009), severity 1, for linear RGB.
EYES = {
    name: np.array(numbers).reshape(3, 3)
    for name, numbers in {
        "normal": [1, 0, 0, 0, 1, 0, 0, 0, 1],
        "protanope": [0.1523, 1.0526, -0.2049, 0.1145, 0.7863, 0.0992, -0.0039, -0.0481, 1.0520],
        "deuteranope": [0.3673, 0.8606, -0.2280, 0.2801, 0.6725, 0.0474, -0.0118, 0.0429, 0.9689],
        "tritanope": [1.2555, -0.0767, -0.1788, -0.0784, 0.9308, 0.1476, 0.0047, 0.6914, 0.3039],
    }.items()
}
# Ottosson (2020), from linear RGB to Oklab, in which distances are about what is seen.
TO_CONES = np.array(
    [
        [0.41222147, 0.53633254, 0.05144599],
        [0.2119035, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.6299787],
    ]
)
TO_OKLAB = np.array(
    [
        [0.21045426, 0.79361779, -0.00407205],
        [1.9779985, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
)
OKABE_ITO = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
BACKGROUNDS = (styles.LIGHT_PAPER, styles.DARK_PAPER, "#ffffff", "#11171c")  # of pages, of MLflow


def linear(shade: str) -> np.ndarray:
    value = np.array([int(shade[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG 2."""
    dark, light = sorted(float(linear(shade) @ [0.2126, 0.7152, 0.0722]) for shade in (one, other))
    return (light + 0.05) / (dark + 0.05)


def nearest(shades: tuple[str, ...], eye: str) -> float:
    """The least distance between two of the colours."""
    seen = [TO_OKLAB @ np.cbrt(TO_CONES @ np.clip(EYES[eye] @ linear(shade), 0, 1)) for shade in shades]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_every_line_stands_out_from_the_background(background: str) -> None:
    assert min(contrast(shade, background) for shade in COLOURS) >= 3


@pytest.mark.parametrize("eye", EYES)
def test_no_two_colours_are_alike_to_any_eye(eye: str) -> None:
    """Normal eyes tell all colours apart, others the first eight; dash and mark tell the rest."""
    worst = min(nearest(OKABE_ITO, any_eye) for any_eye in EYES)
    seen = COLOURS if eye == "normal" else COLOURS[: styles.MOST_COLOURED]
    assert nearest(seen, eye) > 1.4 * worst


def test_dash_and_mark_tell_apart_all_colours() -> None:
    marks = [(styles.marker(at), styles.dash(at)) for at in range(len(COLOURS))]
    assert len(set(marks)) == len(COLOURS)


def test_dash_and_mark_tell_apart_what_shares_a_colour() -> None:
    looks = [(styles.colour(at), styles.dash(at), styles.marker(at)) for at in range(64)]
    assert len(set(looks)) == 64
    for one, other in combinations(range(64), 2):
        if styles.colour(one) == styles.colour(other):
            assert styles.marker(one) != styles.marker(other)


def test_every_strategy_has_a_colour_of_its_own_in_shipped_suites() -> None:
    names = [entry.name for entry in entries("strategies")]
    assert {Strategy.model_validate({"name": name}).label() for name in names} == {*STRATEGIES}
    for suite in ("quickstart", "standard", "ace"):
        labels = {run.strategy for run in load(suite).runs()}
        assert len({*colours(labels).values()}) == min(len(labels), len(COLOURS)), suite


@given(st.sets(st.sampled_from([*STRATEGIES, *(f"mine {at}" for at in range(9))]), min_size=1))
def test_a_colour_is_the_usual_one_unless_taken(labels: set[str]) -> None:
    chosen = slots(labels)
    assert len({*chosen.values()}) == len(labels)
    assert len({*colours(labels).values()}) == min(len(labels), len(COLOURS))
    for label in labels & {*STRATEGIES[: len(COLOURS)]}:
        assert colours(labels)[label] == COLOURS[STRATEGIES.index(label)]


@pytest.mark.parametrize("theme", [False, True], ids=["light", "dark"])
def test_amounts_rise_evenly_and_numbers_on_them_can_be_read(theme: bool) -> None:
    of = styles.palette(dark=theme)
    amounts = [of[f"a{at}"] for at in range(9)]
    apart = [contrast(shade, of["paper"]) for shade in amounts]
    assert apart == sorted(apart)
    for at, shade in enumerate(amounts):
        assert contrast(shade, of["paper"] if at >= styles.TURN else of["ink"]) >= 4.5
    for eye in EYES:
        assert nearest(tuple(amounts), eye) > 0.03


def of_style() -> str:
    """The style sheet of the page."""
    return (TEMPLATES / "page.css").read_text()


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(dark: bool) -> None:
    own = re.findall(r"--(\w+): (#\w{6})", of_style())  # first those of light paper, then those of dark
    shades = styles.palette(dark) | dict(own[len(own) // 2 :] if dark else own[: len(own) // 2])
    written = set(re.findall(r"[ ;{]color: var\(--(\w+)\)", of_style()))
    assert {"ink", "muted", "link", "bad"} <= written <= {*shades}
    for name in written:
        for paper in ("paper", "wash"):
            assert contrast(shades[name], shades[paper]) >= 4.5, (name, paper)
    for at in range(len(styles.LIGHT_AMOUNTS)):
        name = "paper" if at >= styles.TURN else "ink"
        assert contrast(shades[f"a{at}"], shades[name]) >= 4.5, at
    for line in ("quiet", "muted", "ink"):
        assert contrast(shades[line], shades["paper"]) >= 3
    faint = [rule for rule in of_style().splitlines() if re.search(r"opacity: (?!0;)", rule)]
    assert [rule.split(" {")[0] for rule in faint] == [".card svg .faded"]  # while one is pointed at


def test_highlighted_strategies_differ_from_all_others() -> None:
    own = [styles.OWN, styles.OWN + 1]
    assert {styles.colour(at) for at in own} == {"ink"} and styles.width(own[0]) > styles.width(0)
    assert styles.dash(own[0]) != styles.dash(own[1]) and styles.marker(own[0]) != styles.marker(own[1])
    assert not any(map(styles.highlighted, (0, 31, styles.QUIET, styles.QUIET + 40)))
