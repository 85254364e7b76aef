"""A recorded run on Flower: `description.json` is the description of the run in MLflow."""

from pathlib import Path

from asyncfl import Experiment
from asyncfl.flower import client_app, server_app

experiment = Experiment.model_validate_json(Path(__file__).with_name("description.json").read_text())
server = server_app(experiment)
client = client_app(experiment)
