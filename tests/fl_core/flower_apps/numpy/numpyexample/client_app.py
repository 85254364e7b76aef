"""numpyexample: a Flower / NumPy app that counts its jobs in the state of its context."""

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from numpyexample.task import D, load_data

app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Take a few steps with momentum, whose velocity outlives the job."""
    (w,) = msg.content["arrays"].to_numpy_ndarrays()
    x, y = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    state = context.state
    if "velocity" not in state:
        state["velocity"] = ArrayRecord([np.zeros(D)])
        state["counts"] = ConfigRecord({"jobs": 0})
    (velocity,) = state["velocity"].to_numpy_ndarrays()
    w = w.copy()
    for _ in range(context.run_config["local-steps"]):
        batch = np.random.choice(len(x), 5, replace=False)  # noqa: NPY002
        velocity = 0.5 * velocity + x[batch].T @ (x[batch] @ w - y[batch]) / len(batch)
        w -= msg.content["config"]["lr"] * velocity
    state["velocity"] = ArrayRecord([velocity])
    state["counts"]["jobs"] += 1
    metrics = {"num-examples": len(x), "jobs": state["counts"]["jobs"]}
    content = RecordDict({"arrays": ArrayRecord([w]), "metrics": MetricRecord(metrics)})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    """Evaluate the model on local data."""
    (w,) = msg.content["arrays"].to_numpy_ndarrays()
    x, y = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    metrics = {"num-examples": len(x), "loss": float(np.mean((x @ w - y) ** 2))}
    return Message(content=RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
