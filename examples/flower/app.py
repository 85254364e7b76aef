"""The run that won, on Flower: `description.json` is what MLflow holds of it."""

from pathlib import Path

from asyncfl import Experiment
from asyncfl.flower import client_app, server_app

won = Experiment.model_validate_json(Path(__file__).with_name("description.json").read_text())
server = server_app(won)
client = client_app(won)
