"""Import of the user's own code by path, `package.module:name`, and refusal of other people's code.

`parts.imported` calls `load` for parts that a suite names by their path; commands set the rules at their
start. An import runs the statements of a module. So code is imported only if the path is named on the command
line or in a file that the user owns and not everyone can write to. A job of CI trusts all files: it runs the
code of its checkout in any case, and runners check out as another user or without a umask. Root in a
container trusts files of other users, which are mounted from outside.

The folder in which a command starts is not on the import path: pandas, torch and MLflow try optional imports,
and would run any file there that has the right name. Packages that the user names are nevertheless found in
this folder, if their files are the user's own, or trusted as above.

Fixed: whose code is imported and whose is refused, for safety (tests/test_untrusted.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from traceback import walk_tb
from types import CodeType, ModuleType
from typing import Any

ALLOWED = ContextVar("asyncfl_allow_code", default=False)  # whether --allow-code was given
HOW = "allow it with --allow-code if you trust it"
IN_MAIN = "worker processes cannot see what a notebook or script defines: write it into a file of its own"
PACKAGE = "make one package of both, or name its folder in PYTHONPATH"
SOURCES = Path(__file__).resolve().parents[1]
PACKAGES = {"asyncfl", "benchmarks", "fl_core", "reports", "tuning"}
LIBRARY = sysconfig.get_path("stdlib")

CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))  # of Docker, and of Podman

_refusal: ContextVar[str] = ContextVar("asyncfl_no_code", default="")  # why imports by path are disabled


class ImportRefusedError(ImportError):
    """Refusal to import code: the reason, and the way to allow the import."""


def not_own(path: Path) -> str:
    """Return the reason why a file is not the user's own; empty if the user owns it, or owners do not count.

    Owners are unknown on Windows, and do not count in a job of CI (`CI` is set).
    """
    if not hasattr(os, "getuid") or os.environ.get("CI", "").lower() not in ("", "0", "false"):
        return ""
    try:
        status = path.stat()
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    if status.st_uid != os.getuid() and not _root_in_container():
        return f"{path} belongs to another user"
    return f"everyone can write to {path}" if status.st_mode & stat.S_IWOTH else ""


def _root_in_container() -> bool:
    """Return whether the process is root in a container, without other users."""
    return os.getuid() == 0 and any(mark.exists() for mark in CONTAINER_MARKS)


@contextmanager
def guarded(refusal: str) -> Iterator[None]:
    """Make `load` raise `ImportRefusedError` in the context, unless code is allowed or `refusal` is empty."""
    if not refusal or ALLOWED.get():
        yield
    else:
        token = _refusal.set(f"{refusal}: {HOW}")
        try:
            yield
        finally:
            _refusal.reset(token)


def must_be_allowed() -> None:
    """Raise ImportRefusedError where no code of the user's may be imported."""
    if reason := _refusal.get():
        raise ImportRefusedError(reason)


def load(path: str) -> Any:
    """Return the object at `package.module:name`.

    Raises:
        ImportRefusedError: The code is not the user's own, or stands in a notebook or script.
        Exception: Any error of the module's own statements.
    """
    must_be_allowed()
    module, _, name = path.partition(":")
    if module == "__main__":
        raise ImportRefusedError(IN_MAIN)
    package = module.partition(".")[0]
    packages = own_packages()
    if (
        packages
        and package not in packages.trusted
        and package not in sys.modules
        and not _installed(package)
    ):
        packages.trusted[package] = ALLOWED.get()
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if packages and (neighbour := packages.unnamed(missing)):
            raise ImportError(f"{neighbour} is not on the import path: {PACKAGE}") from None
        raise ModuleNotFoundError(f"{error}{_searched(missing)}") from None


def place(error: BaseException) -> str:
    """Return the line of the user's code behind an error, " (mine/own.py:7)"; empty if none."""
    lines = [
        (Path(file), number)
        for frame, number in walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] not in PACKAGES
        if not (file := frame.f_code.co_filename).startswith(("<", LIBRARY)) and "-packages" not in file
    ]
    if not lines:
        return ""
    source, number = lines[-1]
    folder = Path.cwd()
    return f" ({source.relative_to(folder) if source.is_relative_to(folder) else source.name}:{number})"


def text(error: BaseException) -> str:
    """Return an error's text; empty where `__str__` raises or returns no text."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a user's class may fail in any way
        return ""


def in_a_line(error: BaseException) -> str:
    """Return an error's kind, the first line of the text, and the user's line behind the error."""
    lines = text(error).strip().splitlines()
    return f"{type(error).__name__}{f': {lines[0]}' if lines else ''}{place(error)}"


def _searched(module: str) -> str:
    """Return where a module was searched, if only the module and not the package is missing."""
    package = module.partition(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None:
        return ""
    folder = Path(file).parent
    return f" ('{package}' is {folder}; another folder of that name is not searched: rename it)"


def _installed(package: str) -> bool:
    """Return whether a package can be imported without the folder of the user."""
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None  # a folder of the same name is no package yet


def leave_the_path(folder: Path) -> None:
    """Take a folder off the import path, also for later processes; `load` still finds packages in the folder.

    A folder stays where PYTHONPATH names it in full, or these sources lie in it.
    """
    variable = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = [entry for entry in variable if Path(entry).is_absolute() or Path(entry).resolve() != folder]
    os.environ |= {"PYTHONPATH": os.pathsep.join(named), "PYTHONSAFEPATH": "1"}
    if folder != SOURCES:
        sys.path[:] = [entry for entry in sys.path if entry in named or Path(entry).resolve() != folder]
    UserPackages(folder).install()


def own_packages() -> UserPackages | None:
    """Return the process's finder of the user's packages; None before `leave_the_path`."""
    return next((finder for finder in sys.meta_path if type(finder) is UserPackages), None)


def search_beside(file: Path) -> None:
    """Search the folder of a user's file first, for the packages that the file names."""
    if packages := own_packages():
        folder = str(file.resolve().parent)
        packages.folders = [folder, *(other for other in packages.folders if other != folder)]


class UserPackages(MetaPathFinder):
    """Finder of packages named by the user in folders off the import path."""

    def __init__(self, folder: Path) -> None:
        self.folders = [str(folder)]  # in the order in which they are searched
        self.trusted: dict[str, bool] = {}  # package → whether its files may be anyone's

    def install(self) -> None:
        """Install the finder in the process, and remove any other."""
        sys.meta_path[:] = [self, *(finder for finder in sys.meta_path if type(finder) is not UserPackages)]

    def unnamed(self, module: str) -> str:
        """Return the path of a module in the folder but outside of the named packages; empty if nowhere."""
        package = module.partition(".")[0]
        allowed = package in self.trusted or package in sys.modules
        spec = None if allowed else PathFinder.find_spec(package, self.folders)
        return str(spec.origin or next(iter(spec.submodule_search_locations or ()))) if spec else ""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of a named package; ImportRefusedError for a file of another owner."""
        package = fullname.partition(".")[0]
        if package not in self.trusted:
            return None
        spec = PathFinder.find_spec(fullname, path or self.folders, target)
        if spec is None or spec.origin is None:
            return spec
        if not self.trusted[package] and (reason := not_own(Path(spec.origin))):
            raise ImportRefusedError(f"{reason}: {HOW}")
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = FromSource(fullname, spec.origin)
        return spec


class AppPackages(UserPackages):
    """Finder of an app's modules, active only while the app is in use.

    So apps whose packages share a name, or have that of a package imported elsewhere, are not mixed up.
    """

    def __init__(self, folder: Path, packages: Sequence[str]) -> None:
        super().__init__(folder)
        self.trusted = dict.fromkeys(packages, ALLOWED.get())
        self._modules: dict[str, ModuleType] = {}  # of the app, while the app is not in use
        self._names: set[str] = set()  # of all modules found in the folder

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Make the app's modules importable by name in the process."""
        if self in sys.meta_path:
            yield
            return
        displaced = self._taken(self._others())
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            self._modules = self._taken(self._names)
            sys.modules.update(displaced)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the app; ImportRefusedError for a file of another owner."""
        spec = super().find_spec(fullname, path, target)
        if spec is not None:
            self._names.add(fullname)
        return spec

    def _others(self) -> list[str]:
        """Return the names of imported modules in packages of the app's names, but not from the app."""
        if not any(package in sys.modules for package in self.trusted):
            return []
        return [name for name in sys.modules if name.partition(".")[0] in self.trusted]

    @staticmethod
    def _taken(names: Iterable[str]) -> dict[str, ModuleType]:
        """Remove modules from `sys.modules`; return them by name."""
        return {name: sys.modules.pop(name) for name in names if name in sys.modules}


class FromSource(SourceFileLoader):
    """Loader from source files, without cached compiled code, possibly of another user."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source file, freshly compiled."""
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code
