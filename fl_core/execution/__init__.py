"""How jobs become updates: one by one, stacked, whichever is faster, or not at all."""
