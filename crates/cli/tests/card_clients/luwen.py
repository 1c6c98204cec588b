"""What pyluwen finds: the chips, and all of their telemetry but what counts seconds."""

import json

import pyluwen

chips = []
for chip in pyluwen.detect_chips():
    telemetry = chip.as_bh().get_telemetry()
    names = [name for name in dir(telemetry) if not name.startswith("_") and name != "timer_heartbeat"]
    values = {name: getattr(telemetry, name) for name in names}
    chips.append({name: value for name, value in values.items() if not callable(value)})
print(json.dumps(chips))
