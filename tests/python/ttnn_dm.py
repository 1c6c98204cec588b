"""Data movement through the real ttnn: a device is opened, a buffer written and read back, and a program run on several cores.

The program copies a buffer of pages from DRAM to DRAM in reverse order and turns over every bit on the way, which one kernel a core
does by NoC reads and writes; so every page passes the host's queue, a data-movement core and both memories. Every step is timed and
printed as "name: seconds s"; the exit code is 0 when all data are right.

Started by `cargo xtask ttnn`, which sets the environment that ttnn needs. TT_METAL_SLOW_DISPATCH_MODE=1 lets the host write to the
cores itself instead of through the dispatch kernels.
"""

import random
import statistics
import sys
import time

import ttnn

PAGES = 96
PAGE_BYTES = 2048
CORES = 6
CACHED_RUNS = 5

KERNEL = """
#include "api/dataflow/dataflow_api.h"
#include "api/debug/dprint.h"

// Run-time arguments: address of the input, address of the output, first page, pages of this core, pages in all.
void kernel_main() {
    constexpr uint32_t bytes = %d;
    constexpr auto from_layout = TensorAccessorArgs<0>();
    constexpr auto to_layout = TensorAccessorArgs<from_layout.next_compile_time_args_offset()>();
    const auto from = TensorAccessor(from_layout, get_arg_val<uint32_t>(0), bytes);
    const auto to = TensorAccessor(to_layout, get_arg_val<uint32_t>(1), bytes);
    const uint32_t first = get_arg_val<uint32_t>(2), count = get_arg_val<uint32_t>(3), all = get_arg_val<uint32_t>(4);
    const uint32_t space = get_write_ptr(0);
    // Nothing unless device prints are on.
    DPRINT("pages from {}\\n", first);
    volatile tt_l1_ptr uint32_t* words = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(space);
    for (uint32_t page = first; page != first + count; ++page) {
        noc_async_read(from.get_noc_addr(page), space, bytes);
        noc_async_read_barrier();
        for (uint32_t i = 0; i != bytes / 4; ++i) {
            words[i] = ~words[i];
        }
        noc_async_write(space, to.get_noc_addr(all - 1 - page), bytes);
        noc_async_write_barrier();
    }
}
""" % PAGE_BYTES


def timed(name, work):
    """Runs `work`, prints how long it took, and returns its result."""
    start = time.perf_counter()
    result = work()
    print(f"{name}: {time.perf_counter() - start:.4f} s", flush=True)
    return result


def main():
    device = timed("open", lambda: ttnn.open_device(device_id=0))
    row = PAGE_BYTES // 4

    def upload(values):
        shape = [1, 1, PAGES, row]
        place = ttnn.DRAM_MEMORY_CONFIG
        tensor = ttnn.Tensor(values, shape, ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT, device, place)
        ttnn.synchronize_device(device)
        return tensor

    def download(tensor):
        rows = tensor.cpu().to_list()
        while isinstance(rows[0][0], list):
            rows = rows[0]
        return [value for line in rows for value in line]

    rng = random.Random(7)
    # 31 bits: the host's list of values is signed in some versions of ttnn.
    values = [rng.getrandbits(31) for _ in range(PAGES * row)]
    source = timed("write", lambda: upload(values))
    good = timed("read", lambda: download(source)) == values
    if not good:
        print("the buffer is not what was written")

    target = upload([0] * len(values))
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(CORES - 1, 0))])
    layouts = [ttnn.TensorAccessorArgs(tensor).get_compile_time_args() for tensor in (source, target)]
    arguments = ttnn.RuntimeArgs()
    share = PAGES // CORES
    for core in range(CORES):
        arguments[core][0] = [source.buffer_address(), target.buffer_address(), core * share, share, PAGES]
    space = ttnn.CBFormatDescriptor(buffer_index=0, data_format=ttnn.uint32, page_size=PAGE_BYTES)
    kernel = ttnn.KernelDescriptor(
        kernel_source=KERNEL,
        source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
        core_ranges=cores,
        compile_time_args=layouts[0] + layouts[1],
        runtime_args=arguments,
        config=ttnn.ReaderConfigDescriptor(),
    )
    buffers = [ttnn.CBDescriptor(total_size=PAGE_BYTES, core_ranges=cores, format_descriptors=[space])]
    program = ttnn.ProgramDescriptor(kernels=[kernel], semaphores=[], cbs=buffers)

    def run():
        ttnn.generic_op([source, target], program)
        ttnn.synchronize_device(device)

    timed("first program", run)
    times = []
    for _ in range(CACHED_RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(f"cached program: {statistics.median(times):.4f} s", flush=True)

    pages = [values[i : i + row] for i in range(0, len(values), row)]
    wanted = [~value & 0xFFFFFFFF for page in reversed(pages) for value in page]
    got = [value & 0xFFFFFFFF for value in timed("read of the result", lambda: download(target))]
    if got != wanted:
        good = False
        print(f"{sum(a != b for a, b in zip(got, wanted))} of {len(wanted)} words of the result are wrong")
    timed("close", lambda: ttnn.close_device(device))
    print("all data are right" if good else "wrong data")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
