"""Flower apps as problems: folder, messages, clients. The problem itself is `problems/flower.py`.

Fixed: `digest` of an app (keys of runs), and messages as Flower's own servers send them. Wording is free.
"""
