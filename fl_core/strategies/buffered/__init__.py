"""Strategies that step when a buffer of updates is full."""
