"""The forest plot of main results, and what their words rest on."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reports.claims import main_results_figure, matrix, workloads
from reports.claims.main_results import Outcome, tally
from reports.claims.pooled_effects import RandomEffects

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def test_every_main_result_has_a_row_with_its_word_and_counts(main_results: list[Outcome]) -> None:
    root = ET.fromstring(main_results_figure.file(main_results))
    texts = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    words = [text for text in texts if text in main_results_figure.COLOURS]
    assert sorted(words) == sorted(outcome.word for outcome in main_results)
    for mine in matrix.by_paper(main_results):
        counted = Counter(outcome.word for outcome in mine)
        assert ", ".join(f"{word} {counted[word]}" for word in matrix.OUTCOMES if counted[word]) in texts
    counts = [
        matrix.scoped(one)[2:-1].replace("paper's workload", "paper's") for one in main_results if one.decided
    ]
    assert sorted(text for text in texts if text in counts) == sorted(counts)
    said = " ".join(texts)
    assert all(outcome.result.words in said for outcome in main_results)
    drawn = [part for one in main_results for part in one.pooled if main_results_figure.in_points(part)]
    marks = sum(1 if part.effect else len(part.means) for part in drawn)
    assert len(list(root.iter(f"{SVG}circle"))) == marks > 10
    assert all(abs(mean) <= 1 for part in drawn for mean in part.means)  # no times
    assert all("http" not in text for text in texts)


def test_bars_have_the_shares_of_readings(main_results: list[Outcome]) -> None:
    (one,) = (one for one in main_results if one.result.id == "drop-outs")
    root = ET.fromstring(main_results_figure.file([one]))
    widths = [float(rect.get("width", 0)) for rect in root.iter(f"{SVG}rect") if rect.get("fill")]
    failing = sum(reading.word == "refuted" for reading in one.decided)
    shares = [tally(one.deciding)[0], len(one.decided) - tally(one.deciding)[0] - failing, failing]
    assert widths == pytest.approx(
        [main_results_figure.BAR_WIDTH * n / len(one.decided) for n in shares], abs=0.1
    )


def test_effects_lie_where_their_numbers_are(main_results: list[Outcome]) -> None:
    """On an axis from −30 to 30 points; beyond it, at its end with an arrow."""
    (one,) = (one for one in main_results if one.result.id == "ace-fedbuff")
    (pooled,) = one.pooled
    effect = RandomEffects(0.15, -0.15, 0.6, (-0.2, 0.2), 0.0)
    parts = list(main_results_figure._drawn(replace(pooled, effect=effect), 50.0, "red"))
    quarter = main_results_figure.AXIS_WIDTH / 4
    assert any(f'cx="{main_results_figure.AXIS + 3 * quarter:.1f}"' in part for part in parts)
    end = main_results_figure.AXIS + 4 * quarter
    assert any(f"M{main_results_figure.AXIS + quarter:.1f} 50.0H{end:.1f}" in part for part in parts)
    assert sum(f"M{end:.1f} 46.0l7 4" in part for part in parts) == 1


def test_results_between_holds_and_fails_say_where_they_hold(main_results: list[Outcome]) -> None:
    """A row each on the page, in which the counts of the conditions make those of the result."""
    page = (DOCS / "claims.md").read_text(encoding="utf-8")
    section = page.partition("## Where readings disagree\n")[2].partition("\n## ")[0]
    between = [one for one in main_results if one.word in {"mostly holds", "mixed", "mostly fails"}]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(between) > 10
    for row, one in zip(rows, between, strict=True):
        assert one.result.words in row and f"| {one.word} |" in row
        counts = [(int(held), int(n)) for held, n in re.findall(r"\((\d+) of (\d+)\)", row)]
        if one.divide:
            assert sum(held for held, _ in counts) == tally(one.deciding)[0]
            assert sum(n for _, n in counts) == len(one.decided)


def test_words_stand_under_what_they_rest_on(main_results: list[Outcome]) -> None:
    """Each main result once; where a network is claimed, one was trained."""
    groups = dict(workloads.groups(main_results))
    assert sorted(one.outcome.result.id for mine in groups.values() for one in mine) == sorted(
        one.result.id for one in main_results
    )
    for caption, network in (("a neural network", True), ("without a neural network", False)):
        for one in groups[f"The paper's workload, {caption}"]:
            own = [reading for reading in one.outcome.decided if reading.workload == "paper"]
            texts = [workloads.ran_on(reading) for reading in own if reading.claim.needs_runs]
            assert any("cnn" in text or "resnet" in text for text in texts) is network
    (update,) = (one for mine in groups.values() for one in mine if one.outcome.result.id == "per-update")
    assert (update.network, update.holding, update.decided) == (True, 1, 1)  # what fails are stand-ins


def test_what_a_gpu_would_add_is_what_has_not_run(main_results: list[Outcome]) -> None:
    missing = workloads.missing(main_results)
    added = sum(n for _, _, mine in missing for _, n in mine)
    assert added == sum(
        not reading.ran and bool(reading.needs) for one in main_results for reading in one.readings
    )
    assert all(need.gpu for _, need, _ in missing)
