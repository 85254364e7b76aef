"""sklearnexample: a Flower / scikit-learn app."""

from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from sklearnexample.task import initial_arrays

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the server."""
    FedAvg().start(
        grid=grid,
        initial_arrays=ArrayRecord(initial_arrays()),
        train_config=ConfigRecord({"lr": 0.1}),
        num_rounds=context.run_config["num-server-rounds"],
    )
