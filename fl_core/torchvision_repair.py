"""Make torchvision importable with a torch whose compiled operators do not fit.

A torch built for the CPU next to PyPI's torchvision cannot load torchvision's library of operators, and then
`import torchvision` fails, and with it `import pytorch_lightning` (torchmetrics imports torchvision). Nothing
here uses those operators; declaring two of them is enough.
"""

import functools
import importlib.util
from pathlib import Path

import torch

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


@functools.cache  # it also keeps the declarations alive
def repair() -> torch.library.Library | None:
    """Declare torchvision's operators if missing, before torchvision or Lightning is imported.

    Returns:
        The library of declarations, which must be kept alive; None if nothing is missing.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None or _loads(Path(spec.origin).parent):
        return None
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        library.define(name + SCHEMA)  # type: ignore[no-untyped-call]
    return library


def _loads(folder: Path) -> bool:
    """Return whether the compiled operators in `folder` load with the installed torch."""
    try:
        for file in folder.glob("_C.*"):
            torch.ops.load_library(str(file))  # type: ignore[no-untyped-call]
    except OSError:
        return False
    return hasattr(torch.ops.torchvision, "nms")
