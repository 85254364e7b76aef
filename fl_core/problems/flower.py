"""A Flower app as a problem: the unchanged ClientApp trains in virtual time.

The calls of the ClientApp are in `flower_apps/world.py`; the local work of such a problem is `client_app`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema, model_validator

from fl_core import import_guard
from fl_core.metrics import Metric
from fl_core.parts import Count, FieldError
from fl_core.problems.flower_apps import folder
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.problems.user_problem import ImportPath
from fl_core.text import miscounted

if TYPE_CHECKING:
    from fl_core.problems.flower_apps.world import FlowerWorld

NOT_INSTALLED = (
    "problem 'flower' needs Flower: pip install -e \".[flower]\" in an environment of its own, without "
    "constraints.txt"
)


def _items(value: Any) -> Any:
    """Return a mapping as pairs, which can be hashed."""
    return tuple(value.items()) if isinstance(value, dict) else value


# Values by name, hashable like every part; in files a mapping.
Settings = Annotated[
    tuple[tuple[str, bool | int | float | str], ...],
    BeforeValidator(_items),
    PlainSerializer(dict),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": ["boolean", "number", "string"]}, "default": {}}
    ),
]


class Flower(Problem):
    """Your Flower app: the unchanged ClientApp trains under this benchmark's strategies and clocks.

    `app` is the folder with `[tool.flwr.app]` in its pyproject.toml; all import paths are found in it.
    `initial` is called without arguments and returns the first model: an ArrayRecord, a module, a state_dict
    or a list of NumPy arrays; a class such as a network will do. `evaluate` is called with a number of a
    round and an ArrayRecord, as Flower's `evaluate_fn`. Metrics are recorded as `test/` and their names.
    """

    name: ClassVar[str] = "flower"
    local_work: ClassVar[str | None] = "client_app"

    app: Path  # the folder of the app
    digest: str = ""  # of the app's code, filled in: part of a run's identity
    initial: ImportPath  # the function that returns the first model, package.module:function
    # The function that evaluates a model on central data; `clients`: they do, weighted by their examples
    evaluate: Literal["clients"] | ImportPath = "clients"
    # Training examples of each client, or a function of partition and number of partitions that returns them
    examples: tuple[Count, ...] | ImportPath | None = None
    config: Settings = ()  # of the app's run_config, in place of its own values
    train_config: Settings = ()  # sent with each message of type train
    evaluate_config: Settings = ()  # sent with each message of type evaluate
    local_lr: str | None = "lr"  # the app's key of the clients' learning rate
    server_lr: str | None = None  # the app's key of the server's learning rate
    steps: str | None = None  # the app's key of the number of local steps or epochs
    measured: bool = False  # whether a job takes the seconds that it took here, times its length by the law
    higher: tuple[str, ...] = ("accuracy",)  # the app's metrics of which higher values are better
    lower: tuple[str, ...] = ("loss",)  # the app's metrics of which lower values are better
    metric: str = "test/accuracy"

    @model_validator(mode="before")
    @classmethod
    def _identify(cls, fields: Any) -> Any:
        """Fill in the digest of the code, allowed to be imported."""
        if not isinstance(fields, dict) or fields.get("digest"):
            return fields
        if not isinstance(fields.get("app"), str | Path):  # validation says what is wrong
            return fields
        try:
            import_guard.must_be_allowed()
            return {**fields, "digest": folder.checked(Path(fields["app"]))}
        except (InvalidProblemError, import_guard.ImportRefusedError) as error:
            raise FieldError("app", str(error)) from None

    @model_validator(mode="after")
    def _examples_fit(self) -> Self:
        """Refuse numbers of examples that do not fit the clients, or are missing."""
        if isinstance(self.examples, tuple) and len(self.examples) != self.clients:
            raise FieldError("examples", miscounted(self.examples, self.clients))
        if self.importance == "data" and self.examples is None:
            raise FieldError(
                "importance",
                "'data' needs the number of training examples of each client: give `examples`, a list or a "
                "function of the app",
            )
        return self

    def metrics(self) -> tuple[Metric, ...]:
        ways = dict.fromkeys(self.higher, True) | dict.fromkeys(self.lower, False)
        return tuple(
            Metric(f"test/{name}", f"Test {name}", higher=way, share=name == "accuracy")
            for name, way in ways.items()
        )

    def client_metrics(self) -> tuple[Metric, ...]:
        return self.metrics() if self.evaluate == "clients" else ()

    def recorded(self) -> tuple[Metric, ...]:
        return (*self.metrics(), *(metric.worst_client for metric in self.client_metrics()))

    def paths(self) -> tuple[str | None, ...]:
        """Return the import paths required in the app's folder."""
        central = None if self.evaluate == "clients" else self.evaluate
        return self.initial, central, self.examples if isinstance(self.examples, str) else None

    def in_folder(self, app: Path) -> Self:
        """Return the problem with the app in another folder, possibly with added code."""
        return self.model_copy(update={"app": app, "digest": folder.checked(app)})

    def check(self, seed: int) -> None:
        self.world(seed)

    def remarks(self, seed: int) -> list[str]:
        lengths = [MEASURED] if self.measured else []
        return lengths + self.world(seed).remarks()

    def world(self, seed: int) -> FlowerWorld:
        if find_spec("flwr") is None:
            raise InvalidProblemError(NOT_INSTALLED)
        if folder.digest(self.app) != self.digest:
            raise InvalidProblemError(
                f"the code in {self.app} was edited: its digest is no longer {self.digest}. Restore the "
                "code, or rerun the command"
            )
        from fl_core.problems.flower_apps.world import FlowerWorld

        return FlowerWorld(self, seed)


MEASURED = "job lengths are measured on this machine: times, and what depends on them, do not repeat"
