"""Real time: the loop with clients as real processes or Flower nodes, and replay in virtual time.

`asyncfl live` runs it (`benchmarks/runs/live.py`). Start with `run`.
"""
