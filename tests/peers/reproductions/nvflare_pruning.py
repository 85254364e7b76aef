from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.edge.assessors.buff_model_manager import BuffModelManager
from nvflare.edge.mud import ModelUpdate

context = FLContext()
manager = BuffModelManager(num_updates_for_model=3)
manager.initialize_model(DXO(DataKind.WEIGHTS, {"w": [0.0]}), context)
manager.generate_new_model(context)  # version 1


def update(device: str) -> dict[int, ModelUpdate]:
    data = {"dict": {"w": [1.0]}, "count": 1}
    message = DXO(DataKind.WEIGHT_DIFF, data=data).to_shareable()
    return {1: ModelUpdate(1, message, {device: 1.0})}  # the device worked on version 1


for device in "abc":
    manager.process_updates(update(device), context)  # the third makes version 2
manager.process_updates(update("d"), context)  # late, for version 3
manager.prune_model_versions({2}, context)  # no device works on version 1 any more
print(manager.num_updates_counter, [version for version, held in manager.updates.items() if held])
