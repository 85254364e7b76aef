"""Checks required of every part, for tests of built-in parts and of a user's own."""
