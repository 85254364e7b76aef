"""The loop: virtual time, its events, and what happens at each; no strategy by name."""
