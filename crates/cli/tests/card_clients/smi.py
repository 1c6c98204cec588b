"""The snapshot of `tt-smi -s`, without what is the host's or counts seconds."""

import json
import pathlib
import subprocess
import sys

program = pathlib.Path(sys.executable).with_name("tt-smi")
text = subprocess.run([program, "-s"], check=True, capture_output=True, text=True).stdout
devices = json.loads(text[text.index("{") :])["device_info"]
for device in devices:
    del device["smbus_telem"]["TIMER_HEARTBEAT"]
    device["telemetry"].pop("heartbeat", None)
print(json.dumps(devices))
