import torch
from fedlab.contrib.algorithm.basic_server import AsyncServerHandler

server = AsyncServerHandler(torch.nn.Linear(1, 1), global_round=10)
server.setup_optim(alpha=1.0, strategy="hinge", a=10, b=4)
server.round = 6
print(f"{server.adapt_alpha(0):.4f}")  # the paper: 1/(10 (6 − 4) + 1) = 1/21
