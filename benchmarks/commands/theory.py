"""`asyncfl list theory`: closed forms of the papers for given clients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.commands import options
from benchmarks.errors import UserError
from benchmarks.terminal_output import print_headed
from fl_core.text import many

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fl_core.theory.cost import Cost
    from fl_core.theory.jackson import Array
    from fl_core.theory.routing import QueueingNetwork, RoutingObjective
    from reports.figures.svg import Axes

MAX_SPEED_RATIO = 1e9  # of the fastest to the slowest client: beyond, sums over states lose their digits
ACCURACY, GAP, NOISE = 100.0, 15.0, 209.0  # defaults of ε, A and B
MAX_CLIENTS = 100_000
BASE = "AsyncSGD"  # uniform routing, with which the others are compared
# Weight of energy in the objective, the rest being time → name of the solution
FRONT = {0.0: "least time", 0.25: "¼ energy", 0.5: "½ energy", 0.75: "¾ energy", 1.0: "least energy"}
LIST_EXAMPLE = "3,1.5,1 or, for ten alike, 10x0.5"


@click.group()
def command() -> None:
    """Show closed forms of the papers for given clients."""


@command.command()
@click.option(
    "--speeds",
    required=True,
    metavar="LIST",
    help=f"Updates per unit of time of each client: {LIST_EXAMPLE}.",
)
@click.option("--tasks", required=True, type=click.IntRange(min=1), help="Tasks in flight, m.")
@click.option(
    "--objective",
    default="G",
    show_default=True,
    type=click.Choice(["G", "H"]),
    help="The bound to minimise: G per update, H per unit of time.",
)
@click.option("--lr", default=0.01, show_default=True, type=options.POSITIVE, help="Learning rate η.")
@click.option("--smoothness", default=1.0, show_default=True, type=options.POSITIVE, help="L.")
@click.option(
    "--distance", default=GAP, show_default=True, type=options.POSITIVE, help="A, distance to the optimum."
)
@click.option("--noise", default=NOISE, show_default=True, type=options.POSITIVE, help="B = 2M² + σ².")
@click.option("--rounds", default=3000, show_default=True, type=click.IntRange(min=1), help="T, in G alone.")
@click.option("--tied", is_flag=True, help="Give clients of equal speed the same probability.")
def routing(
    *,
    speeds: str,
    tasks: int,
    objective: str,
    lr: float,
    smoothness: float,
    distance: float,
    noise: float,
    rounds: int,
    tied: bool,
) -> None:
    """Show the optimal routing of Generalized AsyncSGD.

    Uniform and balanced routing stand beside it. Alahyane et al., arXiv 2502.08206, eqs. (5) and (12). The
    optimum is the best of three starts of Adam. Service times are exponential; staleness and time in the
    system are those expected of one task.
    """
    import numpy as np

    from fl_core.theory import optimum
    from fl_core.theory.routing import G, H, QueueingNetwork, balanced, uniform

    mu = np.array([float(speed) for speed in _clients("--speeds", speeds)])
    if mu.max() > MAX_SPEED_RATIO * mu.min():
        ratio = mu.max() / mu.min()
        raise UserError(
            f"--speeds: the fastest client is {ratio:,.0f} times as fast as the slowest, and "
            f"{MAX_SPEED_RATIO:,.0f} is the limit. Give speeds that are closer"
        )
    bound: RoutingObjective = (
        G(lr, distance, noise, rounds, smoothness) if objective == "G" else H(lr, distance, noise, smoothness)
    )
    ends = optimum.optimise(bound, mu, tasks, tied=tied)
    routings = {"optimal": ends[0].p, "uniform": uniform(len(mu)), "balanced": balanced(mu)}
    networks = {name: QueueingNetwork(p, mu, tasks) for name, p in routings.items()}

    click.echo(f"{many(len(mu), 'client')}, {many(tasks, 'task')} in flight\n")
    head = ("routing", objective, "updates per unit of time")
    rows = [
        (name, f"{bound.value(network):.6g}", f"{network.throughput:.6g}")
        for name, network in networks.items()
    ]
    print_headed(head, rows)
    click.echo("\nOptimal routing, clients alike together")
    _print_alike(networks["optimal"])
    starts = (
        f"{end.start} {end.value:.6g} in {end.steps} steps{'' if end.settled else ', not settled'}"
        for end in ends
    )
    click.echo(f"\nStarts of the search: {'; '.join(starts)}")


@command.command()
@click.option(
    "--speeds",
    required=True,
    metavar="LIST",
    help=f"Updates per second of each client at work: {LIST_EXAMPLE}.",
)
@click.option("--computation", required=True, metavar="LIST", help="Watts of each client at work.")
@click.option("--idle", required=True, metavar="LIST", help="Watts of each client without a task.")
@click.option(
    "--server", type=options.POSITIVE, help="Updates per second of the server at work.  [default: no queue]"
)
@click.option(
    "--accuracy",
    default=ACCURACY,
    show_default=True,
    type=options.POSITIVE,
    help="Mean of the squared gradient norm.",
)
@click.option("--smoothness", default=1.0, show_default=True, type=options.POSITIVE, help="L.")
@click.option(
    "--distance", default=GAP, show_default=True, type=options.POSITIVE, help="A, distance to the optimum."
)
@click.option("--noise", default=NOISE, show_default=True, type=options.POSITIVE, help="B = 2M² + σ².")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000), help="Tasks at most.")
@click.option(
    "--figure", type=click.Path(path_type=Path, dir_okay=False), help="Draw the front (.svg, .pdf)."
)
def cost(
    *,
    speeds: str,
    computation: str,
    idle: str,
    server: float | None,
    accuracy: float,
    smoothness: float,
    distance: float,
    noise: float,
    limit: int,
    figure: Path | None,
) -> None:
    """Show time and energy to an accuracy, and the routing and tasks for the least.

    Generalized AsyncSGD after Alahyane et al., arXiv 2603.26231, with formulas
    derived anew from the bound G and the product form. AsyncSGD is uniform
    routing with a task for each client. Step sizes are the best of each row;
    clients of equal speed and power get the same probability. Service times are
    exponential, at the server too.
    """
    import numpy as np

    from fl_core.theory.cost import Cost

    if figure is not None and figure.suffix not in {".svg", ".pdf"}:
        raise UserError(f"--figure: must end with .svg or .pdf, not '{figure.name}'")
    lists = {"--speeds": speeds, "--computation": computation, "--idle": idle}
    mu, work, rest = (np.array([float(x) for x in _clients(key, text)]) for key, text in lists.items())
    if not len(mu) == len(work) == len(rest):
        raise UserError(
            f"--speeds, --computation and --idle have {len(mu)}, {len(work)} and {len(rest)} clients. "
            "Give each the same number"
        )
    try:
        target = Cost(accuracy, distance, noise, work, rest, smoothness)
    except ValueError as error:
        raise UserError(f"--accuracy: {error}") from None
    _, groups = np.unique(np.stack([mu, work, rest]), axis=1, return_inverse=True)
    networks = least_costs(target, mu, tasks=len(mu), limit=limit, server=server or math.inf, groups=groups)
    click.echo(f"{many(len(mu), 'client')}, accuracy {accuracy:g}\n")
    print_costs(target, networks)
    for name in (FRONT[0.0], FRONT[1.0]):
        click.echo(f"\nRouting for {name}, clients alike together")
        _print_alike(networks[name])
    if figure is not None:
        draw_costs(target, networks, figure)
        click.echo(f"\nFigure: {figure}")


def least_costs(
    target: Cost, speeds: Array, *, tasks: int, limit: int, server: float, groups: NDArray[np.integer]
) -> dict[str, QueueingNetwork]:
    """Return AsyncSGD and the routings and numbers of tasks between least time and least energy, by name.

    Args:
        target: The accuracy, and the power of clients.
        speeds: Updates per unit of time of each client [n].
        tasks: Tasks of AsyncSGD.
        limit: Tasks at most of the others.
        server: Updates that the server takes per unit of time.
        groups: Labels [n]; clients with the same label get the same probability.
    """
    from dataclasses import replace

    from fl_core.theory.optimum import optimise_jointly
    from fl_core.theory.routing import QueueingNetwork, uniform

    networks = {BASE: QueueingNetwork(uniform(len(speeds)), speeds, tasks, server)}
    for weight, name in FRONT.items():
        end = optimise_jointly(replace(target, weight=weight), speeds, limit, server=server, groups=groups)
        networks[name] = QueueingNetwork(end.p, speeds, end.tasks, server)
    return networks


def print_costs(target: Cost, networks: Mapping[str, QueueingNetwork]) -> None:
    """Print time and energy of each choice, and the differences from AsyncSGD in per cent."""
    costs = {name: (target.time(network), target.energy(network)) for name, network in networks.items()}
    base = costs[BASE]
    rows = [
        (
            name,
            str(network.tasks),
            f"{target.step(network):.4g}",
            *(f"{value:.6g}" for value in costs[name]),
            *(
                f"{100 * (value / of_base - 1):+.0f} %"
                for value, of_base in zip(costs[name], base, strict=True)
            ),
        )
        for name, network in networks.items()
    ]
    print_headed(("choice", "tasks", "step", "time (s)", "energy (J)", "time", "energy"), rows)


def draw_costs(target: Cost, networks: Mapping[str, QueueingNetwork], path: Path) -> None:
    """Draw the front of times and energies, and AsyncSGD, into a file."""
    from reports.figures.svg import Drawing, series

    points = {name: (target.time(network), target.energy(network)) for name, network in networks.items()}
    base = points.pop(BASE)

    def paint(axes: Axes) -> None:
        times, energies = zip(*sorted(points.values()), strict=True)
        axes.plot(times, energies, "o-", color=series(0), markersize=6, markeredgewidth=0)
        axes.plot(*base, "s", color=series(1), markersize=7, markeredgewidth=0)
        axes.annotate(BASE, base, (-8, 6), textcoords="offset points", ha="right")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("Time to the accuracy")
        axes.set_ylabel("Energy to the accuracy (J)")

    title = f"Time against energy: the front, and {BASE}"
    Drawing(paint, title, (560, 380), (72, 16, 12, 44)).save(path)


def _print_alike(network: QueueingNetwork) -> None:
    """Print a row for each group of clients equal to five digits, in the order of first clients."""
    alike: dict[tuple[str, ...], list[int]] = {}
    columns = (network.speeds, network.p, network.staleness, network.sojourn)
    for client, values in enumerate(zip(*columns, strict=True)):
        alike.setdefault(tuple(f"{value:.5g}" for value in values), []).append(client)
    header = ("clients", "speed", "probability", "staleness", "time in the system")
    print_headed(header, [(_ranges(clients), *values) for values, clients in alike.items()])


def _ranges(clients: Sequence[int]) -> str:
    """Return ordered numbers as ranges, for example `0-9, 12`."""
    runs: list[list[int]] = []
    for client in clients:
        if runs and client == runs[-1][-1] + 1:
            runs[-1].append(client)
        else:
            runs.append([client])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


@command.command()
@click.option("--times", metavar="LIST", help=f"Mean update time of each client: {LIST_EXAMPLE}.")
@click.option(
    "--spread", metavar="X", help="In place of --times: F_X, an even grid from 1 down to 1 - X/100."
)
@click.option("--clients", type=click.IntRange(min=1), help="How many clients F_X has.")
@click.option("--period", metavar="TIME", help="Δt: the weights of FedFix as well.")
def weights(times: str | None, spread: str | None, clients: int | None, period: str | None) -> None:
    """Show weights that make asynchronous FedAvg unbiased.

    Fraboni et al., JMLR 2023, eqs. (12) and (14), for clients of equal importance. Times are exact: 0.2 is
    1/5.
    """
    from fl_core.theory import weights as theory

    if (times is None) == (spread is None) or (spread is None) != (clients is None):
        raise UserError("give either --times, or --spread and --clients")
    means = _clients("--times", times) if times is not None else _f_x(str(spread), clients or 1)
    p = [Fraction(1, len(means))] * len(means)
    columns: dict[str, Iterable[Fraction | float]] = {
        "mean time": means,
        "identical": [1] * len(means),
        "time-based": theory.time_based(p, means),
    }
    if period is not None:
        window = _positive("--period", period)
        columns["FedFix"] = theory.fedfix(p, means, window)
        columns["FedFix, exponential times"] = theory.fedfix_exponential(
            [float(weight) for weight in p], means, window
        )
    header = ("client", *columns)
    rows = [
        (str(client), *(f"{float(value):.6g}" for value in values))
        for client, values in enumerate(zip(*columns.values(), strict=True))
    ]
    print_headed(header, rows)
    rate = float(sum(1 / mean for mean in means))
    click.echo(f"\nOne by one: {rate:.6g} aggregations per unit of time")


def _f_x(spread: str, clients: int) -> tuple[Fraction, ...]:
    """Return the mean times of the paper's clients F_X; UserError for an invalid spread."""
    from fl_core.timing.durations import FX

    try:
        return FX(spread=spread).means(clients, 0)
    except ValueError:
        raise UserError(f"--spread: must be a percentage from 0 to below 100, not '{spread}'") from None


def _clients(option: str, text: str) -> tuple[Fraction, ...]:
    """Return the exact values of all clients, twelve for `3,1.5,10x0.5`; UserError for others."""
    values: list[Fraction] = []
    for item in text.split(","):
        times, x, value = item.rpartition("x")
        try:
            count = int(times) if x else 1
        except ValueError:
            count = 0
        if not 1 <= count <= MAX_CLIENTS:
            expected = f"a number of clients, 1 to {MAX_CLIENTS:,}, before the x of '{item}'"
            raise UserError(f"{option}: must be {expected}, not '{times.strip()}'")
        values += [_positive(option, value)] * count
    return tuple(values)


def _positive(option: str, text: str) -> Fraction:
    """Return the exact positive number in a text; UserError for others."""
    from fl_core.parts import exact

    try:
        value = exact(text.strip())
    except ValueError:
        value = Fraction(0)
    if value <= 0:
        raise UserError(f"{option}: must be a positive number, such as 0.5 or 1/3, not '{text.strip()}'")
    return value
