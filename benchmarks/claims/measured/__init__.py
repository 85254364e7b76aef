"""Metrics of claims that no column holds: functions of the runs of one seed, one module a paper.

An entry names one as its `metric`, `benchmarks.claims.measured.fraboni:share_failing`.
"""
