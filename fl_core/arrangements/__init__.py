"""Scenarios that themselves decide which client works on which version."""
