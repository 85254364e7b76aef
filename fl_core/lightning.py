"""Lightning and torchmetrics, with torchvision repaired if incompatible with torch."""

from fl_core.vision import repair

repair()

import pytorch_lightning as pl  # noqa: E402
import torchmetrics  # noqa: E402
import torchmetrics.classification  # noqa: E402
import torchmetrics.text  # noqa: E402

__all__ = ["pl", "torchmetrics"]
