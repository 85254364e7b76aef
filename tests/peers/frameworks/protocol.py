"""Replay of a recorded sequence through one framework's server code; runs in that framework's environment.

Plain files in and out, and no import of this project. A module `NAME_server.py` beside this one defines a
`Server` and ends with `run(Server)`. A module `NAME_example.py` defines a function that makes a whole run of
the framework, and ends with `run_example(function)`.
"""

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

Array = np.ndarray
stubs: list[str] = []  # modules that stand in for ones that are not installed


@dataclass
class Arrival:
    """An update as the server receives it."""

    client: int
    version: int  # that the client started from; the first model is version 0
    samples: int  # data points of the client
    delta: Array  # model − start [d]
    model: Array  # at the end of the client's work [d]
    staleness: int  # of the recorded run: server iterations since the dispatch


class Server:
    """Base of the adapters: one server, which receives the recorded updates one after the other."""

    def __init__(self, model: Array, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def dispatch(self, client: int) -> None:
        """Note that the newest model is sent to a client."""

    def receive(self, arrival: Arrival) -> None:
        """Give the update to the framework's server code."""
        raise NotImplementedError

    def model(self) -> Array:
        """Return the server's model [d]."""
        raise NotImplementedError


def stub(name: str, **attributes: Any) -> ModuleType:
    """Put a module of these attributes in the place of one that is not installed; note its name."""
    module = ModuleType(name)
    vars(module).update(attributes)
    sys.modules[name] = module
    stubs.append(name)
    return module


class _Anything(ModuleType):
    """A module that has any attribute: a class that does nothing."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *_, **__: None})


def stub_anything(*names: str) -> None:
    """Put modules in the place of ones that are imported and not used."""
    for name in names:
        module = _Anything(name)
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
        stubs.append(name)


def bare_package(*names: str) -> None:
    """Register packages without running their `__init__`, which imports what the server code does not use."""
    for name in names:
        parent, _, last = name.rpartition(".")
        roots = sys.modules[parent].__path__ if parent else sys.path
        folder = next(path for root in roots if (path := Path(root) / last).is_dir())
        module = ModuleType(name)
        module.__path__ = [str(folder)]
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
        if parent:
            setattr(sys.modules[parent], last, module)


def declare_torchvision_operators() -> Any:
    """Declare the operators that PyPI's torchvision registers beside a torch for CPUs; return the library."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def replay(server: Server, sequence: dict[str, Array]) -> Array:
    """Return the server's models after each arrival [m, d]."""
    dispatched = sequence["dispatched"]
    pending = sorted(range(len(dispatched)), key=lambda number: (dispatched[number], number))
    found = []
    for number, uploaded in enumerate(sequence["uploaded"]):
        while pending and dispatched[pending[0]] < uploaded:
            server.dispatch(int(sequence["client"][pending.pop(0)]))
        delta, start = sequence["delta"][number], sequence["start"][number]
        server.receive(
            Arrival(
                client=int(sequence["client"][number]),
                version=int(sequence["version"][number]),
                samples=int(sequence["samples"][number]),
                delta=delta.copy(),
                model=start + delta,
                staleness=int(sequence["staleness"][number]),
            )
        )
        found.append(np.array(server.model(), dtype=np.float64))
    return np.array(found)


def run(server: type[Server]) -> None:
    """Replay the sequences FOLDER/NAME.npz for the cases of the command line, CASES.json FOLDER."""
    cases, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    found: dict[str, Any] = {}
    for case in cases:
        with np.load(folder / f"{case['sequence']}.npz") as file:
            sequence = dict(file)
        try:
            models = replay(server(sequence["models"][0].copy(), case["options"]), sequence)
            found[f"{case['id']} {case['sequence']}"] = {"models": models.tolist()}
        except Exception as error:  # noqa: BLE001 - a framework's error is a result
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error}"
            found[f"{case['id']} {case['sequence']}"] = {
                "error": text,
                "where": f"{where.filename}:{where.lineno}",
            }
    (folder / "out.json").write_text(json.dumps({"found": found, "stubs": stubs}))


def run_example(example: Callable[[dict[str, Any]], tuple[Any, Iterable[int]]]) -> None:
    """Run an example in the current folder with the options of the file that the command line names.

    The example returns the server's final model, and the clients, or versions, in order of arrival.
    """
    options = json.loads(Path(sys.argv.pop()).read_text())  # frameworks may read the command line, too
    model, arrivals = example(options)
    found = {
        "model": np.asarray(model, dtype=np.float64).tolist(),
        "arrivals": [int(each) for each in arrivals],
    }
    Path("out.json").write_text(json.dumps(found))


def vector(module: Any) -> Array:
    """Return the parameters of a PyTorch module in one row."""
    from torch.nn.utils import parameters_to_vector

    row: Array = parameters_to_vector(module.parameters()).detach().numpy()
    return row


def attribute(path: str) -> Any:
    """Return a class or function by its import path, `package.module:Name`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
