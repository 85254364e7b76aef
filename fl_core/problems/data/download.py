"""Download a data set through torchvision, which knows its address and checks the files."""

import socket
import tempfile
from pathlib import Path

from fl_core.vision import repair

PATIENCE = 20  # seconds without an answer after which a download is given up


def download(name: str, folder: str, root: Path) -> None:
    """Put torchvision's data set `name` into `folder` under `root`, complete files only.

    Raises:
        OSError: There is no network, or the disk is full.
        RuntimeError: Likewise, as torchvision says it.
    """
    repair()
    from torchvision import datasets

    root.mkdir(parents=True, exist_ok=True)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)  # torchvision itself would wait for ever
    try:
        with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as fresh:
            getattr(datasets, name)(fresh, download=True)
            (root / folder).mkdir(parents=True, exist_ok=True)
            for file in (Path(fresh) / folder).iterdir():
                file.replace(root / folder / file.name)
    finally:
        socket.setdefaulttimeout(before)
