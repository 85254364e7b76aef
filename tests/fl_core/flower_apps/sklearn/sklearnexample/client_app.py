"""sklearnexample: a Flower / scikit-learn app."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from sklearn.metrics import log_loss

from sklearnexample.task import CLASSES, create_model, get_model_params, load_data, set_model_params

app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Train the model on local data."""
    model = create_model(context.run_config["penalty"], msg.content["config"]["lr"])
    set_model_params(model, msg.content["arrays"].to_numpy_ndarrays())
    x, _, y, _ = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    for _ in range(context.run_config["local-epochs"]):
        model.partial_fit(x, y, classes=range(CLASSES))
    loss = log_loss(y, model.predict_proba(x), labels=range(CLASSES))
    metrics = {"num-examples": len(x), "train_logloss": loss}
    content = RecordDict({"arrays": ArrayRecord(get_model_params(model)), "metrics": MetricRecord(metrics)})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    """Evaluate the model on local data."""
    model = create_model(context.run_config["penalty"], 0.1)
    set_model_params(model, msg.content["arrays"].to_numpy_ndarrays())
    _, x, _, y = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    loss = log_loss(y, model.predict_proba(x), labels=range(CLASSES))
    metrics = {"num-examples": len(x), "test_logloss": loss, "accuracy": model.score(x, y)}
    return Message(content=RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
