"""The gate: recorded runs against a stored baseline, for CI. `asyncfl check` calls it.

`baseline` reads and writes the files, `gate` compares, `output` prints the findings.
"""
