"""The command: `python -m tests.peers`, or `tox run -e peers`."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import yaml

from benchmarks import peers, yaml_io
from tests.peers import environments, sequences

HERE = Path(__file__).parent
FRAMEWORKS = HERE / "frameworks.yaml"
MODELS = HERE / "models.json"  # what the frameworks' servers made of the sequence of quadratics

COMMENT = "# Written by `python -m tests.peers` from tests/peers/frameworks.yaml; not edited by hand.\n"
ENVIRONMENTS = HERE.parents[1] / ".peers"

Framework = Mapping[str, Any]


@click.command(context_settings={"show_default": True})
@click.argument("names", nargs=-1)
@click.option(
    "--environments",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=ENVIRONMENTS,
    help="Folder of the frameworks' environments.",
)
def main(*, names: tuple[str, ...], folder: Path) -> None:
    """Replay arrivals through the servers of NAMES (default: all), repeat their runs; store the results."""
    frameworks = [each for each in load() if not names or each["name"] in names]
    recorded = {
        f"{algorithm} {problem}": sequences.record(algorithm, problem)
        for algorithm in sequences.PAPERS
        for problem in sequences.PROBLEMS
    }
    base = environments.make(folder / "base", environments.BASE).parents[1]
    models = json.loads(MODELS.read_text()) if MODELS.is_file() else {}
    entries = {entry.id: entry for entry in peers.peers()}
    repeats = {entry.id: entry for entry in peers.repeats()}
    for framework in frameworks:
        click.echo(framework["title"])
        python = environments.make(folder / framework["name"], framework["requirements"], base)
        found = served(framework, python, recorded)
        for number, case in enumerate(framework["cases"], 1):
            key = f"{framework['name']}-{number}"
            entries[key] = entry(framework, key, case, found, recorded)
            models[key] = found[f"{key} {case['algorithm']} quadratic"].get("models")
        repeats |= {entry.id: entry for entry in repeated(framework, python)}
        save(entries, repeats, models)


def save(
    entries: Mapping[str, peers.Peer], repeats: Mapping[str, peers.Repeat], models: Mapping[str, Any]
) -> None:
    """Store the results, in the order of the frameworks."""
    cases = [key for key in keys("cases") if key in entries and key in models]
    tables: dict[str, list[peers.Peer] | list[peers.Repeat]] = {
        "servers": [entries[key] for key in cases],
        "repeats": [repeats[key] for key in keys("examples") if key in repeats],
    }
    dumped = {name: [entry.model_dump(mode="json") for entry in table] for name, table in tables.items()}
    peers.FILE.write_text(COMMENT + yaml_io.dump(dumped))
    lines = (f"{json.dumps(key)}: {json.dumps(models[key])}" for key in cases)
    MODELS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def load() -> list[dict[str, Any]]:
    """Return the frameworks and their cases."""
    frameworks: list[dict[str, Any]] = yaml.safe_load(FRAMEWORKS.read_text())
    return frameworks


def keys(kind: str) -> list[str]:
    """Return the IDs of all frameworks' `cases` or `examples`."""
    return [f"{each['name']}-{number}" for each in load() for number, _ in enumerate(each[kind], 1)]


def served(
    framework: Framework, python: Path, recorded: Mapping[str, sequences.Sequence]
) -> dict[str, dict[str, Any]]:
    """Return the server's models by case and sequence, or the error in which a case ends.

    Args:
        framework: With its cases.
        python: The interpreter of its environment, in which its server code runs.
        recorded: The sequences by algorithm and problem.
    """
    cases = [
        {"id": f"{framework['name']}-{number}", "sequence": name, "options": case["options"]}
        for number, case in enumerate(framework["cases"], 1)
        for name in recorded
        if name.startswith(case["algorithm"] + " ")
    ]
    adapter = HERE / "frameworks" / f"{framework['name']}_server.py"
    with tempfile.TemporaryDirectory(prefix="peers-") as text:
        scratch = Path(text)
        for name, sequence in recorded.items():
            np.savez(scratch / f"{name}.npz", **sequence)
        (scratch / "cases.json").write_text(json.dumps(cases))
        arguments = [str(python), str(adapter), str(scratch / "cases.json"), text]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=text)
        if done.returncode:
            raise click.ClickException(f"{framework['title']}: {done.stderr[-2000:]}")
        answer = json.loads((scratch / "out.json").read_text())
    found: dict[str, dict[str, Any]] = answer["found"]
    return found


def entry(
    framework: Framework,
    key: str,
    case: Mapping[str, Any],
    found: Mapping[str, Mapping[str, Any]],
    recorded: Mapping[str, sequences.Sequence],
) -> peers.Peer:
    """Return the entry of the table, with the arrival from which the case leaves the paper's rule.

    Raises:
        ClickException: Our options do not give the models of the framework.
    """
    algorithm = case["algorithm"]
    package, version = pinned(framework)
    steps, error = {}, ""
    for problem in sequences.PROBLEMS:
        name = f"{algorithm} {problem}"
        result = found[f"{key} {name}"]
        if "error" in result:
            error = result["error"]
            continue
        models = np.array(result["models"])
        paper = sequences.PAPERS[algorithm] | case.get("paper", {})
        tolerance = case.get("tolerance", peers.TOLERANCE)
        steps[problem] = sequences.first_difference(
            models, sequences.replay(paper, recorded[name]), tolerance
        )
        if "ours" in case:
            ours = sequences.replay(sequences.PAPERS[algorithm] | case["ours"], recorded[name])
            if (step := sequences.first_difference(models, ours, tolerance)) is not None:
                raise click.ClickException(
                    f"{key}: ours: {case['ours']} gives other models on {problem}, from arrival {step}. "
                    f"Correct {FRAMEWORKS.name}"
                )
    return peers.Peer(
        id=key,
        framework=framework["title"],
        package=package,
        version=version,
        algorithm=algorithm,
        where=case["where"],
        setting=case["setting"],
        computes=case["computes"],
        ours=case.get("ours"),
        paper=case.get("paper", {}),
        tolerance=case.get("tolerance", peers.TOLERANCE),
        first_step=steps.get("quadratic"),
        first_step_digits=steps.get("digits"),
        error=error,
        note=case.get("note", ""),
        stubs=framework.get("stubs", ""),
    )


def pinned(framework: Framework) -> tuple[str, str]:
    """Return name and version of the framework's package."""
    package, _, version = framework["requirements"][0].partition("==")
    return package, version


def repeated(framework: Framework, python: Path) -> list[peers.Repeat]:
    """Run each example of a framework twice, in fresh processes; return the differences.

    Args:
        framework: With its examples; those without options are not run.
        python: The interpreter of its environment.
    """
    package, version = pinned(framework)
    found = []
    for number, case in enumerate(framework["examples"], 1):
        difference, same_order = None, None
        if "options" in case:
            one, other = (ran(framework, python, case) for _ in range(2))
            apart = np.abs(np.array(one["model"]) - np.array(other["model"])).max()
            same_order = one["arrivals"] == other["arrivals"]
            difference = float(f"{apart:.0e}") if same_order else None
        found.append(
            peers.Repeat(
                id=f"{framework['name']}-{number}",
                framework=framework["title"],
                package=package,
                version=version,
                example=case["example"],
                setting=case.get("setting", ""),
                difference=difference,
                same_order=same_order,
                note=case.get("note", ""),
            )
        )
    return found


def ran(framework: Framework, python: Path, case: Mapping[str, Any]) -> dict[str, Any]:
    """Return final model and arrivals of an example; its environment has no other hash seed or threads."""
    unset = ("PYTHONHASHSEED", "OMP_NUM_THREADS", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {name: str(value) for name, value in case.get("environment", {}).items()}
    adapter = HERE / "frameworks" / f"{framework['name']}_example.py"
    with tempfile.TemporaryDirectory(prefix="peers-") as text:
        options = Path(text) / "options.json"
        options.write_text(json.dumps(case["options"]))
        arguments = [str(python), str(adapter), str(options)]
        done = subprocess.run(
            arguments, capture_output=True, text=True, check=False, cwd=text, env=environment
        )
        if done.returncode:
            raise click.ClickException(f"{framework['title']}: {done.stderr[-2000:]}")
        result: dict[str, Any] = json.loads((Path(text) / "out.json").read_text())
    return result


if __name__ == "__main__":
    main()
