"""Networks in training: tasks, worlds, pooled baseline.

Loaded only when a world is built, since torch and Lightning take seconds to import.
Fixed: mini-batches, gradients and metrics, bit for bit; names of metrics, which are recorded.
"""
