"""Networks in training: tasks, worlds, pooled baseline. Loaded only when a world is built."""

from fl_core.vision import mend

mend()  # before any module of this folder imports pytorch_lightning
