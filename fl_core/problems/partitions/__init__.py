"""Partitions by name, an idea per module; the interface is in `partition`."""
