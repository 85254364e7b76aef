"""Real time: the loop with clients as real processes or Flower nodes, and replay in virtual time.

`asyncfl live` runs it (`benchmarks/runs/live.py`). Start with `run`.
Fixed: columns of the log, from which stored runs are replayed. Free: messages; both ends run equal code.
"""
