"""The state of a simulation as tensors and plain data, and back (docs/rules.md, rule 15).

`recording/checkpoint.py` writes the data to a file. A new field of `RunState` needs an entry in `plain` and
`restore` only if it is not plain data.

Fixed: a resumed run equals an uninterrupted one. Free: the form of the data: a checkpoint with other fields
is refused (`fits`), and its run begins again.
"""

from dataclasses import fields
from types import NoneType, SimpleNamespace
from typing import Any

from torch import Tensor

from fl_core.loop.events import JOBS, EventKind, EventQueue
from fl_core.loop.simulation import Simulation
from fl_core.recorded_names import Status
from fl_core.server.jobs import Job, Update
from fl_core.server.roster import Roster
from fl_core.server.state import attributes
from fl_core.timing.link_sharing import Link

SAVED_TYPES = "tensors, Python's own numbers, strings and None, and lists, tuples and dicts of these"


def plain(simulation: Simulation) -> dict[str, Any]:
    """Return every field of the state as tensors and plain data.

    Jobs appear both in flight and in the event queue: they are saved in one list and referred to by number.

    Raises:
        TypeError: A value could not be restored; the message names its place.
    """
    state = simulation.state
    jobs = [job for queue in state.flight.values() for job in queue]
    number = {id(job): place for place, job in enumerate(jobs)}
    data = {
        **values(state),
        "status": str(state.status),
        "memory": _saved(state.memory, "server.memory"),
        "local": _saved(state.local, "server.local"),
        "roster": state.roster.state(),
        "flight": {client: [number[id(job)] for job in queue] for client, queue in state.flight.items()},
        "queue": [
            (entry[0], int(entry[1]), entry[2], number[id(entry[-1])] if entry[1] in JOBS else entry[-1])
            for entry in state.queue.earliest()
            if entry[1] not in JOBS or entry[-1].event is entry
        ],
        "at_server": [number[id(job)] for job in state.at_server],
        "gathered": [values(update) for update in state.gathered],
        "links": {way: [link.state() for link in links] for way, links in state.links.items()},
        "jobs": [_plain_job(job) for job in jobs],
    }
    return {name: checked(value, name) for name, value in data.items()}


def fits(simulation: Simulation, data: dict[str, Any]) -> bool:
    """Return whether `data` has exactly the fields of the present state, roster and jobs."""
    state, job = ({field.name for field in fields(kind)} for kind in (simulation.state, Job))
    job.remove("event")
    return (
        data.keys() == state | {"jobs"}
        and data["roster"].keys() == simulation.state.roster.state().keys()
        and all(saved.keys() == job for saved in data["jobs"])
    )


def restore(simulation: Simulation, data: dict[str, Any]) -> None:
    """Restore the state in `data` into a fresh simulation."""
    jobs = [Job(**job) for job in data["jobs"]]
    queue = EventQueue()
    for time, kind, client, item in data["queue"]:
        if kind in JOBS:
            jobs[item].event = queue.push(time, EventKind(kind), client, jobs[item])
        else:
            queue.push(time, EventKind(kind), client, item)
    restored = {
        **data,
        "memory": _memory(simulation, data["memory"]),
        "status": Status(data["status"]),
        "local": SimpleNamespace(**data["local"]),
        "roster": Roster.restored(data["roster"]),
        "flight": {client: [jobs[place] for place in places] for client, places in data["flight"].items()},
        "queue": queue,
        "at_server": [jobs[place] for place in data["at_server"]],
        "gathered": [Update(**update) for update in data["gathered"]],
        "links": {
            way: [
                Link.restored(fresh.capacity, link)
                for fresh, link in zip(links, data["links"][way], strict=True)
            ]
            for way, links in simulation.state.links.items()
        },
    }
    for field in fields(simulation.state):
        setattr(simulation.state, field.name, restored[field.name])
    simulation.server.mean_time = simulation.mean_times()
    simulation.absences.resume()


def values(state: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, by name."""
    return {field.name: getattr(state, field.name) for field in fields(state)}


def _plain_job(job: Job) -> dict[str, Any]:
    """Return the fields of a job except the event, held by the queue."""
    return {name: value for name, value in values(job).items() if name != "event"}


def _saved(memory: Any, place: str) -> dict[str, Any] | tuple[str, dict[str, Any]]:
    """Return the content of a memory by name, with the class's name unless the memory is a namespace."""
    held = {name: checked(value, f"{place}.{name}") for name, value in attributes(memory).items()}
    return held if type(memory) is SimpleNamespace else (type(memory).__name__, held)


def _memory(simulation: Simulation, saved: dict[str, Any] | tuple[str, dict[str, Any]]) -> Any:
    """Return a namespace with the saved content, or the strategy's own class of memory with it.

    The class is not saved: the strategy's `begin` makes an object of it, whose content is then replaced.
    """
    if isinstance(saved, dict):
        return SimpleNamespace(**saved)
    simulation.strategy.begin(simulation.server)
    memory, (_, held) = simulation.state.memory, saved
    for name in attributes(memory).keys() - held.keys():
        object.__delattr__(memory, name)
    for name, value in held.items():
        object.__setattr__(memory, name, value)
    return memory


def checked(value: Any, *place: Any) -> Any:
    """Return a value ready to be saved; a tensor view of a larger tensor is copied.

    Args:
        value: Tensors and plain data, nested.
        place: Where the value stands, for the message: a name, and the keys that lead to the value.

    Raises:
        TypeError: The value is neither a tensor nor plain data, and would not be restored as it was.
    """
    if isinstance(value, Tensor):
        owns_storage = value.untyped_storage().nbytes() == value.numel() * value.element_size()
        return value if owns_storage else value.clone()
    # Exact types: a NumPy float is a float too, and a Counter a dict, but they are not restored as such.
    kind = type(value)
    if kind in (int, float, bool, str, NoneType):
        return value
    if kind is dict:
        return {checked(key, *place, key): checked(item, *place, key) for key, item in value.items()}
    if kind in (list, tuple):
        return kind(checked(item, *place, number) for number, item in enumerate(value))
    path = str(place[0]) + "".join(f"[{key!r}]" for key in place[1:])
    raise TypeError(
        f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be saved. Use {SAVED_TYPES}"
    )
