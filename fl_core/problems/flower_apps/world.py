"""The world of a Flower app: the ClientApp is called as by Flower's Grid, a client at a time.

`problems/flower.py` builds it for a run; `live/flower.py` uses it on the server of real Flower nodes. A job
is a pure function of its inputs, including the client's state: global generators are seeded by client and
job.

Fixed: content and order of calls, and the seed of each. Free: messages and remarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from time import perf_counter, time
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, Metadata, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor

from fl_core.import_guard import in_a_line
from fl_core.problems.flower_apps.folder import app_in
from fl_core.problems.flower_apps.generators import seeded
from fl_core.problems.flower_apps.records import Layout, is_loss, mean, numbers, packed, unpacked
from fl_core.problems.problem import Evaluation, InvalidProblemError, World

SERVER = 1  # the identifier of the sender of all messages
FIRST_NODE = 2  # the identifier of client 0's node
LIFETIME_SECONDS = 43_200.0  # of a message, as Flower has it
EXAMPLES = "num-examples"  # metric with the number of examples of a client
ARRAYS, CONFIG, ROUND = "arrays", "config", "server-round"  # names used by Flower's strategies
RATE = 0.1  # learning rate of a trial of the first job
TESTED = ("1.41", "1.42")  # minor releases of flwr


class AppError(InvalidProblemError):
    """Failure or unusable answer of a Flower app, with client and reason in a line."""


class FlowerWorld(World):
    """The clients of a Flower app, as many as the problem has, and the app's first model under a seed.

    Raises:
        InvalidProblemError: The app cannot be loaded, or its first model cannot be used.
    """

    def __init__(self, problem: Any, seed: int) -> None:
        self.problem, self.seed = problem, seed  # a `Flower`, whose module imports this one when it is used
        paths = [path for path in problem.paths() if path]
        self.folder = app_in(problem.app, problem.digest, *paths)
        assert self.folder.client_app is not None
        self.app = self.folder.load(self.folder.client_app)
        if not isinstance(self.app, ClientApp):
            raise InvalidProblemError(
                f"'{self.folder.client_app}' of {problem.app} must be a ClientApp, not a "
                f"{type(self.app).__name__}"
            )
        self.config = self.folder.run_config(dict(problem.config))
        first = self._called(problem.initial, "init")
        try:
            self.layout, vector = Layout.of(first)
        except ValueError as error:
            raise InvalidProblemError(f"initial {problem.initial}: {error}") from None
        sizes = self._examples()
        super().__init__(problem.weights(sizes), self.layout.d)
        self.first, self.sizes = vector, sizes
        self.fingerprint = {"app": problem.digest}
        self.measured, self.seconds = problem.measured, 0.0
        self._evaluated: tuple[Tensor, Evaluation] | None = None  # the latest evaluated model, as a cache

    @property
    def blocks(self) -> list[int]:
        """The lengths of the model's arrays, in order."""
        return [slot.size for slot in self.layout.slots if slot.size]

    def train(self, job: Any) -> None:
        """Train a job's client on the model sent; write the results of the job."""
        rate = job.client_state.get("server_lr")
        content = self.request(job.start, job.version, job.lr, job.steps, rate)
        with seeded(self.seed, "client_app", job.client, job.index):
            began = perf_counter()
            answer, state = self._ask("train", job.client, job.index, content, job)
            self.seconds = perf_counter() - began
        self.finish(job, answer)
        if state or job.moments:  # also an empty state, if the app cleared it
            job.new_moments = packed(state)

    def request(
        self, start: Tensor, version: int, lr: float, steps: int, server_lr: Tensor | None
    ) -> RecordDict:
        """Return the content of a message asking a client to train.

        Args:
            start: The model [d].
            version: Its version; Flower's rounds count from 1.
            lr: η_l.
            steps: K.
            server_lr: η_g, if known.

        Raises:
            AppError: The strategy chooses K, and the problem has no name of K in the app's configuration.
        """
        problem = self.problem
        config = {**dict(problem.train_config), **self._rates(lr, steps, server_lr)}
        if steps != 1 and problem.steps is None:
            raise AppError(
                f"the strategy asks for {steps} local steps: name the app's key for them, such as "
                "`steps: local-epochs` of the problem"
            )
        return RecordDict(
            {ARRAYS: self.layout.record(start), CONFIG: ConfigRecord({**config, ROUND: version + 1})}
        )

    def finish(self, job: Any, content: RecordDict) -> None:
        """Write the results of a job from the client's reply.

        As mean gradient, the delta is divided by −η_l K: that of K steps of plain SGD to the same model.

        Raises:
            AppError: The arrays are not those of the model.
        """
        records = [*content.array_records.values()]
        if len(records) != 1:
            raise AppError(f"client {job.client}: train returned {len(records)} records of arrays, not one")
        try:
            end = self.layout.vector(records[0]).to(job.start.device)
        except ValueError as error:
            raise AppError(f"client {job.client}: train: {error}") from None
        job.delta = end - job.start
        job.gradient = job.delta / (-job.lr * job.steps)
        job.finite = bool(torch.isfinite(job.delta.sum()))
        if job.reports:
            job.reported = numbers(content)
            losses = [value for name, value in job.reported.items() if is_loss(name)]
            if len(losses) == 1:
                job.reported["loss"] = losses[0]

    def evaluate(self, model: Tensor) -> Evaluation:
        """Evaluate a model [d] by the app's own function, or by the clients, weighted by examples."""
        if self._evaluated is None or self._evaluated[0] is not model:
            central = self.problem.evaluate != "clients"
            self._evaluated = model, self._centrally(model) if central else self._by_clients(model)
        return self._evaluated[1]

    def losses(self, model: Tensor) -> np.ndarray:
        """Raise InvalidProblemError, since only an app's clients know the training losses."""
        raise InvalidProblemError(
            "the strategy needs the clients' training losses, which a Flower app does not report: "
            "choose another strategy or sampling"
        )

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        """Raise InvalidProblemError: an app trains, and shows no gradients."""
        raise InvalidProblemError(
            "diagnostics need gradients, which a Flower app does not report: leave out 'diagnostics'"
        )

    def remarks(self) -> list[str]:
        """Return advice for users: an untested release, jobs without repeatability, rates not read.

        The first job of client 0 is run two or three times. If it fails, the runs will say so.
        """
        remarks = []
        release = ".".join(version("flwr").split(".")[:2])
        if release not in TESTED:
            remarks.append(f"flwr {release} is installed; tested with problem 'flower': {', '.join(TESTED)}")
        if variances := [slot.name for slot in self.layout.slots if slot.name.endswith("running_var")]:
            remarks.append(
                f"the model holds running variances ({variances[0]}): adding several updates up may make "
                "them negative, and runs diverge. GroupNorm holds none"
            )
        try:
            first, second = (self._first_job(RATE) for _ in range(2))
            read = not self.problem.local_lr or first != second or self._first_job(2 * RATE) != first
        except AppError:
            return remarks
        if first != second:
            remarks.append(
                f"{self.problem.app}: the first job, run twice with equal seeds, gave two results: runs will "
                "not repeat. Draw from the global generators, or from some that are seeded in each call"
            )
        if not read:
            remarks.append(
                f"{self.problem.app}: the first job is the same at two learning rates: the app does not read "
                f"'{self.problem.local_lr}'. Give its own name as local_lr"
            )
        return remarks

    def _first_job(self, lr: float) -> list[bytes]:
        """Return the arrays after the first job of client 0 at a rate."""
        content = self.request(self.first, 0, lr, 1, None)
        with seeded(self.seed, "client_app", 0, 0):
            answer, _ = self._ask("train", 0, 0, content)
        return [array.data for record in answer.array_records.values() for array in record.values()]

    def _rates(self, lr: float, steps: int, server_lr: Tensor | None) -> dict[str, float]:
        """Return rates and K under the app's names."""
        problem = self.problem
        rates: dict[str, float] = {}
        if problem.local_lr:
            rates[problem.local_lr] = lr
        if problem.server_lr and server_lr is not None:
            rates[problem.server_lr] = float(server_lr)
        if problem.steps:
            rates[problem.steps] = steps
        return rates

    def _ask(
        self, kind: str, client: int, index: int, content: RecordDict, job: Any = None
    ) -> tuple[RecordDict, RecordDict]:
        """Call the ClientApp with a message of a kind; return the reply, and the client's state afterwards.

        Raises:
            AppError: The app fails, or does not answer.
        """
        sent = content.config_records[CONFIG]
        config = self.config | {key: value for key, value in sent.items() if key in self.config}
        context = Context(
            run_id=1,
            node_id=client + FIRST_NODE,
            node_config={"partition-id": client, "num-partitions": self.problem.clients},
            state=unpacked(job.moments) if job else RecordDict(),
            run_config=config,
        )
        metadata = Metadata(
            run_id=1,
            message_id=f"{client}.{index}.{kind}",
            src_node_id=SERVER,
            dst_node_id=client + FIRST_NODE,
            reply_to_message_id="",
            group_id=str(sent[ROUND]),
            created_at=time(),
            ttl=LIFETIME_SECONDS,
            message_type=kind,
        )
        with _failures(f"client {client}: {kind}"), self.folder.packages.in_use():
            reply = self.app(Message(content=content, metadata=metadata), context)
        if not isinstance(reply, Message):
            raise AppError(f"client {client}: {kind} returned {reply!r}, not a Message")
        if reply.has_error():
            raise AppError(f"client {client}: {kind} answered with an error: {reply.error.reason}")
        return reply.content, context.state

    def _centrally(self, model: Tensor) -> Evaluation:
        """Evaluate a model [d] by the app's central function."""
        metrics = self._called(self.problem.evaluate, "evaluate", 0, self.layout.record(model))
        if not isinstance(metrics, Mapping):
            raise AppError(f"evaluate {self.problem.evaluate} returned {metrics!r}, not a MetricRecord")
        single = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
        return Evaluation({f"test/{name}": float(value) for name, value in single.items()}, None)

    def _by_clients(self, model: Tensor) -> Evaluation:
        """Evaluate a model [d] by messages of type evaluate to all clients."""
        arrays = self.layout.record(model)
        answers, config = [], {**dict(self.problem.evaluate_config), ROUND: 0}
        for client in range(self.n):
            content = RecordDict({ARRAYS: ArrayRecord(dict(arrays)), CONFIG: ConfigRecord(config)})
            with seeded(self.seed, "evaluate", client):
                answers.append(numbers(self._ask("evaluate", client, 0, content)[0]))
        weights = [metrics.pop(EXAMPLES, 1.0) for metrics in answers]
        names = set.intersection(*(set(metrics) for metrics in answers))
        by_client = {name: [metrics[name] for metrics in answers] for name in sorted(names)}
        return Evaluation(
            {f"test/{name}": mean(values, weights) for name, values in by_client.items()},
            None,
            {f"test/{name}": np.array(values) for name, values in by_client.items()},
        )

    def _examples(self) -> np.ndarray:
        """Return the number of training examples of each client [n]; 1 each if not given."""
        counts, n = self.problem.examples, self.problem.clients
        if isinstance(counts, str):
            counts = tuple(self._called(counts, "examples", client, n) for client in range(n))
            if not all(isinstance(count, int | np.integer) and count > 0 for count in counts):
                raise InvalidProblemError(
                    f"examples {self.problem.examples} must return whole numbers above 0, not {counts}"
                )
        return np.array(counts or (1,) * n, int)

    def _called(self, path: str, purpose: str, *arguments: Any) -> Any:
        """Return the result of a function of the app, called with seeded generators."""
        function = self.folder.load(path)
        with _failures(path), seeded(self.seed, purpose), self.folder.packages.in_use():
            return function(*arguments)


@contextmanager
def _failures(action: str) -> Iterator[None]:
    """Convert any exception of an app into an AppError of a single line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise AppError(f"{action} failed: {in_a_line(error)}") from error
