"""Checks that every part has to pass, for the tests of this repository and of a user's own parts."""
