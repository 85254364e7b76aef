"""The science: asynchronous federated learning in virtual time. No tracker, tuner or command line.

Start with `experiment`, the input of a run, and `loop/simulation`, which plays it.
Fixed: results of runs, bit for bit, and keys of runs. AGENTS.md says what notices a change.
"""
