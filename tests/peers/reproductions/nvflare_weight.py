from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.edge.assessors.buff_model_manager import BuffModelManager
from nvflare.edge.mud import ModelUpdate

context = FLContext()
manager = BuffModelManager(num_updates_for_model=1, staleness_weight=True)
manager.initialize_model(DXO(DataKind.WEIGHTS, {"w": [0.0]}), context)
manager.generate_new_model(context)  # version 1
for version in (1, 1, 3):  # fresh, one version stale, fresh
    before = manager.current_model.data["w"][0]
    message = DXO(DataKind.WEIGHT_DIFF, data={"dict": {"w": [1.0]}, "count": 1}).to_shareable()
    manager.process_updates({version: ModelUpdate(version, message, {"a": 1.0})}, context)
    print(f"{manager.current_model.data['w'][0] - before:.3f}")  # the paper: 1, 0.707, 1
