"""Lightning and torchmetrics for import, with torchvision repaired first if incompatible with torch.

Import them from here only: without `torchvision_repair`, their import fails next to a CPU build of torch.
"""

from fl_core.torchvision_repair import repair

repair()

import pytorch_lightning as pl  # noqa: E402
import torchmetrics  # noqa: E402
import torchmetrics.classification  # noqa: E402
import torchmetrics.text  # noqa: E402

__all__ = ["pl", "torchmetrics"]
