"""Networks by name, an idea per module; the interface is in `model`."""
