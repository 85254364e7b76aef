"""Files of the shipped suites, and names of recorded suites; without heavy imports.

Shell completion and `asyncfl report` use it: they need no validated suite.

Fixed: names of records, by which suites are found in stores.
"""

from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.suite.document import is_path
from benchmarks.yaml_io import read
from fl_core.recorded_names import CAMPAIGN, CLAIMS, DEFAULT, LIVE, PILOT, VARIANT
from fl_core.text import nearest

SUITES = Path(__file__).parents[1] / "suites"


def shipped() -> dict[str, Path]:
    """Return the suites of the package by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}


def file_of(name: str) -> Path:
    """Return the file of a suite given by name or path; UserError for an unknown name."""
    if name in shipped():
        return shipped()[name]
    if is_path(name) or Path(name).is_file():
        return Path(name)
    names = ", ".join(shipped()) or "none"
    raise UserError(
        f"unknown suite '{name}'{nearest(name, shipped())} Available: {names}, or the path of a YAML file"
    )


def recorded(name: str, scale: str | None) -> str:
    """Return the name of a suite at a scale in records; MLflow's experiment has the same name."""
    return f"{name}-{scale}" if scale else name


def reserved(name: str) -> str:
    """Return the reason why a suite must not have a name; empty for a free name.

    Campaigns, claims and others are recorded under such names, and runs would be mixed.
    """
    if name.endswith(CAMPAIGN):
        return f"names that end in '{CAMPAIGN}' are reserved for campaigns"
    if name.endswith(PILOT):
        return f"names that end in '{PILOT}' are reserved for campaigns with --set"
    if name.endswith(VARIANT):
        return f"names that end in '{VARIANT}' are reserved for suites with tuned values"
    if LIVE in name:
        return f"names with '{LIVE}' are reserved for runs in real time"
    if name.startswith(CLAIMS):
        return f"names that begin with '{CLAIMS}' are reserved for claims"
    return f"'{DEFAULT}' is reserved for MLflow" if name.lower() == DEFAULT.lower() else ""


def recorded_name(name_or_path: str, scale: str | None = None) -> str:
    """Return the name of a recorded suite at a scale, from a name or file; the suite may be deleted."""
    if not is_path(name_or_path) and name_or_path not in shipped():
        return _of_a_file(recorded(name_or_path, scale))
    document = read(file_of(name_or_path))
    return _of_a_file(recorded(str(document.get("name")), scale or document.get("scale")))


def _of_a_file(name: str) -> str:
    """Return a name safe for files; UserError for a name with slashes."""
    if Path(name).name != name or name == ".." or "\\" in name or "\0" in name:
        raise UserError(f"invalid suite name '{name}': slashes are not allowed")
    return name
