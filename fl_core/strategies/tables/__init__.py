"""Strategies that keep the newest update of every client."""
