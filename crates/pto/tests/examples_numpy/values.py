#!/usr/bin/env python3
"""What NumPy makes of the examples' inputs: the tables of ../examples_numpy.rs (numpy 2.4.6, printed to standard output).

Shapes and seeds are those of pto-isa's tests of TPUSH and TPOP (tpushpop_cv and its relatives); the draws are stated here,
so that Rust can repeat them: RandomState(seed), in the order of the code below.
"""

import numpy as np

LOW, HIGH = -5, 5


def digest(x):
    """Two sums that see every element and its place."""
    x = x.astype(np.float64).ravel()
    return f"{float(x.sum())!r}, {float((x * np.arange(1, x.size + 1)).sum())!r}"


def bias(seed, m, k, n):
    r = np.random.RandomState(seed)
    a, b, c = r.randint(LOW, HIGH, (m, k)), r.randint(LOW, HIGH, (k, n)), r.randint(LOW, HIGH, (n,))
    return a @ b + c


def dequant(seed, m, k, n, bits):
    r = np.random.RandomState(seed)
    half = 1 << (bits - 1)
    a, q = r.randint(LOW, HIGH, (m, k)), r.randint(-half, half, (k, n))
    scale = r.uniform(0.001, 0.01, (n,)).astype(np.float32)
    return a.astype(np.float64) @ (q.astype(np.float32) * scale).astype(np.float64)


def round_trip(seed, m, k, n):
    r = np.random.RandomState(seed)
    draw = lambda *shape: r.uniform(-1, 1, shape).astype(np.float32)
    a, b, d, f = draw(m, k), draw(m, k), draw(k, n), draw(m, n)
    return (a + b).astype(np.float64) @ d.astype(np.float64) - f


def main():
    print("// first draws:", np.random.RandomState(19).randint(LOW, HIGH, 8).tolist(), np.random.RandomState(42).uniform(0, 1, 2).tolist())
    print("BIAS")
    for seed, m, k, n in [
        (19, 16, 32, 32), (19, 32, 32, 32), (19, 64, 32, 32), (19, 5, 32, 128), (19, 5, 32, 127),
        (42, 16, 32, 32), (42, 32, 32, 64), (42, 640, 32, 32), (19, 128, 128, 128),
    ]:
        print(f"    ({seed}, [{m}, {k}, {n}], [{digest(bias(seed, m, k, n))}]),")
    print("DEQUANT")
    for m, k, n, bits in [(16, 64, 32, 8), (16, 128, 32, 8), (16, 256, 32, 8), (16, 64, 64, 16), (16, 256, 64, 16), (64, 64, 64, 8)]:
        print(f"    ([{m}, {k}, {n}], {bits}, [{digest(dequant(19, m, k, n, bits))}]),")
    print("ROUND TRIP")
    print(f"    [{digest(round_trip(19, 128, 64, 128))}]")


main()
