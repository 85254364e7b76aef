"""Problems of the clients: data sets, partitions and models, and quadratics with known optimum."""
