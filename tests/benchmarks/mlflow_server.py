"""A real MLflow server, which passes artifacts through, and can be killed and started again."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from patience import PATIENCE


class MlflowServer:
    """Always at the same port, with the same database and files."""

    def __init__(self, database: str, files: Path) -> None:
        self.database, self.files = database, files
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = ["--port", str(self.port), "--workers", "1", "--artifacts-destination", str(self.files)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *words, "--backend-store-uri", self.database],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError), urlopen(f"{self.uri}/health"):
                return
            assert self._process.poll() is None and time.monotonic() < end
            time.sleep(0.5)

    def kill(self) -> None:
        """At once, in the middle of whatever it does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
