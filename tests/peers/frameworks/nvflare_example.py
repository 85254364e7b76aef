"""NVIDIA FLARE: its assessor with its managers of models and devices, and devices that report in turn.

A job of its examples needs a tree of processes (server, relays, clients), and devices in real time.
"""

import logging
import random
from typing import Any

import numpy as np
import protocol
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.edge.assessors.buff_device_manager import BuffDeviceManager
from nvflare.edge.assessors.buff_model_manager import BuffModelManager
from nvflare.edge.assessors.model_update import ModelUpdateAssessor
from nvflare.edge.mud import Device, ModelUpdate, StateUpdateReport

logging.disable(logging.CRITICAL)


def example(options: dict[str, Any]) -> tuple[protocol.Array, list[int]]:
    """Run FedBuff for 40 updates of 20 devices, of which four are selected; the oldest version reports."""
    del options
    random.seed(0)
    context = FLContext()
    assessor = ModelUpdateAssessor("persistor", "models", "devices", max_model_version=100)
    assessor.model_manager = models = BuffModelManager(num_updates_for_model=3, global_lr=0.5)
    assessor.device_manager = devices = BuffDeviceManager(device_selection_size=4)
    models.initialize_model(DXO(DataKind.WEIGHTS, {"w": np.zeros(2)}), context)
    centres = {f"device-{number}": np.array([np.cos(number), np.sin(number)]) for number in range(20)}
    available = {name: Device(name, "client", 0.0) for name in centres}
    report = StateUpdateReport(0, 0, None, available)
    assessor.process_child_update(report.to_shareable(), context)
    versions, arrivals = {}, []
    for _ in range(40):
        versions[models.current_model_version] = models.current_model.data["w"].copy()
        name, version = min(devices.current_selection.items(), key=lambda item: (item[1], item[0]))
        delta = 0.5 * (centres[name] - versions[version])
        update = DXO(DataKind.WEIGHT_DIFF, data={"dict": {"w": delta}, "count": 1}).to_shareable()
        message = {version: ModelUpdate(version, update, {name: 1.0})}
        report = StateUpdateReport(models.current_model_version, 0, message, None)
        assessor.process_child_update(report.to_shareable(), context)
        arrivals.append(int(name.removeprefix("device-")))
    return models.current_model.data["w"], arrivals


protocol.run_example(example)
