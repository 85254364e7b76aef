"""Flower apps as problems: folder, messages, clients."""
