"""Updates a second over those of a hand-written loop, beside the figures of an earlier version (560b552).

Run as `python tests/speed/yardstick_ratios.py [UPDATES]`: logistic regression, mini-batches of 64, 100 jobs
in flight, one thread, processor time; all take turns in one process.
"""

import sys
from statistics import median

import torch
from workloads import BATCH, CLIENTS, Noise, endless

from benchmarks import speed as yardstick
from benchmarks.runs.run_jobs import EXECUTIONS
from benchmarks.speed import rate, simulations

TURNS = 5
LOCAL = {"local_lr": 1e-4, "local": {"name": "sgd", "batch": BATCH}}
STRATEGIES = {
    "FedBuff": {"name": "fedbuff", "concurrency": CLIENTS, **LOCAL},
    "ASGD": {"name": "asgd", **LOCAL},
}
BEFORE = {"FedBuff": (0.92, 1.79, 1.63), "ASGD": (0.98, 1.80, 1.41)}  # at 560b552

if __name__ == "__main__":
    torch.set_num_threads(1)
    updates = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    problem = Noise(clients=CLIENTS)
    data = problem.load()
    inputs = (data.x_train.float() - data.mean[0]) / data.std[0]
    network = problem.model.build(problem.shape, problem.classes)
    loop = yardstick.loop(network, inputs, data.y_train, clients=CLIENTS, batch=BATCH)
    sys.stdout.write("            one by one, auto, 16 together; at 560b552\n")
    for name, strategy in STRATEGIES.items():
        runs = [endless(problem, strategy, seed) for seed in range(16)]
        arms = [
            simulations(runs[:1], EXECUTIONS["one_by_one"]()),
            simulations(runs[:1], EXECUTIONS["auto"]()),
            simulations(runs, EXECUTIONS["auto"]()),
        ]
        turns = [[rate(compute, updates) for compute in (loop, *arms)] for _ in range(TURNS)]
        ratios = [median(turn[arm] / turn[0] for turn in turns) for arm in (1, 2, 3)]
        now, before = ("  ".join(f"{ratio:.2f}" for ratio in row) for row in (ratios, BEFORE[name]))
        sys.stdout.write(f"{name:10}  {now};  {before}\n")
        sys.stdout.flush()
