import random
from types import SimpleNamespace

from nvflare.apis.fl_context import FLContext
from nvflare.edge.assessors.buff_device_manager import BuffDeviceManager

random.seed(0)
manager = BuffDeviceManager(device_selection_size=5)
device = SimpleNamespace(to_dict=dict)
manager.update_available_devices({f"device {number}": device for number in range(20)}, FLContext())
manager.fill_selection(1, FLContext())
print(sorted(manager.current_selection))
