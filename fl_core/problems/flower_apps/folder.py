"""The folder of a Flower app: configuration, digest of the code, and imports.

Problem `flower` checks the folder when it is validated; `FlowerWorld` loads the ClientApp from it.

Fixed: which files have which part in `digest`, which is in keys of runs. Free: messages.
"""

from __future__ import annotations

import hashlib
import importlib
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fl_core import file_reading
from fl_core.import_guard import AppPackages, in_a_line
from fl_core.problems.problem import InvalidProblemError
from fl_core.text import nearest

PROJECT = "pyproject.toml"
TABLE = "tool.flwr.app"
MAX_FILES = 10_000  # of code, in an app's folder
SKIPPED = {"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"}  # folders without code

Scalar = bool | int | float | str


class AppFolder:
    """A Flower app as written by the author.

    Raises:
        InvalidProblemError: The folder holds no Flower app, or one without a ClientApp.
    """

    def __init__(self, folder: Path, *paths: str) -> None:
        self.folder = folder
        table = _table(folder)
        components = table.get("components")
        self.client_app = components.get("clientapp") if isinstance(components, dict) else None
        if not isinstance(self.client_app, str) or ":" not in self.client_app:
            raise InvalidProblemError(
                f'{folder / PROJECT} names no ClientApp: write clientapp = "package.module:app" under '
                f"[{TABLE}.components]"
            )
        self.config: dict[str, Scalar] = dict(_flat(table.get("config", {})))
        named = {path.partition(":")[0].partition(".")[0] for path in (self.client_app, *paths)}
        unnamed = {path.stem for path in folder.iterdir() if _is_package(path)} - named
        packages = [*named, *(name for name in sorted(unnamed) if find_spec(name) is None)]
        self.packages = AppPackages(folder.resolve(), packages)

    def run_config(self, overrides: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return the app's configuration with some values replaced.

        Raises:
            InvalidProblemError: A key is not the app's, or a value has another type.
        """
        for key, value in overrides.items():
            if key not in self.config:
                raise InvalidProblemError(
                    f"config: '{key}' is not in [{TABLE}.config] of {self.folder / PROJECT}"
                    f"{nearest(key, self.config)} Add it there, or correct the key."
                )
            kind = type(self.config[key])
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise InvalidProblemError(
                    f"config: '{key}' is {value!r}, and the app's own value, {self.config[key]!r}, a "
                    f"{kind.__name__}: give a value of that type"
                )
        floats = {key for key, value in self.config.items() if type(value) is float}
        replaced = {key: float(value) if key in floats else value for key, value in overrides.items()}
        return self.config | replaced

    def load(self, path: str) -> Any:
        """Return the object `package.module:name` of the app, from the app's folder only.

        Raises:
            InvalidProblemError: The object cannot be imported, or lies elsewhere.
        """
        module, _, name = path.partition(":")
        try:
            with self.packages.in_use():
                loaded = importlib.import_module(module)
                value = getattr(loaded, name)
        except (Exception, SystemExit) as error:
            raise InvalidProblemError(
                f"cannot import '{path}' from {self.folder}: {in_a_line(error)}"
            ) from error
        file = getattr(loaded, "__file__", None)
        if file is None or not Path(file).resolve().is_relative_to(self.packages.folders[0]):
            raise InvalidProblemError(f"'{path}' is {file}, which is not in the app's folder {self.folder}")
        return value


@cache
def app_in(folder: Path, _digest: str, *paths: str) -> AppFolder:
    """Return the app in a folder, imported once a process for each version of the code.

    Args:
        folder: The folder.
        _digest: The digest of its code.
        paths: Import paths of objects needed besides the ClientApp.
    """
    return AppFolder(folder, *paths)


def _table(folder: Path) -> dict[str, Any]:
    """Return the table [tool.flwr.app] of the folder's pyproject.toml."""
    try:
        project = tomllib.loads(file_reading.text(folder / PROJECT))
    except OSError as error:
        raise InvalidProblemError(
            f"{folder} is not the folder of a Flower app: {PROJECT}: {error.strerror}"
        ) from None
    except ValueError as error:
        raise InvalidProblemError(f"{folder / PROJECT} cannot be read: {error}") from None
    table: Any = project
    for key in TABLE.split("."):
        table = table.get(key) if isinstance(table, dict) else None
    if not isinstance(table, dict):
        raise InvalidProblemError(f"{folder / PROJECT} has no [{TABLE}]: name the folder of a Flower app")
    return table


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Scalar]]:
    """Yield the values of nested tables with dotted keys, as Flower does."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, bool | int | float | str):
            yield prefix + key, value


def digest(folder: Path) -> str:
    """Return the digest of an app's code: Python files and pyproject.toml, by name and content.

    Raises:
        InvalidProblemError: There are too many files for the folder of an app.
    """
    hasher = hashlib.sha256()
    for count, path in enumerate(sorted(_code(folder))):
        if count == MAX_FILES:
            raise InvalidProblemError(
                f"{folder} has more than {MAX_FILES:,} files of code: name the folder of the app itself"
            )
        content = file_reading.content(path)
        hasher.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return hasher.hexdigest()[:16]


def _code(folder: Path) -> Iterator[Path]:
    """Yield the Python files and pyproject.toml of a folder, hidden folders and environments left out."""
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in SKIPPED:
            continue
        if path.is_dir():
            yield from _code(path)
        elif path.suffix == ".py" or path.name == PROJECT:
            yield path


def _is_package(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def checked(folder: Path) -> str:
    """Return the digest of an app's code; raise InvalidProblemError unless the folder holds a ClientApp."""
    AppFolder(folder)
    return digest(folder)
