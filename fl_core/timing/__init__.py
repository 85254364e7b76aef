"""Virtual time: how long jobs take, when clients are present, and in which order events happen."""
