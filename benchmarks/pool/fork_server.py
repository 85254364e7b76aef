"""Fork server: the parent process of local workers, with all common imports done.

`engine.Local` starts it; workers are forked from it (`pool/local.py`), and so need not import torch again. It
runs until the command ends: environment and import path of its workers are fixed when it starts.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
IMPORT_SIGNAL = signal.SIGURG  # asks for Lightning; ignored by a fork server without our handler


def warm_up(*modules: str) -> None:
    """Start the fork server; the modules of jobs are imported in the background.

    Workers inherit the present environment and import path.
    """
    # Imported first, asyncfl loads our packages even if the user's folder has others of their names.
    first = ["asyncfl"] if "asyncfl" in sys.modules else []
    os.environ.update(dict.fromkeys(THREADS, "1"))  # one process on each core, with one thread
    forkserver.set_forkserver_preload([*first, "benchmarks.pool.preload", *modules])
    resource_tracker.ensure_running()  # by itself, the fork server starts it and unblocks the signal
    with same_import_path(), _signals_blocked():
        forkserver.ensure_running()


def prepare_for_networks() -> None:
    """Import Lightning in the fork server before the next worker begins; only networks need Lightning."""
    if pid := forkserver._forkserver._forkserver_pid:  # type: ignore[attr-defined]
        os.kill(pid, IMPORT_SIGNAL)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals in processes started meanwhile, until `pool/preload.py` unblocks the signals.

    Otherwise Ctrl-C amid the imports would kill the fork server with a traceback.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, IMPORT_SIGNAL])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def same_import_path() -> Iterator[None]:
    """Let processes started meanwhile use the import path of the current process.

    By itself, Python puts the working directory first; a user's folder named like one of our packages would
    shadow it.
    """
    old = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    os.environ |= {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    try:
        yield
    finally:
        for name, value in old.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def cores() -> int:
    """Return the number of cores available to the current process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
