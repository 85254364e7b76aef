"""The same arrivals through other frameworks' aggregators: `python -m tests.peers`."""
