"""Writes numpy.txt: what numpy gives for the functions that it shares with the operation library.

Run as `python3 numpy_fixture.py > numpy.txt`. A line is `name attributes ; array ; ... ; array`, an array is
`type dims : values`, the last array is the result.
"""

import numpy as np

rng = np.random.default_rng(4)


def text(a):
    a = np.asarray(a)
    kind = {"f": "f", "i": "i", "u": "i", "b": "i"}[a.dtype.kind]
    values = a.astype(np.float64) if kind == "f" else a.astype(np.int64)
    dims = "x".join(str(d) for d in a.shape) or "-"
    return f"{kind} {dims} : " + " ".join(str(v) for v in values.ravel().tolist())


def line(name, attributes, inputs, result):
    words = " ".join([name] + [str(a) for a in attributes])
    print(" ; ".join([words] + [text(a) for a in inputs] + [text(result)]))


def floats(*dims):
    return (rng.standard_normal(dims) * 3).astype(np.float32)


def ints(low, high, *dims):
    return rng.integers(low, high, dims).astype(np.int32)


special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e30], dtype=np.float32)

with np.errstate(all="ignore"):
    for name, f in [
        ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
        ("maximum", np.maximum), ("minimum", np.minimum), ("atan2", np.arctan2), ("pow", np.power),
        ("eq", np.equal), ("ne", np.not_equal), ("ge", np.greater_equal), ("gt", np.greater), ("le", np.less_equal),
        ("lt", np.less), ("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor),
    ]:
        a, b = floats(2, 1, 3), floats(4, 1)
        line(name, [], [a, b], f(a, b).astype(np.float32))
        line(name, [], [special[:, None], special[None, :]], f(special[:, None], special[None, :]).astype(np.float32))
    for name, f in [
        ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("bitwise_and", np.bitwise_and),
        ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor), ("remainder", np.remainder), ("gt", np.greater),
        ("maximum", np.maximum),
    ]:
        a, b = ints(-2**31, 2**31, 3, 4), ints(1, 2**31, 4) * rng.choice([-1, 1], 4).astype(np.int32)
        line(name, [], [a, b], f(a, b).astype(np.int32))
    for name, f in [
        ("abs", np.abs), ("ceil", np.ceil), ("floor", np.floor), ("cos", np.cos), ("sin", np.sin), ("tan", np.tan),
        ("tanh", np.tanh), ("atan", np.arctan), ("exp", np.exp), ("expm1", np.expm1), ("log", np.log), ("log1p", np.log1p),
        ("sqrt", np.sqrt), ("cbrt", np.cbrt), ("sign", np.sign), ("asinh", np.arcsinh), ("round", np.rint),
        ("isfinite", np.isfinite), ("neg", np.negative), ("reciprocal", np.reciprocal), ("exp2", np.exp2),
    ]:
        a = np.concatenate([special[:-1], floats(9)])
        line(name, [], [a], f(a.astype(np.float64)).astype(np.float32))
    x = floats(3, 4, 5)
    for axis in range(3):
        for name, f in [("sum", np.sum), ("mean", np.mean), ("prod", np.prod), ("max", np.max), ("min", np.min)]:
            line(name, [axis], [x], f(x.astype(np.float64), axis=axis).astype(np.float32))
        line("argmax", [axis], [x], np.argmax(x, axis=axis))
        line("cumsum", [axis], [x], np.cumsum(x.astype(np.float64), axis=axis).astype(np.float32))
        line("cumprod", [axis], [x], np.cumprod(x.astype(np.float64), axis=axis).astype(np.float32))
        ties = ints(0, 3, 3, 4, 5)
        line("argsort", [axis], [ties], np.argsort(ties, axis=axis, kind="stable"))
        nans = np.where(x > 2, np.nan, x).astype(np.float32)
        line("sort", [axis], [nans], np.sort(nans, axis=axis))
        index = rng.integers(0, x.shape[axis], x.shape).astype(np.int32)
        line("gather", [axis], [x, index], np.take_along_axis(x, index, axis))
        line("concat", [axis], [x, x[::-1]], np.concatenate([x, x[::-1]], axis))
        line("repeat_interleave", [axis], [x], np.repeat(x, 3, axis))
    line("permute", [2, 0, 1], [x], np.transpose(x, (2, 0, 1)))
    line("repeat", [2, 1, 3], [x], np.tile(x, (2, 1, 3)))
    line("pad", [1, 0, 0, 2, 3, 1], [x], np.pad(x, [(1, 0), (0, 2), (3, 1)]))
    a, b = floats(2, 1, 5, 7), floats(3, 7, 4)
    line("matmul", [], [a, b], (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32))
    wide = (rng.standard_normal(40) * np.logspace(-9, 6, 40)).astype(np.float32)
    line("to_f16", [], [wide], wide.astype(np.float16).astype(np.float32))
    line("arange", [0.5, 9.75, 0.25], [], np.arange(0.5, 9.75, 0.25, dtype=np.float32))

# Training steps, experts and what runs on several devices: results of several parts are a line each.
f64 = np.float64


def result(name, attributes, inputs, value):
    line(name, attributes, inputs, np.asarray(value, f64).astype(np.float32))


rate, b1, b2, eps, decay, steps = 0.01, 0.9, 0.98, 1e-6, 0.1, 3
w, g, m, v, most = floats(9), floats(9), floats(9), np.abs(floats(9)), np.abs(floats(9))
for amsgrad in (0, 1):
    m1, v1 = b1 * m.astype(f64) + (1 - b1) * g, b2 * v.astype(f64) + (1 - b2) * g.astype(f64) ** 2
    top = np.maximum(v1, most) if amsgrad else v1
    w1 = w * (1 - rate * decay) - rate * (m1 / (1 - b1**steps)) / (np.sqrt(top / (1 - b2**steps)) + eps)
    for part, value in enumerate([w1, m1, v1, top][: 3 + amsgrad]):
        numbers = [part, rate, b1, b2, b1**steps, b2**steps, eps, decay]
        result("adamw", numbers, [w, g, m, v] + [most] * amsgrad, value)

q, k, val, grad = floats(1, 4, 3, 4), floats(1, 2, 3, 4), floats(1, 2, 3, 2), floats(1, 4, 3, 2)
added = np.where(rng.random((1, 1, 3, 3)) < 0.3, -np.inf, rng.standard_normal((1, 1, 3, 3)))
added[..., 0] = 0.25
added = added.astype(np.float32)
for kind in range(3):
    full_k, full_v = (np.repeat(x.astype(f64), 2, axis=1) for x in (k, val))
    scores = q.astype(f64) @ full_k.transpose(0, 1, 3, 2) / np.sqrt(4)
    if kind == 1:
        scores = np.where(np.tri(3, dtype=bool), scores, -np.inf)
    if kind == 2:
        scores = scores + added
    sums = np.log(np.exp(scores).sum(-1, keepdims=True))
    p = np.exp(scores - sums)
    out = p @ full_v
    ds = p * (grad @ full_v.transpose(0, 1, 3, 2) - (grad * out).sum(-1, keepdims=True)) / np.sqrt(4)
    pairs = lambda x: x.reshape(1, 2, 2, *x.shape[2:]).sum(2)
    parts = [ds @ full_k, pairs(ds.transpose(0, 1, 3, 2) @ q), pairs(p.transpose(0, 1, 3, 2) @ grad)]
    for part, value in enumerate([out, sums]):
        result("sdpa_fw", [part, kind], [q, k, val, added], value)
    for part, value in enumerate(parts):
        given = [q, k, val, added, grad, out.astype(np.float32), sums.astype(np.float32)]
        result("sdpa_bw", [part, kind], given, value)

x, add, weight = floats(6, 2, 3), floats(6, 2, 3), floats(6, 3)
for axis in range(2):
    # Six devices in two rows of three; along an axis, the last dimension is cut.
    grid, plus = x.reshape(2, 3, 2, 3).astype(f64), add.reshape(2, 3, 2, 3)
    mean = ((grid + plus) ** 2).mean(axis=(axis, 3), keepdims=True)
    normal = (grid + plus) / np.sqrt(mean + 1e-5) * weight.reshape(2, 3, 1, 3)
    result("distributed_rms_norm", [axis], [x, add, weight], normal.reshape(6, 2, 3))

a, b = floats(2, 2, 2, 3), floats(1, 4, 3, 2)
flags = (rng.random((2, 2, 1, 4)) < 0.5).astype(np.float32)
result("sparse_matmul", [0], [a, b, flags], np.einsum("abmk,ekn,abe->abemn", a.astype(f64), b[0], flags[:, :, 0])[:, :, None])
a, flags = floats(2, 4, 2, 3), (rng.random((1, 1, 2, 4)) < 0.5).astype(np.float32)
result("sparse_matmul", [1], [a, b, flags], np.einsum("aemk,ekn,ae->aemn", a.astype(f64), b[0], flags[0, 0]))

x, weight, bias = floats(5, 4), floats(4, 6), floats(5, 6)
logits = x.astype(f64) @ weight + bias
best = np.argsort(-logits, axis=1)[:, :3]
line("router", [0], [x, weight, bias], best)
top = np.take_along_axis(logits, best, 1)
result("router", [1], [x, weight, bias], np.exp(top - top[:, :1]) / np.exp(top - top[:, :1]).sum(1, keepdims=True))

q, k, weight = floats(2, 3, 2, 3), floats(2, 1, 5, 3), floats(2, 3, 2, 1)
scores = (np.maximum(q.astype(f64) @ k.transpose(0, 1, 3, 2), 0) * weight).sum(1, keepdims=True)
seen = np.arange(5)[None, :] <= 2 + np.arange(2)[:, None]
result("indexer", [2], [q, k, weight], np.where(seen, scores, -np.inf))

# Volumes of 3 channels, which the compiler pads to 32, by weights of 3; plain loops over the taps.
x, weight = floats(1, 3, 3, 3, 3), floats(2, 3, 2, 3, 2)
windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(f64), (2, 3, 2), axis=(0, 1, 2))
result("conv3d", [], [x, weight], np.einsum("dhwcijk,ocijk->dhwo", windows, weight)[None])
