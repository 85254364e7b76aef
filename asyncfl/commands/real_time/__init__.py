"""Commands for runs in real time."""
