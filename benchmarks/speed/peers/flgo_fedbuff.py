"""FedBuff in FLGo: 100 clients at work, logistic regression, buffers of 10.

python flgo_fedbuff.py ROUNDS STEPS
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from types import SimpleNamespace
from typing import Any

os.environ["TQDM_DISABLE"] = "1"  # its bars cost more than its training

import flgo
import torch
from flgo.algorithm import fedbuff
from flgo.experiment.logger import BasicLogger

BUFFER = 10


class Silent(BasicLogger):  # type: ignore[misc]
    """Neither evaluates nor writes."""

    def log_once(self, *_: Any, **__: Any) -> None:
        """At the start, after each round, at the end."""


class Client(fedbuff.Client):  # type: ignore[misc]
    """Counts updates."""

    updates = 0

    def reply(self, package: Any) -> Any:
        """One update."""
        Client.updates += 1
        return super().reply(package)


def main(rounds: int, steps: int) -> None:
    """Write how many updates were made in how many seconds of processor time."""
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).step()  # imports what only the first step does
    config = Path(__file__).resolve().with_name("flgo_data.py")
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        benchmark = flgo.gen_benchmark_from_file(
            "noise", str(config), data_type="general", task_type="general"
        )
        partitioner = {"name": "IIDPartitioner", "para": {"num_clients": 100}}
        flgo.gen_task({"benchmark": benchmark, "partitioner": partitioner}, "task")
        option = {
            "num_rounds": rounds,
            "num_steps": steps,
            "batch_size": 64,
            "learning_rate": 0.01,
            "sample": "uniform",
            "proportion": 1.0,
            "train_holdout": 0.0,
            "algo_para": [BUFFER / 100, 1.0],
            "responsiveness": "UNI-5-15",
            "eval_interval": -1,
            "no_log_console": True,
            "parallel_type": "",
        }
        algorithm = SimpleNamespace(__name__="fedbuff", Server=fedbuff.Server, Client=Client)
        runner = flgo.init("task", algorithm, option, Logger=Silent)
        began = process_time()
        runner.run()
        seconds = process_time() - began
    found = {"package": f"flgo {version('flgo')}", "updates": Client.updates, "seconds": seconds}
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
