"""Strategies that step in rounds, or at fixed times."""
