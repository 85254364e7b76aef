"""`--device`: where worlds are computed, what is said where there is no GPU, what is recorded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import click
import pytest
import torch
from click.testing import CliRunner
from pydantic import ValidationError

from benchmarks import device
from benchmarks.commands import claims as claims_run
from benchmarks.commands import options, run, tune
from benchmarks.errors import UserError
from fl_core.experiment import Experiment
from fl_core.problems.digits import Digits
from fl_core.problems.quadratic import Quadratic


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without a choice, and leaves none behind."""
    monkeypatch.setenv("ASYNCFL_DEVICE", "cpu")


def machine(monkeypatch: pytest.MonkeyPatch, gpus: int, *, cuda: bool = True) -> None:
    """So many GPUs, as PyTorch would find them."""
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)


@pytest.mark.parametrize(
    ("name", "gpus", "cuda"),
    [("cuda", 0, False), ("cuda:1", 0, True), ("cuda:1", 1, True), ("gpu", 2, True), ("cuda:-1", 2, True)],
)
def test_what_cannot_be_had_is_said_in_a_line(
    name: str, gpus: int, cuda: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is computed, and the choice that stood is kept."""
    machine(monkeypatch, gpus, cuda=cuda)

    @click.command()
    @options.device
    def command() -> None:
        raise AssertionError("it must not get so far")

    done = CliRunner().invoke(command, ["--device", name])
    assert isinstance(done.exception, UserError)
    (line,) = done.exception.lines
    assert line.startswith(f"--device {name}: ")
    assert device.chosen() == torch.device("cpu")


def test_from_the_shell(
    tmp_path: Path, typed: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit code 2; the environment says the same as the option."""
    if torch.backends.cuda.is_built():
        pytest.skip("this PyTorch has CUDA")
    for more, variable in ((["--device", "cuda"], "cpu"), ([], "cuda")):
        monkeypatch.setenv("ASYNCFL_DEVICE", variable)
        done = typed("run", "quickstart", "--store", str(tmp_path / "store"), *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: --device cuda: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("command", [run.command, tune.command, claims_run.run])
def test_every_command_that_trains_has_it(command: click.Command) -> None:
    """The same option, with its default and its variable."""
    (option,) = (one for one in command.params if one.name == "device")
    assert (option.opts, option.envvar, option.default) == (["--device"], "ASYNCFL_DEVICE", "cpu")


def test_what_is_chosen_is_where_worlds_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU has its number, and up to four processes work on it."""
    machine(monkeypatch, 2)
    monkeypatch.setattr(device, "cores", lambda: 16)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda one: f"Model {one.index}")
    world = Quadratic().world(0)
    moved: list[torch.device] = []
    monkeypatch.setattr(type(world), "to", lambda self, there: moved.append(there) or self)
    assert device.place(world) is world
    assert not moved  # a user's own world need not know of devices
    assert (device.processes(), device.label()) == (16, "cpu")
    for name, number in (("cuda", 0), ("cuda:1", 1)):
        monkeypatch.setenv("ASYNCFL_DEVICE", name)
        assert device.place(world) is world
        assert moved.pop() == device.chosen() == torch.device("cuda", number)
        assert (device.processes(), device.label()) == (4, f"Model {number}")


@pytest.mark.parametrize(("precision", "tf32"), [("float32", False), ("tf32", True)])
def test_a_gpu_computes_with_the_precision_of_the_world(
    precision: Literal["float32", "tf32"], tf32: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In matrix products and convolutions, by the same algorithm every time; a CPU's settings stay."""
    world = Quadratic().world(0)
    world.precision = precision
    matmul = SimpleNamespace(allow_tf32=not tf32)
    monkeypatch.setattr(torch.backends.cuda, "matmul", matmul)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", not tf32)
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", False)
    device.set_precision(world)
    assert torch.backends.cudnn.allow_tf32 != tf32
    world.first = SimpleNamespace(device=torch.device("cuda", 0))  # type: ignore[assignment]
    device.set_precision(world)
    assert torch.backends.cudnn.allow_tf32 == matmul.allow_tf32 == tf32
    assert torch.backends.cudnn.deterministic


def test_tf32_needs_a_gpu_and_single_precision() -> None:
    """On a CPU its numbers would be those of float32, under another key."""
    problem = Digits.model_validate({"clients": 2, "precision": "tf32"})
    assert problem.world(0).precision == "tf32"
    with pytest.raises(UserError, match="precision"):
        device.place(problem.world(0))
    with pytest.raises(ValidationError, match="precision"):
        Digits.model_validate({"clients": 2, "precision": "tf32", "dtype": "float64"})


def test_precision_is_part_of_the_key() -> None:
    """Only where it is not the default, so that other keys stay."""
    keys = {
        Experiment.model_validate(
            {
                "scenario": {"problem": {"name": "digits", "clients": 2, **given}, "budget": {"updates": 1}},
                "strategy": "asgd",
            }
        ).key
        for given in ({}, {"precision": "float32"}, {"precision": "tf32"})
    }
    assert len(keys) == 2


@pytest.mark.slow
def test_the_fork_server_leaves_cuda_alone() -> None:
    """What workers are forked from has not so much as asked for a GPU: a fork could not use it any more."""
    script = """
import importlib, torch
def asked(*_, **__):
    raise SystemExit("CUDA was asked for")
for name in ("is_available", "device_count", "current_device", "_lazy_init", "get_device_capability"):
    setattr(torch.cuda, name, asked)
import benchmarks.pool.preload
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
