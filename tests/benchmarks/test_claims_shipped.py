"""The claims that come with the package: what they select can run, what is printed stands in one of them."""

import csv
import importlib
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from benchmarks.claims import kept
from benchmarks.claims.claim import SCALES, Claim, Exact, Value
from benchmarks.claims.files import FOLDER, Paper, papers
from benchmarks.claims.kept import COMPUTED
from benchmarks.claims.plan import ClaimPlan, mistakes
from benchmarks.commands.claims.group import command
from reports.claims.claims import recipe
from reports.claims.stored import counts, judged, scales

README = Path(__file__).parents[2] / "README.md"
DOCS = README.with_name("docs")
BEGIN, END = "<!-- claims -->\n", "<!-- /claims -->"


@pytest.fixture(scope="module")
def shipped() -> dict[str, Paper]:
    return papers()


@pytest.fixture(scope="module")
def claims(shipped: dict[str, Paper]) -> list[tuple[Paper, Claim]]:
    return [(paper, claim) for paper in shipped.values() for claim in paper.claims.values()]


def test_every_entry_selects_runs_that_can_be_made_at_every_scale(shipped: dict[str, Paper]) -> None:
    assert mistakes(shipped.values()) == []


def test_statements_are_in_the_field_s_words(claims: list[tuple[Paper, Claim]]) -> None:
    """No name of a strategy as suites write it, and none of a case as ids have it."""
    own = r"\b[a-z0-9]+_[a-z]{2,}|\b(aced?|ca2fl|asgd|fedavg|fedbuff|fedfix|iid|dirichlet|mnist|phi)\b"
    assert [claim.id for _, claim in claims if re.search(own, claim.statement)] == []


def test_every_function_that_is_named_is_there(claims: list[tuple[Paper, Claim]]) -> None:
    metrics = {sample.metric or "" for _, claim in claims for sample in claim.samples.values()}
    computed = {claim.computed for _, claim in claims if claim.computed}
    for path in computed | {metric for metric in metrics if ":" in metric}:
        module, _, name = path.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), path


def test_small_claims_have_five_seeds_at_least(shipped: dict[str, Paper]) -> None:
    for paper in shipped.values():
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
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["claims"]:
            source = entry.get("table", {})
            if source.get("file") == f"published/{table.name}" and entry.get("printed") == "{printed}":
                chosen = source.get("rows", {})
                for number, row in enumerate(rows):
                    if all(yaml.safe_load(row[name]) == value for name, value in chosen.items()):
                        found.update((number, cell) for cell in source["cells"])
    cells = {(number, column): 1 for number in range(len(rows)) for column in columns}
    assert dict(found) == cells


# Numbers in the text of the routing paper that are in no table (§5.1, §5.2, Fig. 2).
@pytest.mark.parametrize("printed", [17000, 690, 3200, 145, 0.0068, 0.0449, 0.0487, 22, 16, 10])
def test_every_number_of_the_text_is_in_exactly_one_entry(
    claims: list[tuple[Paper, Claim]], printed: float
) -> None:
    stated = [claim for paper, claim in claims if paper.name == "asyncsgd" and not claim.ours]
    values = [float(claim.printed) for claim in stated if isinstance(claim, Value) and claim.printed]
    assert values.count(printed) == 1


def test_what_is_printed_can_be_compared(claims: list[tuple[Paper, Claim]]) -> None:
    from reports.claims.rules import flat

    for _, claim in claims:
        if isinstance(claim, Exact):
            assert flat(claim.printed), claim.id


def test_stored_numbers_are_those_of_the_runs_that_entries_select(shipped: dict[str, Paper]) -> None:
    """An entry that was changed after it ran would be judged by numbers of something else."""
    for paper in shipped.values():
        for scale in SCALES:
            stored = kept.read(kept.path(paper.name, scale))
            seeds = tuple(sorted({one.seed for one in stored if one.seed is not None}))
            plan = ClaimPlan(paper, scale, (), seeds or None)
            for one in stored:
                runs = plan.picked(paper.claims[one.claim])[one.sample][
                    one.seed if one.seed is not None else -1
                ]
                assert one.runs.split() == [run.key for run in runs], one
        for one in kept.read(kept.path(paper.name, COMPUTED)):
            assert one.runs == recipe(paper.claims[one.claim]), one


def test_what_contradicts_a_paper_or_has_no_effect_says_what_was_seen(shipped: dict[str, Paper]) -> None:
    silent = [
        id_
        for paper in shipped.values()
        for scale in (COMPUTED, *SCALES)
        for id_, verdict in judged(paper, scale).items()
        if not paper.claims[id_].seen
        and (
            verdict.word == "no effect"
            or (verdict.word == "refuted" and paper.refutation(paper.claims[id_], scale) == "contradicts")
        )
    ]
    assert silent == []


# Read off the papers, entry by entry.
@pytest.mark.parametrize(
    ("id_", "scale", "refutation"),
    [
        ("A-best/ace-fedbuff-a0.1-D1-5", "small", "other_arrangement"),  # the text is not silent: D4
        ("A-best/ace-fedbuff-a0.1-D2-5", "small", "other_arrangement"),
        ("A-best/ace-fedbuff-a0.1-D3-5", "small", "other_arrangement"),
        ("A-best/ace-fedbuff-a0.1-D4-5", "small", "underspecified"),  # §3.1 and F.1.4 do not go together
        ("A-everyone-declines/ace-delay-D4", "small", "contradicts"),
        ("A-dropout/asgd-0.5", "small", "underspecified"),  # α, β and the time of the drop-outs are lost
        ("A-best/ace-sequential-a0.1-D4-5", "small", "underspecified"),
        ("A-best/ace-fedbuff-a0.1-D4-5-uploads", "small", "ours"),
        ("F-quadratic/fedbuff-weight-phi-0.1", COMPUTED, "ours"),
        ("F-exp-weights/fedfix", COMPUTED, "ours"),
        ("F-ex1/limit-phi-1", COMPUTED, "outside_conditions"),
        ("G-numbers-m/0.015", COMPUTED, "underspecified"),
        ("G-H-time/iid-H-uniform", "small", "other_arrangement"),
        ("G-per-update/fig3-fashion-iid-uniform", "small", "other_arrangement"),
        ("G-per-update/fig3-fashion-iid-uniform", "paper", "contradicts"),
        ("N-speedup/afa_cs", COMPUTED, "outside_conditions"),
        ("N-table-2-LR/p1-m5-c5-sync_dynamic", "paper", "contradicts"),
    ],
)
def test_what_a_refutation_would_mean(
    shipped: dict[str, Paper], id_: str, scale: str, refutation: str
) -> None:
    [paper] = [one for one in shipped.values() if id_ in one.claims]
    assert paper.refutation(paper.claims[id_], scale) == refutation


def test_what_is_not_judged_has_no_verdict(shipped: dict[str, Paper]) -> None:
    for paper in shipped.values():
        for claim in paper.claims.values():
            for scale in scales(paper, claim):
                if not counts(claim):
                    assert judged(paper, scale)[claim.id].word in {"reported", "not run"}


def test_the_readme_shows_what_the_command_prints() -> None:
    printed = CliRunner().invoke(command, ["--readme"]).output
    assert re.findall(f"{BEGIN}(.*?){END}", README.read_text(encoding="utf-8"), re.DOTALL) == [printed]


def test_the_pages_are_those_that_the_command_writes(tmp_path: Path) -> None:
    CliRunner().invoke(command, ["--markdown", str(tmp_path)], catch_exceptions=False)
    written = {
        path.relative_to(tmp_path): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md")
    }
    there = [DOCS / "claims.md", *(DOCS / "claims").glob("*.md")]
    assert {path.relative_to(DOCS): path.read_text(encoding="utf-8") for path in there} == written


def test_every_verdict_stands_once_on_the_page_of_its_paper(shipped: dict[str, Paper]) -> None:
    """Its word and its number, too, in the section that counts it."""
    for paper in shipped.values():
        page = (DOCS / "claims" / f"{paper.name}.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| .*<br>`(\S+)` · .* \|$", page, re.MULTILINE)
        found = [
            (scale, id_, of) for scale in (COMPUTED, *SCALES) for id_, of in judged(paper, scale).items()
        ]
        assert Counter(rows) == Counter(id_ for _, id_, of in found if of.word != "not run")
        assert sum(map(int, re.findall(r"^## .* \((\d+)\)$", page, re.MULTILINE))) == len(rows)
        waiting = "".join(re.findall(r"^## Not run\n(.*)", page, re.MULTILINE | re.DOTALL))
        left = sum(int(n) for n in re.findall(r"\((\d+)\)[,.]", waiting))
        assert left == sum(of.word == "not run" for *_, of in found)
        fails = re.findall(r"^## Fails.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert set(re.findall(r"<br>`(\S+)`", "".join(fails))) == {
            id_
            for scale, id_, of in found
            if of.word == "refuted" and paper.refutation(paper.claims[id_], scale) == "contradicts"
        }
