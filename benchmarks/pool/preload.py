"""First imports of the fork server, for a fast start of workers; no module here may start a thread.

The fork server imports this module as it starts (`fork_server.warm_up`); nobody else does. It collects no
garbage, since imported modules stay for good. Workers collect theirs (`benchmarks/pool/worker.py`).
"""

import atexit
import gc
import importlib
import os
import signal

from benchmarks.pool.fork_server import IMPORT_SIGNAL

MODULES = ("torch", "pyarrow.parquet", "benchmarks.pool.worker")
LIGHTNING = "fl_core.problems.training.centralised_baseline"  # imports Lightning: seconds, for networks only


def _end_at_once(server: int) -> None:
    """End the fork server without unloading modules: unloading takes seconds, and a minute under load."""
    if os.getpid() == server:
        os._exit(0)


def _import_all() -> None:
    """Import the modules of workers, then unblock the signals."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes, and the driver decides
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # as the fork server was started
    gc.disable()
    atexit.register(_end_at_once, os.getpid())
    driver = os.getppid()
    for module in MODULES:
        importlib.import_module(module)
        if os.getppid() != driver:
            os._exit(1)  # the driver is gone; until all is imported nothing else would notice
    signal.signal(IMPORT_SIGNAL, lambda *_: importlib.import_module(LIGHTNING))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [IMPORT_SIGNAL])


_import_all()
