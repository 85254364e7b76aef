"""The loop: `Simulation` plays an experiment in virtual time, event by event.

No module here knows a strategy by name. Numbers in parentheses are rules in docs/rules.md.
Fixed: order and ticks of events, and every sum, bit for bit (golden trajectories, baseline of suite `ci`).
"""
