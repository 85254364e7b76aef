"""Files of data sets: search folders, missing and damaged files, torchvision's downloads.

Problems with files call `located` in their `load`.

Fixed: the folders and names of files, where users have put their data (docs/data.md).
"""

import hashlib
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

DOWNLOAD_TIMEOUT_SECONDS = 20  # without an answer


class DataMissingError(FileNotFoundError):
    """A missing data set: files, searched folders, and the way to get the data."""


class DataDamagedError(ValueError):
    """A data file different from the published file, with advice."""


def data_dir() -> Path | None:
    """Return the folder of the user's data sets, ASYNCFL_DATA; None if the variable is not set."""
    folder = os.environ.get("ASYNCFL_DATA")
    return Path(folder).expanduser().absolute() if folder else None


def cache_dir() -> Path:
    """Return the folder for downloads if no data folder is given."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "asyncfl-bench"


def places() -> list[Path]:
    """Return the folders searched for data sets, in order."""
    data_folder = data_dir()
    return [cache_dir()] if data_folder is None else [data_folder, cache_dir()]


def located(
    name: str,
    folder: str,
    files: Sequence[str] = (),
    description: str = "",
    remedy: str = "put the files there",
    *,
    endings: Sequence[str] = ("",),
    published: bool = False,
) -> Path:
    """Return the location of a data set: `folder` in the first place with all files.

    Args:
        name: The data set; torchvision's class if `published`.
        folder: The folder of the files, below one of the places.
        files: Their names.
        description: The files in words; their names if left out.
        remedy: How to get them.
        endings: Possible endings of a name, such as ".gz".
        published: Whether torchvision can download them; they go into the first place.

    Raises:
        DataMissingError: The files are nowhere, and cannot be downloaded.
    """
    candidates = [place / folder for place in places()]
    failed = ""
    for candidate in candidates:
        if complete(candidate, files, endings):
            return candidate
    if published:
        try:
            download(name, folder, places()[0])
        except (OSError, RuntimeError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
            failed = f", and the download failed ({reason})"
        else:
            return candidates[0]
    missing = f"{description or ', '.join(files)} not found in {' or in '.join(map(str, candidates))}{failed}"
    advice = f"{remedy}, or set --data-dir or ASYNCFL_DATA to the folder that holds {folder}"
    raise DataMissingError(f"{name}: {missing}; {advice}")


def complete(folder: Path, files: Sequence[str], endings: Sequence[str] = ("",)) -> bool:
    """Return whether a folder has all files, each with a valid ending."""
    return folder.is_dir() and all(any((folder / (f + end)).exists() for end in endings) for f in files)


def check_md5(name: str, path: Path, content: bytes | memoryview, published: str | None) -> None:
    """Raise DataDamagedError for a file without the published MD5; None: not known."""
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if published is not None and md5 != published:
        raise DataDamagedError(
            f"{name}: {path} is damaged: its MD5 is {md5}, not {published} as published; delete the file, "
            "and it is downloaded again where there is a network"
        )


def download(name: str, folder: str, root: Path) -> None:
    """Put torchvision's data set `name` into `folder` under `root`, complete files only.

    Raises:
        OSError: There is no network, or the disk is full.
        RuntimeError: Likewise, raised by torchvision.
    """
    from fl_core.torchvision_repair import repair  # imports torch, which not all callers need

    repair()
    from torchvision import datasets

    root.mkdir(parents=True, exist_ok=True)
    timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT_SECONDS)  # torchvision itself would wait for ever
    try:
        with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as fresh:
            getattr(datasets, name)(fresh, download=True)
            (root / folder).mkdir(parents=True, exist_ok=True)
            for file in (Path(fresh) / folder).iterdir():
                file.replace(root / folder / file.name)
    finally:
        socket.setdefaulttimeout(timeout)
