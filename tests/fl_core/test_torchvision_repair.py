"""The repair: torchvision and Lightning import, whether or not torchvision's operators fit this torch."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # processes that import all of torch


def fresh(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_after_the_repair_both_import_and_a_second_repair_does_nothing() -> None:
    program = (
        "import sys\n"
        "from fl_core.torchvision_repair import repair\n"
        "first = repair()\n"
        "assert not {'torchvision', 'pytorch_lightning'} & sys.modules.keys()\n"
        "import torchvision, pytorch_lightning, torch\n"
        "assert repair() is first\n"
        "print(hasattr(torch.ops.torchvision, 'nms'))"
    )
    assert fresh(program) == "True"


def test_operators_that_fit_are_left_alone() -> None:
    program = (
        "import torch\n"
        "import fl_core.torchvision_repair as vision\n"
        "library = torch.library.Library('torchvision', 'DEF')\n"
        "library.define('nms' + vision.SCHEMA)\n"  # as if the compiled ones had loaded
        "vision.torch.ops.load_library = lambda path: None\n"
        "print(vision.repair())"
    )
    assert fresh(program) == "None"
