"""Stock ttnn operations with random shapes, types, layouts, places and options, against numpy, on one simulated card.

    python tests/python/ttnn_random.py FOLDER [--digests FILE] [SEED] [COUNT] [NUMBER...]

FOLDER has `ttnn_ops.py`, whose draws and references are taken. Case NUMBER of a SEED is always the same, alone or after
others. What ttnn refuses is counted, not judged. Limits are those of the types and fidelities: a wrong address, mask or
stride is far beyond them. FILE gets a line for each case with a digest of the result's numbers, to compare libraries
bit by bit: the same cases on another one, and `diff`. The exit code is the number of cases that are wrong; what a wrong
one means has to be looked at, for instance on another simulator: operations of ttnn have errors of their own, above all
in the padding of blocks.
"""
import argparse
import hashlib
import math
import os
import random
import sys

import numpy as np

BF16, F32, B8 = "bfloat16", "float32", "bfloat8_b"
TILE, ROWS = "TILE", "ROW_MAJOR"
# Largest error by type, of the largest value.
LIMIT = {BF16: 0.03, F32: 0.01, B8: 0.06}
FIDELITIES = {"LoFi": 4, "HiFi2": 2, "HiFi3": 1, "HiFi4": 1}


class Cases:
    """Draws cases: a description, inputs, the operation, its reference, and the error that is allowed."""

    def __init__(self, ops, ttnn):
        self.ops, self.ttnn = ops, ttnn

    def draw(self, r):
        families = [self.product, self.unary, self.binary, self.reduction, self.norm, self.move, self.move, self.cast]
        families += [self.order, self.embedding, self.convolution, self.pool, self.attention]
        return r.choice(families)(r)

    # What cases are made of.

    def input(self, shape, values="n", kind=BF16, layout=TILE, place=None):
        return self.ops.In(tuple(shape), values, kind, layout, place)

    def shape(self, r, least=2, most=4, widest=420):
        while True:
            rank = r.randint(least, most)
            ends = [r.choice([1, 32, 64, r.randint(1, 100), r.randint(1, widest)]) for _ in range(min(rank, 2))]
            shape = [r.choice([1, 1, 2, 3, 5]) for _ in range(rank - len(ends))] + ends
            if math.prod(shape) <= 100_000:
                return shape

    def place(self, r, shape):
        """DRAM, L1, or shards of tiles."""
        if r.random() < 0.5:
            return r.choice([None, "L1"])
        rows = math.prod(shape[:-2]) * -(-shape[-2] // 32)
        columns = -(-shape[-1] // 32)
        high = r.choice([n for n in (1, 2, 3, 4, 5, 8) if rows % n == 0])
        wide = r.choice([n for n in (1, 2, 3, 4, 5) if columns % n == 0])
        kind = r.choice(["HEIGHT", "WIDTH", "BLOCK"])
        return (kind, *{"HEIGHT": (1, high), "WIDTH": (wide, 1), "BLOCK": (wide, high)}[kind])

    def settings(self, r):
        """A configuration of the coprocessor, and how much more it may be off."""
        fidelity, wide = r.choice(list(FIDELITIES)), r.random() < 0.5
        config = self.ttnn.init_device_compute_kernel_config(
            self.ops.DEV[0].arch(),
            math_fidelity=getattr(self.ttnn.MathFidelity, fidelity),
            math_approx_mode=False,
            fp32_dest_acc_en=wide,
            packer_l1_acc=r.random() < 0.5,
        )
        return f"{fidelity}, {32 if wide else 16} bits", config, FIDELITIES[fidelity] * (1 if wide else 2)

    # Families.

    def product(self, r):
        m, k, n = (r.choice([32, 64, 128, r.randint(1, 300)]) for _ in range(3))
        batch, kind, bias = r.choice([(1, 1), (1, 3), (2, 2)]), r.choice([BF16, BF16, B8, F32]), r.random() < 0.3
        flip = r.random() < 0.3
        what, config, loose = self.settings(r)
        options = {"compute_kernel_config": config, "transpose_b": flip}
        shapes = [(*batch, m, k), (*batch, n, k) if flip else (*batch, k, n)]
        inputs = [self.input(shape, kind=kind) for shape in shapes] + [self.input((1, 1, 1, n))] * bias

        def reference(a, b, *c):
            return a @ (b.swapaxes(2, 3) if flip else b) + (c[0] if c else 0)

        def run(a, b, *c):
            return self.ttnn.linear(a, b, bias=c[0] if c else None, **options)

        return f"product {batch} {m} {k} {n} {kind} {what} {bias=} {flip=}", inputs, run, reference, (
            LIMIT[BF16 if kind == F32 else kind] * loose
        )

    def unary(self, r):
        functions = {
            "relu": (lambda x: np.maximum(x, 0), "n"),
            "exp": (np.exp, "n"),
            "sqrt": (np.sqrt, "pos"),
            "tanh": (np.tanh, "n"),
            "sigmoid": (self.ops.sg, "n"),
            "reciprocal": (lambda x: 1 / x, "nz"),
            "log": (np.log, "pos"),
            "gelu": (self.ops.gelu, "n"),
            "floor": (np.floor, "n"),
            "abs": (np.abs, "n"),
        }
        name = r.choice(list(functions))
        reference, values = functions[name]
        shape, kind = self.shape(r), r.choice([BF16, BF16, F32])
        place = self.place(r, shape)
        inputs = [self.input(shape, values, kind, TILE, place)]
        return f"{name} {shape} {kind} {place}", inputs, getattr(self.ttnn, name), reference, LIMIT[kind]

    def binary(self, r):
        functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
        functions |= {"maximum": np.maximum, "minimum": np.minimum}
        name = r.choice(list(functions))
        whole = self.shape(r)
        shapes = [[1 if r.random() < 0.2 else n for n in whole] for _ in range(2)]
        kinds = [r.choice([BF16, BF16, F32, B8]) for _ in range(2)]
        inputs = [self.input(shape, kind=kind) for shape, kind in zip(shapes, kinds, strict=True)]
        limit = max(LIMIT[kind] for kind in kinds)
        return f"{name} {shapes} {kinds}", inputs, getattr(self.ttnn, name), functions[name], limit

    def reduction(self, r):
        name, shape = r.choice(["sum", "mean", "max", "min"]), self.shape(r)
        dims = sorted(r.sample(range(len(shape)), r.randint(1, 2)))
        kind, keep = r.choice([BF16, BF16, F32]), r.random() < 0.6
        inputs = [self.input(shape, "pos" if name in ("sum", "mean") else "n", kind)]

        def run(a):
            return getattr(self.ttnn, name)(a, dim=dims, keepdim=keep)

        def reference(a):
            return getattr(np, name)(a, axis=tuple(dims), keepdims=keep)

        return f"{name} {shape} {dims} {kind} {keep=}", inputs, run, reference, LIMIT[kind]

    def norm(self, r):
        name, shape = r.choice(["softmax", "layer_norm", "rms_norm"]), self.shape(r)
        shape[-1] = max(shape[-1], 2)
        what, config, _ = self.settings(r)
        options = {"compute_kernel_config": config} | ({"dim": -1} if name == "softmax" else {"epsilon": 1e-5})

        def rms(x):
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

        reference = {"softmax": self.ops.softmax, "layer_norm": self.ops.norm, "rms_norm": rms}[name]
        return f"{name} {shape} {what}", [self.input(shape)], lambda a: getattr(self.ttnn, name)(a, **options), (
            reference
        ), 0.08

    def move(self, r):
        name = r.choice(["layout", "transpose", "permute", "slice", "pad", "concat", "repeat", "shards", "reshape"])
        kind, layout, shape = r.choice([BF16, BF16, F32, "uint32", "int32"]), r.choice([TILE, ROWS]), self.shape(r)
        values, rank, ttnn = "q" if kind in (BF16, F32) else "k1000", len(shape), self.ttnn
        inputs = [self.input(shape, values, kind, layout)]
        other = ttnn.ROW_MAJOR_LAYOUT if layout == TILE else ttnn.TILE_LAYOUT
        what = f"{name} {shape} {kind} {layout}"
        if name == "layout":
            return what, inputs, lambda a: ttnn.to_layout(a, other), lambda a: a, 0
        if name == "transpose":
            i, j = r.sample(range(rank), 2)
            return f"{what} {i} {j}", inputs, lambda a: ttnn.transpose(a, i, j), lambda a: a.swapaxes(i, j), 0
        if name == "permute":
            order = r.sample(range(rank), rank)
            return f"{what} {order}", inputs, lambda a: ttnn.permute(a, order), lambda a: a.transpose(order), 0
        if name == "slice":
            first = [r.randrange(n) for n in shape]
            last = [r.randint(i + 1, n) for i, n in zip(first, shape, strict=True)]
            window = tuple(map(slice, first, last))
            return f"{what} {first} {last}", inputs, lambda a: ttnn.slice(a, first, last), lambda a: a[window], 0
        if name == "pad":
            by = [(0, r.choice([0, 0, 1, 3, 32])) for _ in shape]
            return f"{what} {by}", inputs, lambda a: ttnn.pad(a, by, 0), lambda a: np.pad(a, by), 0
        if name == "concat":
            axis = r.randrange(rank)
            inputs *= r.randint(2, 3)
            return f"{what} {len(inputs)} along {axis}", inputs, lambda *a: ttnn.concat(list(a), dim=axis), (
                lambda *a: np.concatenate(a, axis)
            ), 0
        if name == "repeat":
            times = [r.choice([1, 1, 2, 3]) for _ in shape]
            return f"{what} {times}", inputs, lambda a: ttnn.repeat(a, times), lambda a: np.tile(a, times), 0
        if name == "reshape":
            to = [shape[-1] * shape[-2], math.prod(shape[:-2])]
            return f"{what} {to}", inputs, lambda a: ttnn.reshape(a, to), lambda a: a.reshape(to), 0
        inputs, place = [self.input(shape, values, kind, TILE, self.place(r, shape))], self.place(r, shape)

        def run(a):
            known = {None: ttnn.DRAM_MEMORY_CONFIG, "L1": ttnn.L1_MEMORY_CONFIG}
            to = known[place] if place in known else self.ops.SHARD(shape, place)
            return ttnn.to_layout(ttnn.to_memory_config(a, to), ttnn.ROW_MAJOR_LAYOUT)

        return f"{what} {inputs[0].mem} to {place}", inputs, run, lambda a: a, 0

    def cast(self, r):
        a, b = r.sample([BF16, F32, B8, "int32", "uint32"], 2)
        shape, whole = self.shape(r), {a, b} & {"int32", "uint32"}
        inputs = [self.input(shape, "k100" if whole else "n", a)]
        limit = 0.02 if B8 in (a, b) else 0.005
        return f"typecast {shape} {a} to {b}", inputs, lambda x: self.ttnn.typecast(x, getattr(self.ttnn, b)), (
            lambda x: x
        ), limit

    def order(self, r):
        shape, down, ttnn = self.shape(r, widest=200), r.random() < 0.5, self.ttnn
        if r.random() < 0.5:
            return f"sort {shape} {down=}", [self.input(shape)], lambda a: ttnn.sort(a, dim=-1, descending=down)[0], (
                lambda a: -np.sort(-a, -1) if down else np.sort(a, -1)
            ), 0
        shape, k = (1, 1, r.randint(1, 64), r.choice([64, 128, 256, r.randint(64, 400)])), r.choice([1, 8, 32, 50])
        return f"topk {shape} {k}", [self.input(shape)], lambda a: ttnn.topk(a, k, dim=-1)[0], (
            lambda a: -np.sort(-a, -1)[..., :k]
        ), 0

    def embedding(self, r):
        rows, width, batch, length = r.randint(2, 100), r.randint(1, 50) * 8, r.randint(1, 3), r.randint(1, 64)
        layout = r.choice([TILE, ROWS])
        inputs = [self.input((batch, length), f"k{rows}", "uint32", ROWS), self.input((rows, width), "q", BF16, layout)]
        ttnn = self.ttnn

        def run(index, table):
            return ttnn.embedding(index, ttnn.to_layout(table, ttnn.ROW_MAJOR_LAYOUT), layout=ttnn.TILE_LAYOUT)

        return f"embedding {rows} x {width} {batch} x {length} {layout}", inputs, run, lambda i, t: t[i.astype(int)], 0

    def convolution(self, r):
        batch, high, wide = r.choice([1, 2]), r.randint(5, 24), r.randint(5, 24)
        groups = r.choice([1, 1, 1, 2])
        channels, to = groups * r.choice([3, 8, 16, 32, 64]), groups * r.choice([8, 16, 32, 40])
        side, stride = r.choice([1, 3, 5]), r.choice([1, 2])
        what, config, loose = self.settings(r)
        ttnn, edge = self.ttnn, side // 2
        inputs = [self.input((1, 1, batch * high * wide, channels), layout=r.choice([TILE, ROWS]))]
        inputs += [self.input((to, channels // groups, side, side), layout=ROWS, place="host")]

        def run(image, weights):
            result = ttnn.conv2d(
                input_tensor=image,
                weight_tensor=weights,
                device=self.ops.DEV[0],
                in_channels=channels,
                out_channels=to,
                batch_size=batch,
                input_height=high,
                input_width=wide,
                kernel_size=(side, side),
                stride=(stride, stride),
                padding=(edge, edge),
                groups=groups,
                dtype=ttnn.bfloat16,
                compute_config=config,
            )
            return ttnn.to_memory_config(result, ttnn.DRAM_MEMORY_CONFIG)

        def reference(image, weights):
            image = np.pad(image.reshape(batch, high, wide, channels), ((0, 0), (edge, edge), (edge, edge), (0, 0)))
            parts = []
            for x, w in zip(np.split(image, groups, 3), np.split(weights, groups, 0), strict=True):
                windows = np.lib.stride_tricks.sliding_window_view(x, (side, side), (1, 2))[:, ::stride, ::stride]
                parts.append(np.einsum("bhwcij,ocij->bhwo", windows, w))
            return np.concatenate(parts, 3).reshape(1, 1, -1, to)

        return f"convolution {batch} {high} x {wide} {channels} to {to} {side=} {stride=} {groups=} {what}", inputs, (
            run
        ), reference, 0.03 * loose

    def pool(self, r):
        batch, high, wide, channels = r.choice([1, 2]), r.randint(5, 24), r.randint(5, 24), r.randint(1, 80)
        side, stride, ttnn = r.choice([2, 3]), r.choice([1, 2]), self.ttnn
        inputs = [self.input((1, 1, batch * high * wide, channels), layout=r.choice([TILE, ROWS]))]

        def run(image):
            sides = {"kernel_size": [side] * 2, "stride": [stride] * 2, "padding": [0, 0], "dilation": [1, 1]}
            size = {"batch_size": batch, "input_h": high, "input_w": wide, "channels": channels}
            return ttnn.to_memory_config(ttnn.max_pool2d(input_tensor=image, **size, **sides), ttnn.DRAM_MEMORY_CONFIG)

        def reference(image):
            image = image.reshape(batch, high, wide, channels)
            windows = np.lib.stride_tricks.sliding_window_view(image, (side, side), (1, 2))[:, ::stride, ::stride]
            return windows.max((4, 5)).reshape(1, 1, -1, channels)

        return f"pool {batch} {high} x {wide} x {channels} {side=} {stride=}", inputs, run, reference, 0

    def attention(self, r):
        keys = r.choice([1, 2])
        heads, length, width = keys * r.choice([1, 2, 4]), r.choice([32, 64, 96, 128, 256]), r.choice([32, 64, 128])
        causal, ttnn = r.random() < 0.6, self.ttnn
        what, config, _ = self.settings(r)
        inputs = [self.input((1, heads, length, width))] + [self.input((1, keys, length, width))] * 2

        def run(q, k, v):
            return ttnn.transformer.scaled_dot_product_attention(
                q, k, v, is_causal=causal, compute_kernel_config=config
            )

        def reference(q, k, v):
            k, v = (np.repeat(x, heads // keys, 1) for x in (k, v))
            scores = q @ k.swapaxes(2, 3) / math.sqrt(width)
            scores += np.triu(np.full(scores.shape[2:], -1e9), 1) if causal else 0
            return self.ops.softmax(scores) @ v

        return f"attention {heads} on {keys} {length} x {width} {causal=} {what}", inputs, run, reference, 0.3


def values_of(ttnn, host):
    return np.array((ttnn.to_dtype(host, ttnn.float32) if host.dtype == ttnn.bfloat8_b else host).to_list(), np.float64)


def on_device(ops, ttnn, generator, given):
    """The input on the device (or on the host, if it stays there), and its values after rounding."""
    drawn = ops.draw(generator, given.shape, given.dist)
    layout = ttnn.TILE_LAYOUT if given.lay == TILE else ttnn.ROW_MAJOR_LAYOUT
    is_float = given.dt in LIMIT
    kind = ttnn.float32 if given.dt == B8 else getattr(ttnn, given.dt)
    drawn = drawn.astype(np.float32 if is_float else np.int64).flatten().tolist()
    host = ttnn.Tensor(drawn, list(given.shape), kind, layout)
    host = ttnn.to_dtype(host, ttnn.bfloat8_b) if given.dt == B8 else host
    values = values_of(ttnn, host).reshape(given.shape)
    if given.mem == "host":
        return host, values
    known = {None: ttnn.DRAM_MEMORY_CONFIG, "L1": ttnn.L1_MEMORY_CONFIG}
    place = known[given.mem] if given.mem in known else ops.SHARD(given.shape, given.mem)
    return host.to(ops.DEV[0], place), values


def results_of(ops, ttnn, generator, given, run):
    """The values of the inputs and the results with theirs, on one card; `None`: ttnn refuses it."""
    tensors, values = [], []
    try:
        for one in given:
            tensor, value = on_device(ops, ttnn, generator, one)
            tensors.append(tensor), values.append(value)
        results = run(*tensors)
        ttnn.synchronize_device(ops.DEV[0])
        several = isinstance(results, (tuple, list))
        results = [one for one in (results if several else [results]) if isinstance(one, ttnn.Tensor)]
        tensors += results
        return values, [(result.dtype, values_of(ttnn, result.cpu())) for result in results]
    except RuntimeError:
        return None
    finally:
        for tensor in tensors:
            if ttnn.is_tensor_storage_on_device(tensor) and tensor.is_allocated():
                ttnn.deallocate(tensor)


def digest_of(found):
    return hashlib.sha1(b"".join(np.where(np.isnan(one), np.nan, one).tobytes() for one in found)).hexdigest()[:16]


def error_of(found, wanted):
    """The largest error, relative to the largest value; what is no number is infinitely far away."""
    wanted = np.asarray(wanted, np.float64)
    if found.size != wanted.size:
        return math.inf
    apart = np.abs(found.reshape(wanted.shape) - wanted).max() / max(1e-9, np.abs(wanted).max())
    return apart if math.isfinite(apart) else math.inf


def check(ops, ttnn, cases, seed, number):
    """What a case is, its error, the limit and a digest of its result; an error of `None`: ttnn refuses it."""
    what, given, run, reference, limit = cases.draw(random.Random(seed * 1_000_003 + number))
    came = results_of(ops, ttnn, np.random.default_rng([seed, number]), given, run)
    if came is None:
        return what, None, limit, "refused"
    values, [(_, found)] = came
    return what, error_of(found, reference(*values)), limit, digest_of([found])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--digests", metavar="FILE", default=os.devnull)
    parser.add_argument("seed", metavar="SEED", type=int, nargs="?", default=1)
    parser.add_argument("count", metavar="COUNT", type=int, nargs="?", default=100)
    parser.add_argument("numbers", metavar="NUMBER", type=int, nargs="*")
    given = parser.parse_intermixed_args()
    sys.path.insert(0, given.folder)
    import ttnn
    import ttnn_ops as ops

    ops.define()
    numbers = given.numbers or range(given.count)
    digests = open(given.digests, "w")
    ops.DEV[0] = ttnn.open_device(device_id=0, l1_small_size=32768)
    cases, refused, wrong = Cases(ops, ttnn), 0, 0
    for number in numbers:
        what, error, limit, digest = check(ops, ttnn, cases, given.seed, number)
        print(number, digest, what, file=digests, flush=True)
        if error is None:
            refused += 1
        elif error > limit + 1e-12:
            wrong += 1
            print(f"WRONG {number}: {what}: error {error:.3g}, limit {limit:.3g}", flush=True)
    print(f"{len(numbers)} cases of seed {given.seed}: {wrong} wrong, {refused} refused by ttnn", flush=True)
    ttnn.close_device(ops.DEV[0])
    return min(wrong, 99)


if __name__ == "__main__":
    # Interpreters that end with a device's objects alive may end badly.
    code = main()
    sys.stdout.flush()
    os._exit(code)
