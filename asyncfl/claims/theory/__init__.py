"""Closed forms of the papers that only claims need: bounds, constants, a queue simulated plainly."""
