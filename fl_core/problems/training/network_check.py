"""Refusal of networks whose loss depends on more than parameters and batch, such as running statistics.

Called when a user's network or module is validated, and before training.

Free: a layer that repeats under every execution may be allowed; stored runs do not depend on it.
"""

from itertools import chain

from torch import nn


def hidden_state(network: nn.Module) -> str | None:
    """Return a sentence naming an unusable layer or parameter and a remedy, or None.

    The running statistics of BatchNorm would have to be sent and averaged with the model. Only a frozen
    layer, in evaluation mode, leaves them unchanged. Recurrent layers drop units inside a fused call of
    torch's, out of reach of the keys that make other dropout repeatable (`training/dropout.py`).
    """
    for name, value in chain(network.named_parameters(), network.named_buffers()):
        if nn.parameter.is_lazy(value):
            return f"the network's {name} has no shape yet: give the sizes of lazy layers, such as nn.Linear"
        if value.is_complex():
            return f"the network's {name} is complex: models are real, so store its real and imaginary parts"
    for name, layer in network.named_modules():
        layer_name = f"the network's layer {name or 'itself'} ({type(layer).__name__})"
        if isinstance(layer, nn.RNNBase) and layer.dropout > 0:
            return f"{layer_name} drops units inside torch's code: use nn.Dropout between layers of their own"
        if isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats:
            if not layer.training:
                continue
            return (
                f"{layer_name} keeps running statistics, which no server averages: use GroupNorm, or freeze "
                "it by .eval() where the network is made"
            )
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            return f"{layer_name} mixes the data points of a mini-batch: use GroupNorm"
    return None
