from fedml.simulation.mpi.async_fedavg.AsyncFedAVGAggregator import AsyncFedAVGAggregator
from fedml.simulation.mpi.async_fedavg.AsyncFedAvgServerManager import AsyncFedAVGServerManager

manager = object.__new__(AsyncFedAVGServerManager)  # without MPI
manager.aggregator = object.__new__(AsyncFedAVGAggregator)
try:
    manager.handle_message_receive_model_from_client({"sender": 1})
except AttributeError as error:
    print(error)
