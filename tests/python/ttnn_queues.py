"""Hardware queues, traces and events through the real ttnn, on one queue or two.

Inputs go to the card on the last queue while the first one runs operations; events order the two. A chain of operations is captured as a
trace and replayed on new inputs, so that what a replay reads was written by the other queue a moment before. Every step is timed and
printed as "name: seconds s"; the exit code is 0 when all results are right.

Started by `cargo xtask ttnn`, which sets the environment that ttnn needs. QUEUES says how many hardware queues the card is opened with.
"""

import os
import random
import sys
import time

import ttnn

QUEUES = int(os.environ.get("QUEUES", "1"))
SHAPE = [1, 1, 64, 64]
REPLAYS = 6
TRACE_BYTES = 1 << 20


def timed(name, work):
    """Runs `work`, prints how long it took, and returns its result."""
    start = time.perf_counter()
    result = work()
    print(f"{name}: {time.perf_counter() - start:.4f} s", flush=True)
    return result


def flat(rows):
    """The numbers of nested lists, in order."""
    return [rows] if isinstance(rows, (int, float)) else [value for row in rows for value in flat(row)]


def main():
    device = timed(
        "open",
        lambda: ttnn.open_device(device_id=0, num_command_queues=QUEUES, trace_region_size=TRACE_BYTES),
    )
    compute, transfer = 0, QUEUES - 1
    rng = random.Random(11)
    count = SHAPE[2] * SHAPE[3]

    def host(values):
        return ttnn.Tensor(values, SHAPE, ttnn.float32, ttnn.TILE_LAYOUT)

    def numbers():
        # Small integers: the results are exact.
        return [float(rng.randrange(-8, 9)) for _ in range(count)]

    first = numbers()
    place = ttnn.DRAM_MEMORY_CONFIG
    source = ttnn.Tensor(first, SHAPE, ttnn.float32, ttnn.TILE_LAYOUT, device, place)

    def chain():
        # 3 * (x + x) + x
        doubled = ttnn.add(source, source)
        return ttnn.add(ttnn.multiply(doubled, 3.0), source)

    good = True

    def check(what, tensor, values):
        nonlocal good
        got = flat(tensor.cpu().to_list())
        wrong = sum(a != 7.0 * b for a, b in zip(got, values)) + abs(len(got) - len(values))
        if wrong:
            good = False
            print(f"{what}: {wrong} of {len(values)} numbers are wrong")

    result = timed("compile", chain)
    ttnn.synchronize_device(device)
    check("first run", result, first)

    def capture():
        trace = ttnn.begin_trace_capture(device, cq_id=compute)
        output = chain()
        ttnn.end_trace_capture(device, trace, cq_id=compute)
        ttnn.synchronize_device(device)
        return trace, output

    trace, output = timed("capture", capture)
    inputs = [numbers() for _ in range(REPLAYS)]
    hosts = [host(values) for values in inputs]

    def replay(values, tensor):
        done = ttnn.record_event(device, compute)
        # The trace still reads what the copy replaces.
        ttnn.wait_for_event(transfer, done)
        ttnn.copy_host_to_device_tensor(tensor, source, cq_id=transfer)
        written = ttnn.record_event(device, transfer)
        ttnn.wait_for_event(compute, written)
        ttnn.execute_trace(device, trace, cq_id=compute, blocking=False)
        ttnn.synchronize_device(device)
        check("replay", output, values)

    timed(f"{REPLAYS} replays", lambda: [replay(*pair) for pair in zip(inputs, hosts)])
    ttnn.release_trace(device, trace)
    timed("close", lambda: ttnn.close_device(device))
    print("all data are right" if good else "wrong data")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
