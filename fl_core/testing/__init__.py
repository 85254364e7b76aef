"""Checks that every part has to pass, for tests of this repository's parts and of a user's own."""
