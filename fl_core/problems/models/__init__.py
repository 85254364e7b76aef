"""Networks that a suite chooses by name, a kind in each module; the interface is in `model`.

Fixed: names, fields and defaults (keys of runs); the layers in their order, by which first weights are drawn.
"""
