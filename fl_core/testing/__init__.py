"""Checks required of every part, for tests of built-in parts and of a user's own.

`asyncfl.conformance` is `conformance`; the other modules hold the checks of a family each.
Fixed: `checks`, which users' tests call. A stricter check fails users' parts: say it in CHANGELOG.md.
"""
