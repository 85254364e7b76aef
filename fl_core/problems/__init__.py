"""Problems of the clients: data sets, partitions and models, and quadratics with known optimum.

A suite chooses one by name. A problem is data (`problem.Problem`); `world(seed)` builds what a run trains on.
"""
