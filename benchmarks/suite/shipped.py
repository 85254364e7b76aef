"""Where suites lie, and the names they are recorded under: known from their files, without heavy imports."""

from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.suite.document import is_path
from benchmarks.yaml_io import read
from fl_core.schema import CAMPAIGN, CLAIMS, DEFAULT, LIVE, VARIANT
from fl_core.text import nearest

SUITES = Path(__file__).parents[1] / "suites"


def shipped() -> dict[str, Path]:
    """The suites that come with the package, by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}


def file_of(name: str) -> Path:
    """The file of a suite given by its name or path; UserError if there is none of that name."""
    if name in shipped():
        return shipped()[name]
    if is_path(name) or Path(name).is_file():
        return Path(name)
    known = ", ".join(shipped()) or "none"
    raise UserError(
        f"no suite is called '{name}'{nearest(name, shipped())} Known: {known}; or a YAML file's path"
    )


def recorded(name: str, scale: str | None) -> str:
    """The name under which a suite's runs at one scale are recorded."""
    return f"{name}-{scale}" if scale else name


def reserved(name: str) -> str:
    """Why no suite can be recorded under a name; empty if one can."""
    if name.endswith(CAMPAIGN):
        return f"names that end in '{CAMPAIGN}' are those of campaigns"
    if name.endswith(VARIANT):
        return f"names that end in '{VARIANT}' are those of suites with tuned values"
    if LIVE in name:
        return f"names with '{LIVE}' are those of runs in real time"
    if name.startswith(CLAIMS):
        return f"names that begin with '{CLAIMS}' are those of what claims need"
    return f"'{DEFAULT}' is an experiment of MLflow's own" if name.lower() == DEFAULT.lower() else ""


def recorded_name(name_or_path: str, scale: str | None = None) -> str:
    """The name under which a suite's runs at a scale are recorded; the suite need not exist any more."""
    if not is_path(name_or_path) and name_or_path not in shipped():
        return _of_a_file(recorded(name_or_path, scale))
    document = read(file_of(name_or_path))
    return _of_a_file(recorded(str(document.get("name")), scale or document.get("scale")))


def _of_a_file(name: str) -> str:
    """The name, as used for files; UserError if it leads out of their folder."""
    if Path(name).name != name or name == ".." or "\\" in name or "\0" in name:
        raise UserError(f"no suite can be recorded as '{name}': a name holds no slashes")
    return name
