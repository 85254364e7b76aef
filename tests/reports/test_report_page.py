"""The page as text: what stands on it, that it needs nothing else, that names do no harm."""

from __future__ import annotations

import base64
import gzip
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from synthetic import POOLED, Fake, curve, diverged, plausible, quickstart, records

from benchmarks.discrepancies import discrepancies
from reports.figures.svg import Drawing
from reports.page import render, sections, write
from reports.records.records import RecordedSuite
from reports.sections.section import Results
from reports.tables import download

HOSTILE = (
    '<img src=x onerror="document.title=\'owned\'"> $\\frac{1}$ {{7*7}} "\'&</script>\x07☃ id="figure_1"'
)
ALLOWED = """html head meta title link style body header p h1 nav main ul li section h2 h3 div table thead
tbody tfoot tr th td small br a figure figcaption svg g path use defs text rect clippath input label dl dt
dd span b strong details summary code script abbr caption"""
ONE = plausible("FedBuff", "digits · i.i.d. · F80", 0)


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """What a reader sees, blanks made one."""
        return " ".join(" ".join(self.words).split())

    def values(self, name: str) -> list[str]:
        """An attribute, wherever it stands."""
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def download(self, file: str) -> pd.DataFrame:
        """A table behind a link, long ones compressed."""
        (href,) = [
            of["href"]
            for tag, of in self.tags
            if tag == "a" and of.get("download", "").removesuffix(".gz") == file
        ]
        data = base64.b64decode(href.partition(",")[2])
        return pd.read_csv(io.BytesIO(data), compression="gzip" if href.startswith("data:app") else None)


@pytest.fixture(scope="module")
def suite() -> RecordedSuite:
    return records(*quickstart(), pooled=POOLED, name="quickstart")


@pytest.fixture(scope="module")
def text(suite: RecordedSuite) -> str:
    """The page of the suite, whose figures have nothing but their descriptions."""
    empty = Markup('<svg role="img" aria-label="{}"></svg>')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Drawing, "__html__", lambda drawing: empty.format(drawing.description))
        return render(suite)


@pytest.fixture(scope="module")
def drawn() -> str:
    """A page with its figures, of three strategies in two scenarios."""
    made = [
        plausible(strategy, scenario, seed)
        for scenario in ("digits · i.i.d. · F80", "digits · Dirichlet 0.1 · two-speed")
        for strategy in ("ACE", "FedAvg", "FedBuff")
        for seed in range(2)
    ]
    return render(records(*made, pooled=POOLED, name="quickstart"))


def test_the_parts_stand_in_their_order(text: str) -> None:
    page = Page(text)
    anchors = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert anchors == [
        "answer", "ranking", "behind", "curves", "target", "fairness", "staleness", "participation",
        "cost", "strategies", "errata", "provenance",
    ]  # fmt: skip
    assert (
        "84 runs: 7 strategies × 4 scenarios × 3 seeds. Run on 9 October 2025, 08:53 to 08:53 UTC"
        in page.text
    )
    assert "Diverged runs, counted and shown without a final value: 1." in page.text
    assert "Band: minimum to maximum over 2 to 3 seeds." in page.text
    assert "ACE, what it is in a line (Somebody et al., JMLR 2023, Algorithm 1)." in page.text
    assert "0123456789abcdef" in page.text and "digits: a1b2c3d4" in page.text


def test_it_needs_nothing_from_anywhere(drawn: str) -> None:
    page = Page(drawn)
    runs = "http://127.0.0.1:5000/#/experiments/1/runs"  # as asyncfl ui serves them
    addresses = page.values("href") + page.values("src")
    assert [one for one in addresses if not one.startswith(("#", "data:", runs))] == []
    rest = drawn.replace(f'<a href="{runs}', "")
    assert all(word not in rest for word in ("url(http", "@import", "http://", "https://"))


def test_run_ids_are_links(suite: RecordedSuite, text: str) -> None:
    """To the server that keeps the runs, or to the pages that asyncfl ui serves."""
    linked = {one.rpartition("/")[2] for one in Page(text).values("href") if "/runs/" in one}
    assert linked == {run.run_id for run in suite.runs}
    kept = replace(suite, uri="https://host/mlflow/")
    assert kept.address("r") == "https://host/mlflow/#/experiments/1/runs/r"


def test_every_name_inside_is_unique_and_found(drawn: str) -> None:
    page = Page(drawn)
    names = Counter(page.values("id"))
    assert [name for name, n in names.items() if n > 1] == []
    wanted = set(re.findall(r"url\(#([^)]+)\)", drawn)) | {
        one[1:] for one in page.values("href") if one[:1] == "#"
    }
    assert wanted | set(page.values("for")) <= names.keys()


def test_every_figure_tells_its_finding(text: str) -> None:
    labels = [of["aria-label"] for tag, of in Page(text).tags if tag == "svg" and of.get("role") == "img"]
    assert len(labels) > 40 and len(set(labels)) == len(labels)
    numbers = {label for label in labels if re.search(r": .*\d", label)}
    words = {label for label in labels if re.search(r": .*(separated|median seed|sent)", label)}
    assert set(labels) == numbers | words


@pytest.mark.usefixtures("undrawn")
def test_what_would_be_the_same_figure_is_drawn_once() -> None:
    """Staleness and participation of two partitions with one schedule; the third has another."""
    made = [
        replace(
            ONE,
            scenario=f"digits · {partition} · F80",
            partition=partition,
            strategy=name,
            staleness=(7,) * 2000 if partition == "c" else ONE.staleness,
        )
        for partition in "abc"
        for name in ("ACE", "FedBuff")
    ]
    found = {section.anchor: section for section in sections(Results.of(records(*made)))}
    assert [name for name, _ in found["staleness"].figures] == ["digits · F80", "digits · c · F80"]
    assert [name for name, _ in found["participation"].figures] == ["digits · F80"]
    text = Page(render(records(*made))).text
    assert "The same in 2 scenarios: digits · a · F80; digits · b · F80." in text


def test_a_table_too_long_for_a_page_names_the_command() -> None:
    long = pd.DataFrame({"x": np.random.default_rng(0).random(120_000)})
    found = download("Curves", "suite", "curves", long)
    assert (found.file, found.address) == ("suite-curves.csv", "")
    again = [download("Curves", "suite", "curves", long[:3000]) for _ in range(2)]
    assert again[0] == again[1] and again[0].file == "suite-curves.csv.gz"
    packed = gzip.decompress(base64.b64decode(again[0].address.partition(",")[2]))
    assert pd.read_csv(io.BytesIO(packed)).x.to_numpy() == pytest.approx(long.x[:3000].to_numpy(), rel=1e-5)


def test_errata_of_what_the_suite_uses_are_there(suite: RecordedSuite, text: str) -> None:
    """And of nothing else."""
    words = " ".join(Page(text).words)
    used = {run.params["strategy.name"] for run in suite.runs}
    about = {
        entry.id: entry
        for entry in discrepancies()
        if entry.about.keys() == {"strategies"}
        for part in entry.about["strategies"]
        if (part if isinstance(part, str) else part["name"]) in used
    }
    assert about and "X-36" not in about  # of FedFa
    assert set(re.findall(r"\bX-\d+\b", words)) == about.keys()
    for entry in about.values():
        assert entry.reading in words
        others = {key: "null" if value is None else value for key, value in entry.other.items()}
        assert all(f"{key}={value}" in words for key, value in others.items())


@pytest.mark.slow
def test_the_page_of_84_runs_is_small(suite: RecordedSuite) -> None:
    assert len(render(suite).encode()) < 1_200_000


@pytest.mark.slow
def test_the_page_of_a_thousand_runs_with_diagnostics_can_be_opened() -> None:
    terms = dict.fromkeys(("noise_sq", "bias_sq", "delay_sq", "gradient_sq"), np.linspace(1, 2, 40))
    fakes = [
        plausible(strategy, scenario, seed, 100, diagnostics={"iteration": np.arange(40), **terms})
        for strategy in ("ACE", "FedAvg", "FedBuff", "FedFix", "Vanilla ASGD")
        for scenario in ("digits · i.i.d. · F80", "digits · Dirichlet 0.1 · two-speed")
        for seed in range(100)
    ]
    assert len(render(records(*fakes, pooled=POOLED)).encode()) < 15_000_000


def test_tables_can_be_taken_away(text: str) -> None:
    page = Page(text)
    ranking = page.download("quickstart-ranking.csv")
    assert len(ranking) == 28 and ranking["diverged"].sum() == 1 and inf in set(ranking["updates to target"])
    runs = page.download("quickstart-runs.csv")
    assert len(runs) == 84 and runs["run"].nunique() == 84
    ace = runs[(runs.strategy == "ACE") & (runs.scenario == "digits · i.i.d. · F80")]
    row = ranking[(ranking.strategy == "ACE") & (ranking.scenario == "digits · i.i.d. · F80")]
    assert row["test/accuracy mean"].item() == pytest.approx(ace["test/accuracy"].mean(), rel=1e-5)
    curves = page.download("quickstart-curves.csv")
    assert set(curves.clock) == {"iteration", "updates", "time"} and set(curves.seeds) == {2, 3}


def test_names_do_no_harm() -> None:
    fakes = [
        replace(
            ONE,
            scenario=f"=cmd() {HOSTILE}",
            strategy=f"{HOSTILE} {end}",
            seed=seed,
            paper="</style><script>alert(2)</script>",
            params={"strategy.x": '"><b>'},
        )
        for end in "ab"
        for seed in range(2)
    ]
    page = Page(render(records(*fakes, diverged(replace(fakes[0], seed=2)), name="</title><b>suite</b>")))
    assert {tag for tag, _ in page.tags} - set(ALLOWED.split()) == set()
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    shown = HOSTILE.replace("\x07", " ")
    assert f"{shown} a" in page.text and "</title><b>suite</b>" in page.text
    assert "49" not in re.findall(r"\{\{7\*7\}\}|(?<![\d.])49", page.text)
    assert page.download("title-b-suite-b-ranking.csv")["scenario"][0].startswith("'=cmd()")


def test_nothing_recorded_is_a_sentence() -> None:
    page = Page(render(RecordedSuite("quickstart", "sqlite:///mlflow.db")))
    assert "No run of this suite is recorded at sqlite:///mlflow.db." in page.text
    assert not any(tag in {"section", "svg"} for tag, _ in page.tags)


@pytest.mark.usefixtures("undrawn")
def test_one_run_of_one_seed_gives_the_same_page_again() -> None:
    text = render(records(ONE))
    assert render(records(ONE)) == text
    page = Page(text)
    assert "1 run: 1 strategy × 1 scenario × 1 seed." in page.text
    assert "one seed, hence no band" in page.text
    assert "±" not in page.text and not re.search(r"(over|of) (1 seed|seeds)", page.text)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("status", ["running", "done"])
def test_runs_without_files(status: str) -> None:
    page = Page(render(records(replace(ONE, status=status, curve=None))))
    assert ("unreadable" if status == "done" else "unfinished") in page.text


def test_only_diverged_runs_are_still_drawn() -> None:
    text = render(records(diverged(ONE), diverged(replace(ONE, seed=1))))
    assert "Thin lines that end in ✕" in text and "without a final value: 2." in text
    assert "2 (2 diverged)" in text


def test_a_problem_without_accuracy() -> None:
    clocks = {name: values for name, values in curve([0, 0, 0], [0, 5, 10]).items() if "/" not in name}
    clients = {
        "client": [0, 1],
        "importance": [0.5, 0.5],
        "mean_time": [1.0, 2.0],
        "size": [1, 1],
        "loss": [1.0, 3.0],
    }
    fake = Fake(
        scenario="quadratic · fixed",
        problem="quadratic",
        metric="distance",
        higher=False,
        target=1e-3,
        clients=clients,
        curve={**clocks, "distance": [1.0, 1e-2, 1e-4], "excess_loss": [1.0, 1e-4, 1e-8]},
    )
    page = Page(render(records(fake)))
    assert "Distance to the optimum · log scale" in page.text
    assert "Loss at the end" in page.text and "Updates to 0.001" in page.text


@pytest.mark.usefixtures("undrawn")
def test_what_strategies_share_is_said_once() -> None:
    one = replace(
        ONE, params={"strategy.name": "fedbuff", "strategy.local_lr": "0.1", "strategy.buffer": "10"}
    )
    other = replace(ONE, strategy="ACE", params={"strategy.name": "ace", "strategy.local_lr": "0.1"})
    page = Page(render(records(one, other)))
    assert "All of them ran with local_lr 0.1." in page.text
    assert page.text.count("local_lr") == 1 and "buffer 10" in page.text


def test_a_reader_never_meets_half_a_page(tmp_path: Path, suite: RecordedSuite) -> None:
    path = write(RecordedSuite("empty", "sqlite:///x.db"), tmp_path / "new" / "folder" / "page.html")
    assert [one.name for one in path.parent.iterdir()] == ["page.html"]
