"""Evaluating, saving and resuming runs, alone or side by side."""
