"""Has the seeds' Python driver compile its parts as ELF files.

    swap_build.py DRIVER WORKERS SOURCES OUT

DRIVER is a checkout of boopdotpng/tenstorrent-python-driver that is set up as its README says. All kernels are linked with the worker
firmware in WORKERS, or with the driver's own for "-". OUT gets workers/ (the firmware), queue/ (prefetcher, dispatcher and subordinate) and
kernels/ (reader.cpp on NCRISC and writer.cpp on BRISC, of SOURCES).

Started by `cargo xtask swap`.
"""

import sys
from pathlib import Path

from swap_host import PROCESSORS, own_workers

QUEUE = {
    "cq_prefetch_brisc": ("cq_prefetch.cpp", "brisc", 0),
    "cq_dispatch_brisc": ("cq_dispatch.cpp", "brisc", 1),
    "cq_dispatch_subordinate_ncrisc": ("cq_dispatch_subordinate.cpp", "ncrisc", 1),
}


def main():
    driver, workers, sources, out = (Path(word) if word != "-" else None for word in sys.argv[1:5])
    sys.path.insert(0, str(driver))
    import compiler

    if workers:
        own_workers(compiler, workers)
    linked = []
    pack = compiler.pack_xip_elf
    compiler.pack_xip_elf = lambda elf, **options: linked.append(elf) or pack(elf, **options)
    # What is cached has no ELF file any more.
    compiler._cache_load = lambda key: None
    compiler._cache_store = lambda key, data: None
    built = compiler.Compiler()
    folders = {name: out / name for name in ("workers", "queue", "kernels")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    for name in PROCESSORS:
        (folders["workers"] / f"{name}.elf").write_bytes(built._fw[name].elf_bytes)
    for name, (source, target, noc) in QUEUE.items():
        text = (compiler._CQ_SRC_DIR / source).read_text()
        built._compile_dataflow(text, target, noc_index=noc, extra_includes=compiler._CQ_INC, profiler=False)
        (folders["queue"] / f"{name}.elf").write_bytes(linked[-1])
    for name, target in [("reader", "ncrisc"), ("writer", "brisc")]:
        built.compile_dataflow((sources / f"{name}.cpp").read_text(), target)
        (folders["kernels"] / f"{name}.elf").write_bytes(linked[-1])


if __name__ == "__main__":
    main()
