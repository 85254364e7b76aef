"""The reference pages say of every part, key and command what the code says."""

import re
from pathlib import Path

import pytest
from in_process import deliver
from recorded import runs, write_campaign
from reference_pages import pages, readings, table, text

import asyncfl
from benchmarks.catalogue import FAMILIES, family
from benchmarks.commands.group import COMMANDS
from benchmarks.commands.group import asyncfl as commands
from benchmarks.engine import Local
from benchmarks.mlflow_store.store import Store
from benchmarks.peers import peers
from benchmarks.suite.fields import SuiteFile
from benchmarks.suite.shipped import shipped
from benchmarks.suite.suite import load
from fl_core.parts import Part
from fl_core.strategies.strategy import Strategy
from tuning.driver import Driver
from tuning.plan import plan
from tuning.storage import open_storage


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages(commands, asyncfl)


def described(kind: str) -> dict[str, type[Part]]:
    """The members of a family and their presets, by name."""
    members = family(kind).members()
    presets = {name: member for member in members.values() for name in vars(member).get("presets", ())}
    return dict(sorted({**members, **presets}.items()))


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_part_has_a_section_with_all_of_its_fields(made: dict[str, str], kind: str) -> None:
    sections = dict(re.findall(rf"^## (\w+)\n(.*?)(?=^\({kind}-|\Z)", made[kind], re.MULTILINE | re.DOTALL))
    members = described(kind)
    assert list(sections) == list(members)
    for name, part in members.items():
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", sections[name], re.MULTILINE)
        assert [field for field, _ in rows] == list(part.model_fields)
        assert f"[`{name}`](#{kind}-{name.replace('_', '-')})" in made[kind]


def test_every_metric_and_tag_in_mlflow_is_explained(
    made: dict[str, str], tmp_path: Path, store: Store, fork_server: None
) -> None:
    deliver(tmp_path, store, strategies="quafl, asgd")
    campaign = plan(load(str(write_campaign(tmp_path, "asgd", updates=20)), tuned=False))
    Driver(campaign, open_storage(str(tmp_path / "journal")), store).run(Local(1), lambda _: None)
    names = re.findall(r"^\| `(\S+)` \|", made["mlflow"], re.MULTILINE)
    known = re.compile("|".join(re.escape(name).replace("…", ".+") for name in names))
    found = [*runs(store), *runs(store, kind="group"), *runs(store, kind="pooled")]
    found += [run for kind in ("study", "trial") for run in runs(store, "small.tuning", kind)]
    tags = {name for run in found for name in run.data.tags if name.startswith("asyncfl.")}
    metrics = {name for run in found for name in run.data.metrics}
    assert len(tags) > 40 and len(metrics) > 25
    assert {name for name in tags | metrics if not known.fullmatch(name)} == set()
    lines = [line for line in made["mlflow"].splitlines() if line.startswith("| `")]
    assert all(re.match(r"\| `\S+` \| \S", line) for line in lines)


def test_no_two_parts_share_a_label(made: dict[str, str]) -> None:
    labels = re.findall(r"^\((\S+)\)=$", "\n".join(made.values()), re.MULTILINE)
    assert len(labels) == len(set(labels)) == sum(len(described(kind)) for kind in FAMILIES)


def test_every_key_of_a_suite_is_described(made: dict[str, str]) -> None:
    keys = re.findall(r"^\| `(\w+)` \| \S", made["suite"], re.MULTILINE)
    assert keys[: len(SuiteFile.model_fields)] == list(SuiteFile.model_fields)
    headings = re.findall(r"^## (\S+)$", made["suite"], re.MULTILINE)
    assert headings == [
        *("timing", "timing.network", "timing.network.shared", "timing.server", "timing.power", "budget"),
        *("scenarios", "scenarios.budget", "evaluate", "lr", "tuning", "tuning.again", "tuning.budget"),
        *("tuning.space", "diagnostics"),
    ]


def test_every_suite_and_every_command_is_there(made: dict[str, str]) -> None:
    assert all(f"| `{name}` |" in made["suites"] for name in shipped())
    assert re.findall(r"^## asyncfl (\S+)$", made["cli"], re.MULTILINE) == list(COMMANDS)
    assert re.findall(r"^### asyncfl claims (\S+)$", made["cli"], re.MULTILINE)
    assert "--files DIR" in made["cli"]


def test_every_public_name_is_there_with_the_first_line_of_its_docstring(made: dict[str, str]) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S.*) \|$", made["names"], re.MULTILINE))
    assert list(rows) == asyncfl.__all__
    assert rows["Budget"].startswith("The end of a run: after `iterations`, `updates` or `bytes`")
    assert rows["Share"] == "Type of a field: number ≥ 0, ≤ 1"


def test_text_of_the_code_is_no_markdown() -> None:
    assert text("a_b * `x_y | z` [1]") == r"a\_b \* `x_y | z` \[1\]"
    assert table(("a", "b", "c"), [("1|2", "", "x\ny")]) == "| a | c |\n| --- | --- |\n| 1\\|2 | x y |"


def test_the_table_of_switches_names_what_a_strategy_may_set(made: dict[str, str]) -> None:
    """Class variables and properties that are no fields, each with a description."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", made["switches"], re.MULTILINE))
    assert {"title", "reads_losses", "collects", "linear", "kept_by_clients", "first_pass"} <= rows.keys()
    assert not rows.keys() & Strategy.model_fields.keys()
    assert all(name in Strategy.__annotations__ or hasattr(Strategy, name) for name in rows)


def test_readings_are_paired_with_the_papers_rule(tmp_path: Path) -> None:
    """Mean difference 2 of 1, 2, 3: t = 2 √3, interval 2 ± 4.303/√3; one median is infinite."""
    rows = [("", [0.5, 0.6, 0.7], ["4", "5", "6"]), ("base=current", [0.51, 0.62, 0.73], ["7", "inf", "inf"])]
    rows.append(("max_staleness=5", [0.5, 0.6, 0.7], ["4", "5", "6"]))
    lines = [
        f"F80,fedbuff,{options},{seed},0.5,{accuracies[seed]},{times[seed]}"
        for options, accuracies, times in rows
        for seed in range(3)
    ]
    path = tmp_path / "readings.csv"
    path.write_text("timing,strategy,options,seed,local_lr,accuracy,time_to_target\n" + "\n".join(lines))
    assert readings(path).splitlines()[2:] == [
        "| `fedbuff`, the paper's rule | 60.0 |  | 5 |",
        "| `fedbuff base=current` | 62.0 | +2.0 ± 2.5 | never |",
        "| `fedbuff max_staleness=5` | 60.0 | +0.0 | 5 |",
    ]


def test_each_framework_has_a_section_with_all_of_its_servers(made: dict[str, str]) -> None:
    """Rows of a framework stand together, and have all of its settings in order."""
    sections = re.split(r"^### ", made["peers"], flags=re.MULTILINE)[1:]
    every = peers()
    titles = [f"{one.framework} {one.version}" for one in every]
    assert [section.splitlines()[0] for section in sections] == [*dict.fromkeys(titles)]
    for section, title in zip(sections, dict.fromkeys(titles), strict=True):
        rows = [line for line in section.splitlines() if line.startswith("| Fed")]
        servers = [one for one, its in zip(every, titles, strict=True) if its == title]
        assert [row.split("|")[-2].strip() for row in rows] == [
            f"`{one.options}`" if one.options else "–" for one in servers
        ]
