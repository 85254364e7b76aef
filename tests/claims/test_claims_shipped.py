"""The claims that come with the package: what they select can run, what is printed stands in one of them."""

import csv
import importlib
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from benchmarks.claims import register, stored_numbers
from benchmarks.claims.claim import SCALES, Claim
from benchmarks.claims.files import FOLDER, Paper
from benchmarks.claims.kinds import Report, Theorem, Value
from benchmarks.claims.plan import ClaimPlan, mistakes
from benchmarks.mlflow_store.provenance import has_commit
from reports.claims.main_results import outcomes
from reports.claims.readings import THEOREM, Reading

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
D1_OR_D2 = {"jobs", "code", "residual_jobs", "resnet18_jobs", "persistent"}  # delays in virtual time


@pytest.fixture(scope="module")
def claims(all_papers: dict[str, Paper]) -> list[tuple[Paper, Claim]]:
    return [(paper, claim) for paper in all_papers.values() for claim in paper.claims.values()]


def test_every_entry_selects_runs_that_can_be_made_at_every_scale(all_papers: dict[str, Paper]) -> None:
    assert mistakes(all_papers.values()) == []


def test_every_function_that_is_named_is_there(claims: list[tuple[Paper, Claim]]) -> None:
    metrics = {sample.metric or "" for _, claim in claims for sample in claim.samples.values()}
    for path in {metric for metric in metrics if ":" in metric}:
        module, _, name = path.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), path


def test_every_theorem_has_the_test_that_it_names(claims: list[tuple[Paper, Claim]]) -> None:
    """In the file of its paper; and every test of theorems has a theorem."""
    named = {(paper.name, claim.test) for paper, claim in claims if isinstance(claim, Theorem)}
    written = {
        (path.stem.removeprefix("test_"), f"{path.relative_to(ROOT).as_posix()}::{name}")
        for path in (ROOT / "tests" / "papers").glob("test_*.py")
        for name in re.findall(r"^(\w+) = theorem\(", path.read_text("utf-8"), re.MULTILINE)
    }
    assert named == written


def test_small_claims_have_five_seeds_at_least(all_papers: dict[str, Paper]) -> None:
    for paper in all_papers.values():
        plan = ClaimPlan(paper, "small", ())
        for claim in paper.claims.values():
            if "small" in paper.scales(claim):
                for name, runs in plan.picked(claim).items():
                    assert len(runs) >= 5, f"{claim.id}: {name}"


@pytest.mark.parametrize("table", sorted((FOLDER / "published").glob("*.csv")), ids=lambda path: path.stem)
def test_every_cell_of_a_published_table_is_in_exactly_one_entry(table: Path) -> None:
    with table.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    columns = list(rows[0])[list(rows[0]).index("local_steps_c") + 1 :]
    found: Counter[tuple[int, str]] = Counter()
    for path in FOLDER.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        for entry in yaml.load(text, yaml.CSafeLoader)["claims"] if table.name in text else ():
            source = entry.get("table", {})
            if source.get("file") == f"published/{table.name}" and entry.get("printed") == "{printed}":
                chosen = source.get("rows", {})
                for number, row in enumerate(rows):
                    if all(yaml.safe_load(row[name]) == value for name, value in chosen.items()):
                        found.update((number, cell) for cell in source["cells"])
    cells = {(number, column): 1 for number in range(len(rows)) for column in columns}
    assert dict(found) == cells


def test_every_number_of_the_text_is_in_an_entry(all_papers: dict[str, Paper]) -> None:
    """Of the routing paper: §5.1, §5.2 and Fig. 2, rounds as counted in runs."""
    entries = all_papers["asyncsgd"].claims
    values = Counter(
        float(claim.printed)
        for claim in entries.values()
        if isinstance(claim, Value | Theorem) and isinstance(claim.printed, str)
    )
    times = {17000: 1, 690: 1, 3200: 2, 145: 1, 22: 1, 16: 1, 10: 1}
    assert {number: values[number] for number in times} == times
    assert entries["G-numbers-p_H/vector"].arguments["printed"] == [0.0068, 0.0449, 0.0487]


@pytest.mark.slow
def test_stored_numbers_are_those_of_the_runs_that_entries_select(all_papers: dict[str, Paper]) -> None:
    """An entry that was changed after it ran would be judged by numbers of something else."""
    for paper in all_papers.values():
        for scale in SCALES:
            stored = stored_numbers.read(stored_numbers.path(paper.name, scale))
            seeds = tuple(sorted({one.seed for one in stored}))
            plan = ClaimPlan(paper, scale, (), seeds or None)
            for one in stored:
                runs = plan.picked(paper.claims[one.claim])[one.sample][one.seed]
                assert one.runs.split() == [run.key for run in runs], one


def test_what_contradicts_a_paper_or_has_no_effect_says_what_was_seen(all_readings: list[Reading]) -> None:
    silent = [
        one.claim.id
        for one in all_readings
        if not one.claim.seen
        and (one.word == "no effect" or (one.word == "refuted" and one.failure == "contradicts"))
    ]
    assert silent == []


# Read off the papers, entry by entry.
@pytest.mark.parametrize(
    ("id_", "scale", "arrangement", "workload", "failure"),
    [
        ("A-best/ace-fedbuff-a0.1-D2-5", "small", "ours", "stand-in", "ours"),
        ("A-best/ace-fedbuff-a0.1-D4-5", "paper", "reading", "paper", "underspecified"),
        ("A-code/aced-ca2fl-a0.1", "small", "code", "stand-in", "other_arrangement"),
        ("F-weights-FP/mnist-iid", "paper", "ours", "paper", "ours"),  # a rate by hand
        ("F-weights-FP/mnist-iid", "small", "ours", "paper", "ours"),  # 1,500 of 200,000 units of time
        ("F-quadratic/fedbuff-weight-phi-0.1", THEOREM, "code", "paper", "other_arrangement"),
        ("F-ex1/limit-phi-1", THEOREM, "paper", "paper", "outside_conditions"),
        ("G-numbers-m/0.015", THEOREM, "reading", "paper", "underspecified"),
        ("G-H-time/iid-H-uniform", "small", "paper", "stand-in", "other_workload"),
        ("G-per-update/fig3-fashion-iid-uniform-network", "paper", "reading", "paper", "underspecified"),
        ("N-speedup/afa_cs", THEOREM, "paper", "stand-in", "outside_conditions"),
        ("N-table-2-LR/p1-m5-c5-sync_dynamic", "paper", "paper", "paper", "contradicts"),
        ("N-afl-keeps/mnist-p1-c5-scaffold", "paper", "reading", "paper", "underspecified"),
    ],
)
def test_arrangement_and_workload(  # noqa: PLR0917 - a row of the table
    all_papers: dict[str, Paper], id_: str, scale: str, arrangement: str, workload: str, failure: str
) -> None:
    [claim] = [paper.claims[id_] for paper in all_papers.values() if id_ in paper.claims]
    assert (claim.arranged(scale), claim.works_on(scale), claim.failure(scale)) == (
        arrangement,
        workload,
        failure,
    )


def test_an_arrangement_that_is_a_reading_is_one_for_all_claims_that_use_it(
    claims: list[tuple[Paper, Claim]],
) -> None:
    """ACE under delays in iterations; SCAFFOLD; routing by a vector that is not printed."""
    for paper, claim in claims:
        texts = [str(sample.model_dump()) for sample in claim.samples.values()]
        scenarios = {sample.scenario for sample in claim.samples.values()}
        open_ = (
            (paper.name == "ace" and not scenarios & D1_OR_D2)
            or any("scaffold" in text for text in texts)
            or any("'routing': 'G'" in text or "'routing': 'H'" in text for text in texts)
        )
        if open_ and texts:
            assert {claim.arranged(scale) for scale in paper.scales(claim)} <= {"reading", "ours"}, claim.id


@pytest.mark.parametrize("name", ["ace", "asyncsgd"])
def test_logistic_regression_stands_in_for_their_networks(all_papers: dict[str, Paper], name: str) -> None:
    """Everywhere; but for counts of rounds, which do not depend on what is learnt."""
    paper, seen = all_papers[name], 0
    plan = ClaimPlan(paper, "small", (), (0,))
    for claim in paper.claims.values():
        if "small" in paper.scales(claim) and claim.metric != "updates":
            problems = [
                run.experiment.scenario.problem for of in plan.picked(claim).values() for run in of[0]
            ]
            if any(getattr(problem.model, "name", "") == "logistic" for problem in problems):
                assert claim.works_on("small") == "stand-in", claim.id
                seen += 1
    assert seen > 50


def test_what_is_not_judged_has_no_verdict(all_readings: list[Reading]) -> None:
    reported = [one for one in all_readings if isinstance(one.claim, Report) or one.claim.unjudged]
    assert {one.word for one in reported} == {"reported", "not run"}


def test_every_verdict_stands_on_the_page_of_its_paper(
    all_papers: dict[str, Paper], all_readings: list[Reading]
) -> None:
    """Once under each main result that it is a reading of, or else once."""
    for paper in all_papers.values():
        page = (DOCS / "claims" / f"{paper.name}.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| .*<br>`(\S+)` · .* \|$", page, re.MULTILINE)
        found = [one for one in all_readings if one.paper.name == paper.name]
        times = Counter((one.claim.id, one.scale) for outcome in outcomes(found) for one in outcome.readings)
        expected = Counter[str]()
        for one in found:
            if one.ran or one.verdict.seeds:  # fewer than a first look needs are shown
                expected[one.claim.id] += times[one.claim.id, one.scale] or 1
        assert Counter(rows) == expected
        waiting = "".join(re.findall(r"^## Not run\n(.*)", page, re.MULTILINE | re.DOTALL))
        left = sum(int(n) for n in re.findall(r"\((\d+)\)[,.]", waiting))
        assert left == sum(not one.ran for one in found)


def test_what_has_not_run_says_what_it_costs(all_readings: list[Reading]) -> None:
    """With and without a GPU; but for runs that an evening on two cores makes."""
    for one in all_readings:
        if not one.ran and one.scale == "paper" and one.paper.name != "fraboni":
            assert one.needs and one.needs.gpu and one.needs.cores, one.claim.id


def test_nothing_was_changed_after_its_numbers_were_seen_without_a_line(all_papers: dict[str, Paper]) -> None:
    """After a line in `benchmarks/claims/decisions/`: asyncfl claims register."""
    assert {name: register.changed(paper) for name, paper in all_papers.items()} == {
        name: [] for name in all_papers
    }


def test_the_register_is_whole(all_papers: dict[str, Paper]) -> None:
    """Each change names a decision on its entry, each decision stands on the page, in the order of dates."""
    page = (DOCS / "claims-changes.md").read_text(encoding="utf-8")
    for paper in all_papers.values():
        known = {one.id: one for one in register.decisions(paper)}
        ran = any(stored_numbers.read(stored_numbers.path(paper.name, scale)) for scale in SCALES)
        assert known or not ran
        assert list(known) == [one.id for one in register.decisions(paper)]
        assert [one.date for one in known.values()] == sorted(one.date for one in known.values())
        for id_, states in register.history(paper).items():
            assert all(known[decision].concerns(id_) for _, decision in states[1:]), id_
            assert len({decision for _, decision in states}) == len(states), id_
        for one in known.values():
            assert f"| {one.date} | " in page and one.reason in page


def test_new_numbers_come_from_commits_of_the_repository(all_papers: dict[str, Paper]) -> None:
    """Without uncommitted changes; commits are looked up where the history is there."""
    files = [stored_numbers.path(name, scale) for name in all_papers for scale in SCALES]
    stored = [number for file in files for number in stored_numbers.read(file)]
    fresh = {number.origin for number in stored if number.when >= stored_numbers.TRACED_SINCE}
    assert fresh and all(map(stored_numbers.traceable, fresh))
    shallow = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--is-shallow-repository"],
        capture_output=True,
        text=True,
        check=False,
    )
    if shallow.stdout.strip() != "false":
        pytest.skip("the history of the repository is not here")
    named = {name.rstrip("+") for number in stored for name in stored_numbers.commits(number.origin)}
    assert {name for name in named if not has_commit(name, ROOT)} == stored_numbers.LOST_COMMITS
