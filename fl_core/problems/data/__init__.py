"""Data sets as tensors: locations, formats, and the data of each client.

A problem's `load` returns a `Data`; a partition deals it out (`Shares`).
Fixed: values and order of data points: digests are recorded with runs and printed in docs/data.md.
"""
