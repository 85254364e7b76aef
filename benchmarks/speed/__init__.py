"""How fast the simulator is on this machine, beside the loop that one would write for a single experiment."""
