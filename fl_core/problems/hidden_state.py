"""Networks whose loss depends on more than parameters and batch: they cannot be trained here."""

from torch import nn


def hidden_state(network: nn.Module) -> str | None:
    """Return a sentence that names a layer with hidden state and a remedy, or None.

    Masks of dropout must follow from the keys that travel with the sample (`KeyedDropout`), never from
    torch's or vmap's own generator. The running statistics of BatchNorm would have to travel and be averaged
    with the model.
    """
    for name, layer in network.named_modules():
        what = f"the network's layer {name or 'itself'} ({type(layer).__name__})"
        share = getattr(layer, "p" if isinstance(layer, nn.modules.dropout._DropoutNd) else "dropout", 0.0)
        if isinstance(share, float) and share > 0:
            return f"{what} drops units at random, by torch's generator: use KeyedDropout, or a share of 0"
        if isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats:
            return f"{what} keeps running statistics, which no server averages: use GroupNorm"
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            return f"{what} mixes the data points of a mini-batch: use GroupNorm"
    return None
