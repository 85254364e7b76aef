"""The science: asynchronous federated learning in virtual time. No tracker, tuner or command line.

Start with `experiment`, the input of a run, and `loop/simulation`, which plays it.
"""
