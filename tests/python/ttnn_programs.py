"""Cycles of stock ttnn programs on the simulated card, by the card's own clock.

Each operation is captured as traces of a few and of many repetitions; the difference of their replays, divided by the difference of
their counts, is what one more operation takes: its launch by the dispatcher and its programs, without the host. The clock is the card's
counter of reference cycles, read through the library that ttnn has loaded. Seconds are those of the host for an operation from the program
cache, with the wait for its end: the median of a few.

Prints a line of JSON for each operation: {"name", "cycles", "seconds"}. Started by `cargo xtask ttnn --programs`, which sets the
environment that ttnn needs.
"""

import ctypes
import json
import os
import random
import statistics
import time

import ttnn

FEW, MANY = 4, 20
TIMED = 5
TRACE_BYTES = 1 << 24
# Of the ARC's reset unit in BAR0 (tt-umd, blackhole_implementation.hpp); 50 MHz, the AI clock has 1350.
REFCLK_LOW, REFCLK_HIGH = 0x1FF300E0, 0x1FF300E4
CYCLES_PER_TICK = 27
BAR0 = 0x10


def clock():
    """A function that reads the card's counter, in cycles of the AI clock."""
    library = ctypes.CDLL(os.environ["TT_METAL_SIMULATOR"])
    read, config = library.libttsim_pci_mem_rd_bytes, library.libttsim_pci_config_rd32
    read.argtypes, read.restype = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32], None
    config.argtypes, config.restype = [ctypes.c_uint32, ctypes.c_uint32], ctypes.c_uint32
    base = (config(0, BAR0) & ~0xF) | config(0, BAR0 + 4) << 32

    def word(address):
        value = ctypes.c_uint32()
        read(base + address, ctypes.byref(value), 4)
        return value.value

    return lambda: (word(REFCLK_LOW) | word(REFCLK_HIGH) << 32) * CYCLES_PER_TICK


def operations(device):
    """Name and function of each operation; operands are in DRAM, interleaved tiles of bfloat16."""
    rng = random.Random(7)
    exact = ttnn.init_device_compute_kernel_config(
        device.arch(),
        math_fidelity=ttnn.MathFidelity.HiFi4,
        math_approx_mode=False,
        fp32_dest_acc_en=True,
        packer_l1_acc=True,
    )

    def tensor(*shape, layout=ttnn.TILE_LAYOUT, where=device):
        count = 1
        for length in shape:
            count *= length
        values = [rng.uniform(-1, 1) for _ in range(count)]
        place = [where, ttnn.DRAM_MEMORY_CONFIG] if where else []
        return ttnn.Tensor(values, list(shape), ttnn.bfloat16, layout, *place)

    a, b = tensor(1, 1, 512, 512), tensor(1, 1, 512, 512)
    yield "matmul", lambda: ttnn.matmul(a, b, compute_kernel_config=exact)
    x, y = tensor(1, 1, 320, 384), tensor(1, 1, 320, 384)
    yield "add", lambda: ttnn.add(x, y)
    yield "softmax", lambda: ttnn.softmax(x, dim=3, compute_kernel_config=exact, numeric_stable=True)
    yield "layer_norm", lambda: ttnn.layer_norm(x, epsilon=1e-5, compute_kernel_config=exact)
    yield "rms_norm", lambda: ttnn.rms_norm(x, epsilon=1e-5, compute_kernel_config=exact)
    yield "conv3x3", convolution(device, exact, tensor)
    q, k, v = (tensor(1, 4, 128, 64) for _ in range(3))
    yield "attention", lambda: ttnn.transformer.scaled_dot_product_attention(
        q, k, v, is_causal=True, compute_kernel_config=exact
    )


def convolution(device, exact, tensor):
    """3 x 3 over 32 x 32 with 32 channels to 32."""
    image = tensor(1, 1, 32 * 32, 32)
    weights = tensor(32, 32, 3, 3, layout=ttnn.ROW_MAJOR_LAYOUT, where=None)

    def run(weights):
        return ttnn.conv2d(
            input_tensor=image,
            weight_tensor=weights,
            device=device,
            in_channels=32,
            out_channels=32,
            batch_size=1,
            input_height=32,
            input_width=32,
            kernel_size=(3, 3),
            stride=(1, 1),
            padding=(1, 1),
            dtype=ttnn.bfloat16,
            compute_config=exact,
            memory_config=ttnn.DRAM_MEMORY_CONFIG,
            return_weights_and_bias=True,
        )

    _, (prepared, _) = run(weights)
    return lambda: run(prepared)[0]


def cycles(device, now, count, operation):
    """Cycles of a replayed trace of `count` operations."""
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    for _ in range(count):
        operation()
    ttnn.end_trace_capture(device, trace, cq_id=0)
    took = 0
    for _ in range(2):  # the first replay may find what others have left
        ttnn.synchronize_device(device)
        began = now()
        ttnn.execute_trace(device, trace, cq_id=0, blocking=False)
        ttnn.synchronize_device(device)
        took = now() - began
    ttnn.release_trace(device, trace)
    return took


def seconds(device, operation):
    """Host seconds of an operation from the program cache."""
    times = []
    for _ in range(TIMED):
        began = time.perf_counter()
        operation()
        ttnn.synchronize_device(device)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main():
    device = ttnn.open_device(device_id=0, l1_small_size=1 << 15, trace_region_size=TRACE_BYTES)
    device.enable_program_cache()
    now = clock()
    only = [name for name in os.environ.get("ONLY", "").split(",") if name]
    for name, operation in operations(device):
        if only and name not in only:
            continue
        operation()
        ttnn.synchronize_device(device)
        host = seconds(device, operation)
        few, many = (cycles(device, now, count, operation) for count in (FEW, MANY))
        row = {"name": name, "cycles": (many - few) // (MANY - FEW), "seconds": round(host, 4)}
        print(json.dumps(row), flush=True)
    ttnn.close_device(device)


if __name__ == "__main__":
    main()
