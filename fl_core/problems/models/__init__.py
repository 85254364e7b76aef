"""Networks that a suite chooses by name, a kind in each module; the interface is in `model`."""
