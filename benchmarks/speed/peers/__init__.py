"""Other simulators on the same work, as scripts that need nothing of this package."""
