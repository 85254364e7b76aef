"""Flower apps as problems: their folder, their messages, their clients."""
