"""Scenarios that decide themselves which client works on which version."""
