"""Strategies that step at every arrival."""
