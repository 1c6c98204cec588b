"""Cycles of data movement on the simulated card, as tt-metal's data movement tests measure them on cards.

    python tests/python/ttnn_noc.py

A kernel of core (0, 0) starts transactions of one size one after the other, waits for all of them, and takes the time by the tile's
clock. A line of output is a pattern: for each size the cycles of one transaction, and of each further one in a long row, which is
the difference of 256 and 64 of them. docs/timing.md has them beside those of cards, docs/ttnn.md what ttnn needs to run.
"""
import ttnn

KERNEL = """
#include "api/dataflow/dataflow_api.h"

constexpr uint32_t mode = get_compile_time_arg_val(0), count = get_compile_time_arg_val(1), bytes = get_compile_time_arg_val(2);
constexpr uint32_t x0 = get_compile_time_arg_val(3), y0 = get_compile_time_arg_val(4);
constexpr uint32_t x1 = get_compile_time_arg_val(5), y1 = get_compile_time_arg_val(6);
constexpr uint32_t receivers = get_compile_time_arg_val(7), linked = get_compile_time_arg_val(8);
constexpr auto result_layout = TensorAccessorArgs<9>();

inline uint32_t now() { return *reinterpret_cast<volatile uint32_t*>(RISCV_DEBUG_REG_WALL_CLOCK_L); }

void kernel_main() {
    const auto result = TensorAccessor(result_layout, get_arg_val<uint32_t>(0), 64);
    const uint32_t here = get_write_ptr(0), there = here + 65536, line = get_write_ptr(1);
    const uint32_t began = now();
    if constexpr (mode == 0) {
        for (uint32_t i = 0; i != count; ++i) noc_async_write(here, get_noc_addr(x0, y0, there), bytes);
        noc_async_write_barrier();
    } else if constexpr (mode == 1) {
        for (uint32_t i = 0; i != count; ++i) noc_async_read(get_noc_addr(x0, y0, there), here, bytes);
        noc_async_read_barrier();
    } else if constexpr (mode == 2) {
        const uint64_t to = get_noc_multicast_addr(x0, y0, x1, y1, there);
        for (uint32_t i = 1; i != count; ++i) noc_async_write_multicast(here, to, bytes, receivers, linked);
        noc_async_write_multicast(here, to, bytes, receivers, false);
        noc_async_write_barrier();
    } else if constexpr (mode == 3) {
        const uint64_t from = get_noc_addr_from_bank_id<true>(0, get_arg_val<uint32_t>(1));
        for (uint32_t i = 0; i != count; ++i) noc_async_read(from, here, bytes);
        noc_async_read_barrier();
    } else {
        const uint64_t to = get_noc_addr_from_bank_id<true>(0, get_arg_val<uint32_t>(1));
        for (uint32_t i = 0; i != count; ++i) noc_async_write(here, to, bytes);
        noc_async_write_barrier();
    }
    *reinterpret_cast<volatile tt_l1_ptr uint32_t*>(line) = now() - began;
    noc_async_write(line, result.get_noc_addr(0), 64);
    noc_async_write_barrier();
}
"""
WRITE, READ, MULTICAST, READ_DRAM, WRITE_DRAM = range(5)
SIZES = (64, 1024, 2048, 16384)
FEW, MANY = 64, 256


def main():
    device = ttnn.open_device(device_id=0)
    device.enable_program_cache()

    def tensor(rows, columns):
        place = (ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG)
        return ttnn.Tensor([0] * (rows * columns), [1, 1, rows, columns], *place)

    space, result = tensor(64, 4096), tensor(1, 16)
    layout = ttnn.TensorAccessorArgs(result).get_compile_time_args()
    core = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))])

    def at(x, y):
        core = device.worker_core_from_logical_core(ttnn.CoreCoord(x, y))
        return [core.x, core.y]

    def cycles(mode, where, count, size):
        arguments = ttnn.RuntimeArgs()
        arguments[0][0] = [result.buffer_address(), space.buffer_address()]
        kernel = ttnn.KernelDescriptor(
            kernel_source=KERNEL,
            source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
            core_ranges=core,
            compile_time_args=[mode, count, size] + where + layout,
            runtime_args=arguments,
            config=ttnn.DataMovementConfigDescriptor(processor=ttnn.DataMovementProcessor.RISCV_0, noc=ttnn.NOC.NOC_0),
        )
        buffers = []
        for index, total in enumerate((1 << 17, 64)):
            form = ttnn.CBFormatDescriptor(buffer_index=index, data_format=ttnn.uint32, page_size=total)
            buffers.append(ttnn.CBDescriptor(total_size=total, core_ranges=core, format_descriptors=[form]))
        program = ttnn.ProgramDescriptor(kernels=[kernel], semaphores=[], cbs=buffers)
        ttnn.generic_op([space, result], program)
        ttnn.synchronize_device(device)
        took = result.cpu().to_list()
        while isinstance(took, list):
            took = took[0]
        return took

    def row(name, mode, where):
        cells = []
        for size in SIZES:
            one, few, many = (cycles(mode, where, count, size) for count in (1, FEW, MANY))
            cells.append(f"{size} bytes {one}, {(many - few) / (MANY - FEW):.1f}")
        print(f"{name}: {'; '.join(cells)}", flush=True)

    def to(x, y):
        return at(x, y) + [0, 0, 1, 0]

    row("write to (1, 1)", WRITE, to(1, 1))
    row("read from (1, 1)", READ, to(1, 1))
    row("write to itself", WRITE, to(0, 0))
    for columns, rows in ((2, 2), (5, 5), (11, 10)):
        for linked in (0, 1):
            where = at(0, 0) + at(columns - 1, rows - 1) + [columns * rows - 1, linked]
            row(f"multicast to {columns} x {rows}{', linked' if linked else ''}", MULTICAST, where)
    row("read from DRAM", READ_DRAM, to(0, 0))
    row("write to DRAM", WRITE_DRAM, to(0, 0))
    ttnn.close_device(device)


if __name__ == "__main__":
    main()
