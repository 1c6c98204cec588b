"""What tt-umd finds, and that a MiB comes back from L1 as it was written."""

import json

import tt_umd

device = tt_umd.TTDevice.create(0)
device.init_tt_device()
harvesting = device.get_chip_info().harvesting_masks
names = [name for name in dir(harvesting) if not name.startswith("_")]
data = bytes(range(251)) * 4178
device.noc_write(1, 2, 0x4000, data)
found = {
    "devices": tt_umd.PCIDevice.enumerate_devices(),
    "board": str(device.get_board_type()),
    "board_id": device.get_board_id(),
    "arch": str(device.get_arch()),
    "translation": device.get_noc_translation_enabled(),
    "harvesting": {name: getattr(harvesting, name) for name in names},
    "same": bytes(device.noc_read(1, 2, 0x4000, len(data))) == data,
    "hung": device.is_noc_hung(tt_umd.NocId.NOC0),
}
print(json.dumps(found))
