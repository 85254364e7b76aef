"""Problems of the clients: data sets, partitions and models, and quadratics with known optimum.

A suite chooses one by name. A problem is data (`problem.Problem`); `world(seed)` builds what a run trains on.
Fixed: names, fields and defaults (keys of runs); data, splits, first models and gradients, bit for bit.
"""
