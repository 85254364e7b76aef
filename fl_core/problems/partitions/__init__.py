"""Partitions, by name: one idea a module. What they have in common is in `partition`."""
