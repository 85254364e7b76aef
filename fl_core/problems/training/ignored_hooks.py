"""The parts of a user's LightningModule not used by clients, by name."""

from types import FunctionType

from fl_core.lightning import pl
from fl_core.text import listed

CLIPPING = "configure_gradient_clipping"
HOOKS = (
    CLIPPING,
    *("prepare_data", "setup", "configure_model"),
    *("on_fit_start", "on_fit_end", "on_train_start", "on_train_end"),
    *("on_train_epoch_start", "on_train_epoch_end", "on_train_batch_start", "on_train_batch_end"),
    *("on_before_backward", "backward", "on_after_backward", "on_before_zero_grad", "optimizer_zero_grad"),
    *("on_before_optimizer_step", "optimizer_step", "lr_scheduler_step", "configure_callbacks"),
    *("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer"),
    *("validation_step", "on_validation_epoch_end", "on_test_epoch_start", "on_test_epoch_end"),
    *("train_dataloader", "test_dataloader"),
)
COUNTERS = ("current_epoch", "global_step")  # of a Trainer, and 0 without one


def ignored(module: pl.LightningModule) -> list[str]:
    """Return sentences on ignored hooks, and on counters constant at 0, if any."""
    kind = type(module)
    hooks = [name for name in HOOKS if getattr(kind, name) is not getattr(pl.LightningModule, name)]
    user_classes = kind.__mro__[: kind.__mro__.index(pl.LightningModule)]
    parts = [part for base in user_classes for part in vars(base).values()]
    read = {name for part in parts if isinstance(part, FunctionType) for name in part.__code__.co_names}
    counters = [name for name in COUNTERS if name in read]
    sentences = []
    if hooks:
        clip = "; to clip gradients, set local: {name: sgd, clip: 1.0}" if CLIPPING in hooks else ""
        sentences.append(
            f"ignores {listed(hooks)}: clients follow the loss of training_step without a Trainer{clip}"
        )
    if counters:
        sentences.append(f"reads {listed(counters)}, 0 at all times: clients train without a Trainer")
    return sentences
