"""Partitions, by name, one idea per module; their interface is in `partition`."""
