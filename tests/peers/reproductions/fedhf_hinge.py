from fedhf.algor.async_.fedasync.fedasync_aggregator import FedAsyncAggregator

server = object.__new__(FedAsyncAggregator)
server.stragegy, server.alpha, server.a, server.b = "hinge", 1.0, 10, 4
print(f"{server._get_alpha(6):.4f}")  # the paper: 1/(10 (6 − 4) + 1) = 1/21
