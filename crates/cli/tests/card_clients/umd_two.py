"""What tt-umd finds in a machine with two cards, and that each has its own memory."""

import json

import tt_umd

numbers = tt_umd.PCIDevice.enumerate_devices()
devices = [tt_umd.TTDevice.create(number) for number in numbers]
for number, device in zip(numbers, devices):
    device.init_tt_device()
    device.noc_write(1, 2, 0x4000, bytes([number + 1] * 64))
found = {
    "devices": numbers,
    "boards": [str(device.get_board_type()) for device in devices],
    "board_ids": [device.get_board_id() for device in devices],
    "read": [list(bytes(device.noc_read(1, 2, 0x4000, 4))) for device in devices],
}
print(json.dumps(found))
