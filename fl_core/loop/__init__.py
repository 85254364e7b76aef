"""The loop: virtual time, events, and the handling of each; no strategy by name."""
