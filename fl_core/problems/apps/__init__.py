"""Flower apps as problems: folder, messages, clients. The problem itself is `problems/flower.py`."""
