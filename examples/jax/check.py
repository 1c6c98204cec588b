"""Runs layer.py on the card, and checks by the card's own counts that its data went there.

    python examples/jax/check.py [TILEWORK]

Equal results alone prove nothing: JAX keeps arrays on the host, and could compute there. So the
bytes of host memory that the card has read and written are compared with those of a run that only
lists the devices: arguments and result must be among the difference.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
TILEWORK = sys.argv[1] if len(sys.argv) > 1 else "tilework"
ARGUMENTS, RESULT = 4 * (32 * 64 + 4 * 64 * 64 + 2 * 64 * 128), 4 * 32 * 64


def counts(*program):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "counts.json"
        command = [TILEWORK, "card", "--board", "p100", "--counts", file, "--", sys.executable, *program]
        subprocess.run(command, check=True)
        return json.loads(file.read_text())


idle = counts("-c", "import jax; print(jax.devices())")
layer = counts(HERE / "layer.py")
for name, least in [("host_memory_bytes_read_by_card", ARGUMENTS), ("host_memory_bytes_written_by_card", RESULT)]:
    print(f"{name}: {idle[name]} at the start, {layer[name]} with the layer")
    assert layer[name] - idle[name] >= least, f"{least} bytes were expected"
print("the layer's data went over the card")
