"""The gate: recorded runs against a stored baseline, for CI. `asyncfl check` calls it.

`baseline` reads and writes the files, `gate` compares, `output` prints the findings.
Fixed: files of baselines, and which changes fail. Free: wording and tables.
"""
