"""Ways from jobs to updates: in turn, stacked, the fastest by measurement, or not at all."""
