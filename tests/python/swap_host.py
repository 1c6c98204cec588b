"""The seeds' Python driver as the host of other worker firmware and other queue kernels.

    swap_host.py DRIVER WORKERS QUEUE PROGRAM [ARGUMENT...]

DRIVER is a checkout of boopdotpng/tenstorrent-python-driver that is set up as its README says. WORKERS is a folder with brisc.elf,
ncrisc.elf and trisc0.elf to trisc2.elf, QUEUE one with prefetch.bin, dispatch.bin and dispatch-s.bin as `tilework link-kernel` makes them
for the addresses below; "-" leaves the driver its own. PROGRAM runs with ARGUMENT unchanged, its kernels compiled against WORKERS.

Started by `cargo xtask swap` under crates/libttsim/python/kmd.py. Queue kernels of Tilework read four words of arguments, which the
driver's own have compiled in; they are stored where the driver stores none.
"""

import runpy
import struct
import sys
from pathlib import Path

PROCESSORS = ["brisc", "ncrisc", "trisc0", "trisc1", "trisc2"]
# Prefetcher (14, 2), dispatcher (14, 3), which is the subordinate's and the completions' tile too, PCIe (19, 24), two tiles.
ARGUMENTS = struct.pack("<4I", 3 << 22 | 14 << 16 | 2 << 6 | 14, 2 << 16 | 24 << 6 | 19, 3 << 22 | 14 << 16 | 3 << 6 | 14, 2 << 6 | 14)


def own_workers(compiler, folder):
    """Gives the driver the worker firmware of a folder."""

    def read(name):
        elf = (folder / f"{name}.elf").read_bytes()
        segments = list(compiler.iter_pt_load(elf))
        return compiler.CompiledFirmware(elf_bytes=elf, segments=segments, scratch_base=compiler._INIT_SCRATCH[name])

    firmware = {name: read(name) for name in PROCESSORS}
    compiler.compile_firmware = lambda profile=False: firmware


def own_queue(compiler, device, folder):
    """Gives the driver the queue kernels of a folder."""
    names = {"prefetch_brisc": "prefetch", "dispatch_brisc": "dispatch", "dispatch_s_ncrisc": "dispatch-s"}
    flat = {key: (folder / f"{name}.bin").read_bytes() for key, name in names.items()}
    kernels = {key: compiler.CompiledKernel(xip=text, xip_text_bytes=len(text)) for key, text in flat.items()}
    compiler.Compiler.compile_cq_kernels = lambda self: kernels
    upload = device.Device._upload_cq_core

    def with_arguments(self, core, image, launch, texts):
        upload(self, core, ARGUMENTS + image[len(ARGUMENTS) :], launch, texts)

    device.Device._upload_cq_core = with_arguments


def main():
    driver, workers, queue, program = sys.argv[1:5]
    sys.path.insert(0, driver)
    import compiler
    import device

    if workers != "-":
        own_workers(compiler, Path(workers))
    if queue != "-":
        own_queue(compiler, device, Path(queue))
    sys.argv = [program, *sys.argv[5:]]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
