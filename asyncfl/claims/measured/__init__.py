"""Metrics of claims that no column holds: functions of the runs of one seed, one module per paper.

An entry names one as its `metric`, `asyncfl.claims.measured.ace:kept_bytes`. Of training losses (fp/*,
sp/*) it reads the last row only, unless the scenario says `evaluate: clients`.
"""
