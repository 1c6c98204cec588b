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
