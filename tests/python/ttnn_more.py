"""Stock ttnn operations that `ttnn_ops.py` does not have, on one simulated card: a digest of each result.

    python tests/python/ttnn_more.py FOLDER [NAME...] > FILE

FOLDER has `ttnn_ops.py`, whose draws are taken. A line of output is an operation, `ok`, `WRONG`, `refused` (by ttnn) or
`ENDED` (the process), the error, and a digest of all its results: the same on two libraries, and `diff` of what they
print, compares them bit by bit. An error is there where numpy has the operation, relative to the largest value; its
limits are wide, as for random cases (`ttnn_random.py`). All operations share a process, and after one that ends it the
others have a new one. The exit code is the number of operations that are wrong or ended it.
"""
import math
import os
import subprocess
import sys

import numpy as np
from ttnn_random import BF16, F32, LIMIT, ROWS, TILE, digest_of, error_of, results_of

I32, U32, U16 = "int32", "uint32", "uint16"
SHAPE, BATCH = (1, 1, 64, 96), (2, 3, 64, 96)
HALVES = (1, 1, 64, 128)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf)

# Of one tensor: what is drawn, and the reference.
UNARY = {
    "acos": ("u1", np.arccos), "acosh": ("ge1", np.arccosh), "asin": ("u1", np.arcsin), "asinh": ("n", np.arcsinh),
    "atan": ("n", np.arctan), "atanh": ("u1", np.arctanh), "cbrt": ("nz", np.cbrt), "cos": ("n", np.cos),
    "cosh": ("n", np.cosh), "deg2rad": ("n", np.deg2rad), "digamma": ("pos", None), "erf": ("n", erf),
    "erfc": ("n", lambda x: 1 - erf(x)), "erfinv": ("u1", None), "exp2": ("n", np.exp2), "expm1": ("n", np.expm1),
    "frac": ("n", lambda x: x - np.trunc(x)), "gelu": ("n", lambda x: x / 2 * (1 + erf(x / math.sqrt(2)))),
    "hardmish": ("n", None), "hardsigmoid": ("n", lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": ("n", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), "hardtanh": ("n", lambda x: np.clip(x, -1, 1)),
    "i0": ("n", np.i0), "i1": ("n", None), "lgamma": ("ge1", np.vectorize(math.lgamma)), "log": ("pos", np.log),
    "log10": ("pos", np.log10), "log1p": ("pos", np.log1p), "log2": ("pos", np.log2),
    "log_sigmoid": ("n", lambda x: np.log(sigmoid(x))), "mish": ("n", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "rad2deg": ("n", np.rad2deg), "rsqrt": ("pos", lambda x: x**-0.5), "selu": ("n", None),
    "sigmoid_accurate": ("n", sigmoid), "silu": ("n", lambda x: x * sigmoid(x)), "sin": ("n", np.sin),
    "sinh": ("n", np.sinh), "softplus": ("n", lambda x: np.log1p(np.exp(x))),
    "softsign": ("n", lambda x: x / (1 + np.abs(x))), "square": ("n", np.square),
    "swish": ("n", lambda x: x * sigmoid(x)),
    "tan": ("u1", np.tan), "tanhshrink": ("n", lambda x: x - np.tanh(x)), "xielu": ("n", None),
}
# The same in bfloat16 alone.
CHECKS = {
    "isinf": ("n", np.isinf), "isneginf": ("n", np.isneginf), "isposinf": ("n", np.isposinf),
    "signbit": ("n", np.signbit), "lez": ("i", lambda x: x <= 0), "gez": ("i", lambda x: x >= 0),
    "ltz": ("i", lambda x: x < 0), "nez": ("i", lambda x: x != 0),
    "normalize_hw": ("n", lambda x: (x - x.mean((2, 3), keepdims=True)) / x.std((2, 3), keepdims=True)),
    "normalize_global": ("n", lambda x: (x - x.mean()) / x.std()),
    "var_hw": ("n", lambda x: x.var((2, 3), keepdims=True)), "std_hw": ("n", lambda x: x.std((2, 3), keepdims=True)),
}
# With arguments.
SETTINGS = {
    "celu": (dict(alpha=1.0), lambda x: np.where(x > 0, x, np.expm1(x))),
    "elu": (dict(alpha=1.0), lambda x: np.where(x > 0, x, np.expm1(x))),
    "hardshrink": (dict(lambd=0.5), lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "softshrink": (dict(lambd=0.5), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
}
VALUES = {
    "fill": ((3.0,), lambda x: 0 * x + 3), "heaviside": ((0.5,), lambda x: np.heaviside(x, 0.5)),
    "polygamma": ((1,), None), "prelu": ((0.3,), lambda x: np.where(x > 0, x, 0.3 * x)),
    "rdiv": ((3.0,), None), "relu_max": ((0.5,), lambda x: np.clip(x, 0, 0.5)),
    "relu_min": ((0.5,), lambda x: np.maximum(x, 0.5)), "rpow": ((2.0,), lambda x: 2.0**x),
    "softcap": ((5.0,), lambda x: 5 * np.tanh(x / 5)), "threshold": ((0.2, 7.0), lambda x: np.where(x > 0.2, x, 7)),
    "glu": ((-1,), None), "reglu": ((-1,), None), "geglu": ((-1,), None), "swiglu": ((-1,), None),
}
WHOLE_UNARY = ["bitwise_not", "abs", "neg", "square", "relu", "gtz", "ltz", "eqz", "nez", "logical_not"]
# Of two tensors.
BINARY = {
    "bias_gelu": ("n", "n", lambda a, b: (a + b) / 2 * (1 + erf((a + b) / math.sqrt(2)))),
    "div_no_nan": ("n", "nz", np.divide), "fmod": ("n", "nz", None), "floor_div": ("n", "nz", None),
    "isclose": ("i", "i", lambda a, b: a == b), "l1_loss": ("n", "n", lambda a, b: np.abs(a - b)),
    "ldexp": ("n", "i", lambda a, b: a * 2.0**b), "logaddexp2": ("n", "n", np.logaddexp2),
    "mse_loss": ("n", "n", lambda a, b: (a - b) ** 2), "nextafter": ("n", "n", None), "remainder": ("n", "nz", None),
    "rsub": ("n", "n", lambda a, b: b - a), "xlogy": ("n", "pos", lambda a, b: a * np.log(b)),
}
FLOAT_BINARY = ["add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "eq", "lt", "atan2", "hypot"]
FLOAT_BINARY += ["logaddexp", "fmod", "remainder", "squared_difference"]
WHOLE_BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "eq", "ne", "lt", "gt", "le", "ge"]
WHOLE_BINARY += ["squared_difference"]
BITS = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "gcd": np.gcd,
    "lcm": np.lcm, "logical_and": None, "logical_or": None, "logical_xor": None, "remainder": None, "fmod": None,
    "floor_div": None, "div": None,
}
SHIFTS = ["bitwise_left_shift", "bitwise_right_shift", "logical_left_shift", "logical_right_shift"]
# Gradients: what the argument is drawn from.
GRADIENTS = {
    "n": "abs asinh atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac gelu hardsigmoid hardswish i0 "
    "log_sigmoid neg rad2deg relu relu6 round selu sigmoid sign silu sin sinh softsign square tanh tanhshrink trunc",
    "u1": "acos asin atanh erfinv tan",
    "ge1": "acosh multigammaln",
    "pos": "digamma lgamma log log10 log1p log2 rsqrt sqrt",
    "nz": "reciprocal",
}
GRADIENTS_OF_TWO = "add sub mul div max min atan2 hypot ldexp logaddexp logaddexp2 xlogy rsub squared_difference "
GRADIENTS_OF_TWO += "remainder fmod assign"


class Operations:
    """The operations by name: inputs, the call, and its reference and limit, which may be `None`."""

    def __init__(self, ops, ttnn):
        self.ops, self.ttnn, self.all = ops, ttnn, {}
        self.element_wise()
        self.whole_numbers()
        self.gradients()
        self.moreh()
        self.moves()
        self.windows()
        self.random()
        self.transformers()

    def input(self, shape=SHAPE, values="n", kind=BF16, layout=TILE, place=None):
        return self.ops.In(tuple(shape), values, kind, layout, place)

    def rows(self, *shape, values="n", kind=BF16, place=None):
        return self.input(shape, values, kind, ROWS, place)

    def add(self, name, inputs, run, reference=None, limit=None):
        assert name not in self.all, name
        self.all[name] = inputs, run, reference, limit

    def element_wise(self):
        find = lambda name: getattr(self.ttnn, name)
        for kind in (BF16, F32):
            for name, (values, reference) in UNARY.items():
                self.add(f"{name} {kind}", [self.input(SHAPE, values, kind)], find(name), reference)
        for name, (values, reference) in CHECKS.items():
            self.add(name, [self.input(SHAPE, values)], find(name), reference)
        for name, (given, reference) in SETTINGS.items():
            run = lambda a, name=name, given=given: find(name)(a, **given)
            self.add(name, [self.input()], run, reference)
        for name, (given, reference) in VALUES.items():
            run = lambda a, name=name, given=given: find(name)(a, *given)
            values = "nz" if name == "rdiv" else "ge1" if name == "polygamma" else "n"
            self.add(name, [self.input(HALVES, values)], run, reference)
        for name, (first, second, reference) in BINARY.items():
            self.add(f"{name} {BF16}", [self.input(SHAPE, first), self.input(SHAPE, second)], find(name), reference)
        for name in FLOAT_BINARY:
            self.add(f"{name} {F32}", [self.input(SHAPE, values, F32) for values in ("pos", "nz")], find(name))
        two = [self.input(), self.input()]
        self.add("addalpha", two, lambda a, b: self.ttnn.addalpha(a, b, 0.5), lambda a, b: a + 0.5 * b)
        self.add("subalpha", two, lambda a, b: self.ttnn.subalpha(a, b, 0.5), lambda a, b: a - 0.5 * b)
        self.add("polyval", two[:1], lambda a: self.ttnn.polyval(a, [1.0, 2.0, 3.0]), lambda a: (a + 2) * a + 3)
        lines = [self.input((1, 1, 1, 64)), self.input((1, 1, 1, 96))]
        self.add("outer", lines, self.ttnn.outer, lambda a, b: a.swapaxes(2, 3) * b)
        three = [*two, self.input(SHAPE, "nz")]
        run = lambda a, b, c: self.ttnn.addcdiv(a, b, c, value=0.5)
        self.add("addcdiv", three, run, lambda a, b, c: a + 0.5 * b / c)
        scaled = lambda a: self.ttnn.add(self.ttnn.multiply(a, 0.5), 0.5)
        self.add("logit", [self.input(SHAPE, "u1")], lambda a: self.ttnn.logit(scaled(a), eps=0.01))
        run = lambda a: self.ttnn.multigammaln(self.ttnn.add(a, 2.0))
        self.add("multigammaln", [self.input(SHAPE, "pos")], run)

    def whole_numbers(self):
        find = lambda name: getattr(self.ttnn, name)
        for name in WHOLE_UNARY:
            self.add(f"{name} {I32}", [self.input(SHAPE, "i1000", I32)], find(name))
        for name in WHOLE_BINARY:
            for kind in (I32, U32, U16):
                self.add(f"{name} {kind}", [self.input(SHAPE, "k1000", kind)] * 2, find(name))
        for name, exact in BITS.items():
            near = name in ("gcd", "lcm")
            inputs = [self.input(SHAPE, "i1000" if near else "i100000", I32), self.input(SHAPE, "k999", I32)]
            reference = exact and (lambda a, b, exact=exact: exact(a.astype(np.int64), b.astype(np.int64)))
            self.add(f"{name} {I32}", inputs, find(name), reference)
        for name in SHIFTS:
            self.add(name, [self.input(SHAPE, "i1000000", I32), self.input(SHAPE, "k31", I32)], find(name))

    def gradients(self):
        find = lambda name: getattr(self.ttnn, name + "_bw")
        for values, names in GRADIENTS.items():
            for name in names.split():
                self.add(f"{name}_bw", [self.input(), self.input(SHAPE, values)], find(name))
        for name in GRADIENTS_OF_TWO.split():
            self.add(f"{name}_bw", [self.input()] + [self.input(SHAPE, "pos")] * 2, find(name))

    def moreh(self):
        ttnn, softmax = self.ttnn, self.ops.softmax
        for axis in (2, 3):
            run = lambda a, axis=axis: ttnn.moreh_softmax(a, dim=axis)
            self.add(f"moreh_softmax {axis}", [self.input(BATCH)], run, lambda x, axis=axis: softmax(x, axis))
        for name, reference in (("softmin", lambda x: softmax(-x)), ("logsoftmax", lambda x: np.log(softmax(x)))):
            run = lambda a, name=name: getattr(ttnn, f"moreh_{name}")(a, dim=3)
            self.add(f"moreh_{name}", [self.input(BATCH)], run, reference)
        for name in ("softmax", "softmin", "logsoftmax"):
            run = lambda y, g, name=name: getattr(ttnn, f"moreh_{name}_backward")(y, g, dim=3)
            self.add(f"moreh_{name}_backward", [self.input(BATCH, "pos"), self.input(BATCH)], run)
        for axis in range(4):
            keeps = dict(dim=axis, keepdim=True)
            run = lambda a, keeps=keeps: ttnn.moreh_sum(a, **keeps)
            self.add(f"moreh_sum {axis}", [self.input(BATCH)], run, lambda x, axis=axis: x.sum(axis, keepdims=True))
            run = lambda a, keeps=keeps: ttnn.moreh_mean(a, **keeps)
            self.add(f"moreh_mean {axis}", [self.input(BATCH)], run, lambda x, axis=axis: x.mean(axis, keepdims=True))
            run = lambda a, keeps=keeps: ttnn.moreh_norm(a, p=2.0, **keeps)
            norm = lambda x, axis=axis: np.sqrt((x * x).sum(axis, keepdims=True))
            self.add(f"moreh_norm {axis}", [self.input(BATCH)], run, norm)
        run = lambda a: ttnn.moreh_sum(a, dim=2, keepdim=True)
        self.add(f"moreh_sum {I32}", [self.input(BATCH, "i100", I32)], run, lambda x: x.sum(2, keepdims=True))
        for axis in (0, 1):
            run = lambda a, axis=axis: ttnn.moreh_cumsum(a, axis)
            self.add(f"moreh_cumsum {axis}", [self.input(BATCH)], run, lambda x, axis=axis: x.cumsum(axis))
        run = lambda a: ttnn.moreh_layer_norm(a, 1, 1e-5, None, None)[0]
        centred = lambda x: x - x.mean(-1, keepdims=True)
        self.add("moreh_layer_norm", [self.input(BATCH)], run, lambda x: centred(x) / x.std(-1, keepdims=True))
        self.add("moreh_group_norm", [self.input((2, 4, 32, 32))], lambda a: ttnn.moreh_group_norm(a, 2, 1e-5)[0])
        factors = [self.input((1, 2, 64, 96)), self.input((1, 2, 96, 64))]
        self.add("moreh_bmm", factors, ttnn.moreh_bmm, np.matmul)
        self.add("moreh_matmul", factors, ttnn.moreh_matmul, np.matmul)
        factors = [self.input(SHAPE), self.input((1, 1, 32, 96))]
        self.add("moreh_linear", factors, ttnn.moreh_linear, lambda a, b: a @ b.swapaxes(2, 3))
        self.add("moreh_dot", [self.input((1, 1, 1, 96))] * 2, ttnn.moreh_dot)
        self.add("moreh_abs_pow", [self.input(BATCH, "nz")], lambda a: ttnn.moreh_abs_pow(a, 2.5))
        settings = dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-6, weight_decay=0.0, step=1, amsgrad=False)
        run = lambda p, g, m, w: ttnn.moreh_adam(p, g, m, ttnn.abs(w), **settings)[0]
        self.add("moreh_adam", [self.input(BATCH)] * 4, run)
        run = lambda a, index: ttnn.moreh_getitem(a, [index], [0])
        self.add("moreh_getitem", [self.rows(64, 96), self.rows(32, values="k60", kind=I32)], run)

    def moves(self):
        ttnn = self.ttnn
        for axis in (2, 3):
            run = lambda a, axis=axis: ttnn.cumsum(a, axis)
            self.add(f"cumsum {axis}", [self.input()], run, lambda x, axis=axis: x.cumsum(axis))
        self.add("cumprod", [self.input(SHAPE, "pos")], lambda a: ttnn.cumprod(ttnn.multiply(a, 0.4), 2))
        lines = [self.rows(1, 1, 32, 96), self.rows(1, 1, 32, 32, values="k96", kind=I32), self.rows(1, 1, 32, 32)]
        self.add("scatter", lines, lambda a, index, source: ttnn.scatter(a, 3, index, source))
        self.add("nonzero", [self.rows(1, 1, 1, 96, values="b")], lambda a: ttnn.nonzero(a)[0])
        self.add("fold", [self.rows(1, 8, 8, 16)], lambda a: ttnn.fold(a, 2, 2))
        self.add("rotate", [self.rows(1, 16, 16, 32)], lambda a: ttnn.rotate(a, 30.0))
        places = [self.rows(1, 16, 16, 32), self.rows(1, 8, 8, 2, values="u1")]
        self.add("grid_sample", places, ttnn.grid_sample)
        twice = lambda x: x.repeat(2, 1).repeat(2, 2)
        self.add("upsample", [self.rows(1, 16, 16, 32)], lambda a: ttnn.upsample(a, 2), twice)
        self.add("quantize", [self.input()], lambda a: ttnn.quantize(a, 0.05, 3))
        whole = [self.input(SHAPE, "i100", I32)]
        self.add("requantize", whole, lambda a: ttnn.requantize(a, 0.05, 3, 0.1, 1))
        self.add("dequantize", whole, lambda a: ttnn.dequantize(a, 0.05, 3), lambda x: (x - 3) * 0.05)
        self.add("plus_one", [self.rows(32, values="k90", kind=I32)], ttnn.plus_one)
        inputs = [self.rows(1, 1, 1, 2, values="k4", kind=U32), self.rows(4, 1, 32, 32), self.rows(2, 1, 32, 32)]
        self.add("indexed_fill", inputs, ttnn.indexed_fill)
        inputs = [self.rows(64, 96), self.rows(8, values="k60", kind=U32)]
        self.add("index_fill", inputs, lambda a, index: ttnn.index_fill(a, 0, index, 2.5))
        cut = lambda a: ttnn.untilize_with_unpadding(a, [0, 0, 40, 50])
        self.add("untilize_with_unpadding", [self.input()], cut, lambda x: x[:, :, :41, :51])
        padded = lambda a: ttnn.tilize_with_val_padding(a, [1, 1, 64, 64], 1.5)
        self.add("tilize_with_val_padding", [self.rows(1, 1, 50, 60)], padded)
        self.add("tilize_with_zero_padding", [self.rows(1, 1, 50, 60)], ttnn.tilize_with_zero_padding)
        run = lambda a, b: ttnn.bcast(a, b, ttnn.BcastOpMath.ADD, ttnn.BcastOpDim.H)
        self.add("bcast", [self.input(), self.input((1, 1, 1, 96))], run, np.add)
        run = lambda a: ttnn.fill_implicit_tile_padding(a, 2.0)
        self.add("fill_implicit_tile_padding", [self.input((1, 1, 50, 60))], run)
        self.add("bitcast", [self.input(SHAPE, "n", F32)], lambda a: ttnn.bitcast(a, ttnn.uint32))
        self.add("ema", [self.input((1, 1, 32, 96))], lambda a: ttnn.ema(a, 0.9))
        caches = [self.input((2, 1, 128, 64)), self.input((1, 1, 64, 64))]
        self.add("fill_cache", caches, lambda cache, a: ttnn.fill_cache(cache, a, 1))
        caches = [self.input((32, 1, 128, 64)), self.input((1, 1, 32, 64))]
        self.add("update_cache", caches, lambda cache, a: ttnn.update_cache(cache, a, 5))
        best = lambda x: -np.sort(-x, -1)
        run = lambda a: ttnn.topk(a, 50, -1, True, True)[0]
        self.add("topk 50", [self.input((1, 1, 32, 1024))], run, lambda x: best(x)[..., :50])
        run = lambda a: ttnn.sort(a, -1, True)[0]
        self.add("sort", [self.input((1, 1, 32, 256))], run, best)
        run = lambda a, b: ttnn.experimental.isin(a, b)
        self.add("isin", [self.rows(1, n, values="k50", kind=I32) for n in (96, 32)], run)

    def windows(self):
        ttnn, device = self.ttnn, self.ops.DEV
        image = [self.rows(1, 1, 256, 32)]
        run = lambda a: ttnn.avg_pool2d(a, 1, 16, 16, 32, [2, 2], [2, 2], [0, 0], False)
        self.add("avg_pool2d", image, run)
        self.add("adaptive_avg_pool2d", image, lambda a: ttnn.adaptive_avg_pool2d(a, 1, 16, 16, 32, [4, 4]))
        self.add("adaptive_max_pool2d", image, lambda a: ttnn.adaptive_max_pool2d(a, 1, 16, 16, 32, [4, 4]))
        sizes = dict(in_channels=32, out_channels=32, batch_size=1)

        def line(a, weights):
            window = dict(input_length=64, kernel_size=3, stride=1, padding=1)
            return ttnn.conv1d(input_tensor=a, weight_tensor=weights, device=device[0], **sizes, **window)

        self.add("conv1d", [self.rows(1, 64, 32), self.rows(32, 32, 3, place="host")], line)

        def transposed(a, weights):
            window = dict(kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1))
            given = dict(input_height=8, input_width=8, **sizes, **window)
            return ttnn.conv_transpose2d(input_tensor=a, weight_tensor=weights, device=device[0], **given)

        self.add("conv_transpose2d", [self.rows(1, 8, 8, 32), self.rows(32, 32, 3, 3, place="host")], transposed)

        def volume(a, weights):
            window = dict(kernel_size=(3, 3, 3), stride=(1, 1, 1), padding=(1, 1, 1), padding_mode="zeros")
            given = dict(dtype=ttnn.bfloat16, output_channels=32, **window)
            return ttnn.experimental.conv3d(input_tensor=a, weight_tensor=weights, **given)

        self.add("conv3d", [self.rows(1, 4, 8, 8, 32), self.input((864, 32))], volume)

    def random(self):
        ttnn, device = self.ttnn, self.ops.DEV
        self.add("rand", [], lambda: ttnn.rand([64, 64], device=device[0], seed=7))
        run = lambda a: ttnn.bernoulli(ttnn.multiply(a, 0.5), 5)
        self.add("bernoulli", [self.input(SHAPE, "b")], run)
        run = lambda a: ttnn.experimental.dropout(a, probability=0.2, scale=1.25, seed=9)
        self.add("dropout", [self.input()], run)

        def sampling(a, index):
            line = lambda value, kind: ttnn.Tensor([value] * 32, [32], kind, ttnn.ROW_MAJOR_LAYOUT).to(device[0])
            chosen = dict(k=line(10, ttnn.uint32), p=line(0.9, ttnn.bfloat16), temp=line(1.0, ttnn.bfloat16))
            return ttnn.sampling(a, index, **chosen, seed=3)

        index = self.rows(1, 1, 32, 256, values="k250", kind=I32)
        self.add("sampling", [self.input((1, 1, 32, 256)), index], sampling)

    def transformers(self):
        ttnn, parts = self.ttnn, self.ttnn.transformer
        more = ttnn.experimental
        mask = self.input((1, 1, 1, 96), "b")
        run = lambda a, mask: ttnn.scale_mask_softmax_in_place(a, 0.5, mask)
        self.add("scale_mask_softmax_in_place", [self.input(), mask], run)
        self.add("softmax_in_place", [self.input()], ttnn.softmax_in_place, self.ops.softmax)
        run = lambda a, mask: parts.attention_softmax(a, head_size=64, attention_mask=mask)
        self.add("attention_softmax", [self.input((1, 2, 64, 96)), mask], run)
        self.add("layer_norm_pre_all_gather", [self.input()], ttnn.layer_norm_pre_all_gather)
        self.add("rms_norm_pre_all_gather", [self.input()], ttnn.rms_norm_pre_all_gather)
        masks = [self.input((1, 1, 1, width), "b") for width in (64, 32)]
        self.add("moe", [self.input((1, 1, 32, 64)), *masks], lambda a, b, c: ttnn.moe(a, b, c, 32))
        run = lambda a: more.nlp_create_qkv_heads(a, num_heads=1, num_kv_heads=1)
        self.add("nlp_create_qkv_heads", [self.input((1, 1, 64, 192))], run)
        run = lambda a: parts.split_query_key_value_and_split_heads(a, num_heads=1)
        self.add("split_query_key_value_and_split_heads", [self.input((1, 64, 192))], run)
        heads, angles = self.input((1, 2, 64, 64)), [self.input((1, 1, 64, 64))] * 2
        self.add("nlp_concat_heads", [heads], more.nlp_concat_heads)
        self.add("concatenate_heads", [heads], parts.concatenate_heads)
        self.add("rotary_embedding", [heads, *angles], more.rotary_embedding)
        self.add("rotary_embedding_hf", [heads, *angles], more.rotary_embedding_hf)
        self.add("rotary_embedding_llama", [heads, *angles, self.input((1, 1, 32, 32))], more.rotary_embedding_llama)
        turned = lambda x: np.concatenate([-x[..., 32:], x[..., :32]], -1)
        self.add("rotate_half", angles[:1], more.rotate_half, turned)

        def joint(*given):
            cores = dict(compute_with_storage_grid_size=(4, 4))
            config = ttnn.SDPAProgramConfig(q_chunk_size=32, k_chunk_size=32, **cores)
            settings = dict(joint_strategy="rear", program_config=config)
            return parts.joint_scaled_dot_product_attention(*given, **settings)

        self.add("joint_scaled_dot_product_attention", [heads] * 6, joint)

        def masked(q, k, v, mask):
            return parts.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=False)

        def reference(q, k, v, mask):
            return self.ops.softmax(q @ k.swapaxes(2, 3) / 8 + mask) @ v

        inputs = [heads] * 3 + [self.input((1, 1, 64, 64), "b")]
        # As for random attention: exponents and products are those of the lowest fidelity.
        self.add("masked attention", inputs, masked, reference, 0.3)
        run = lambda a, b: more.attn_matmul(a, b, compute_with_storage_grid_size=ttnn.CoreCoord(4, 4))
        self.add("attn_matmul", [self.input((1, 4, 32, 64)), self.input((32, 1, 64, 64))], run)
        self.add("minimal_matmul", [self.input((1, 1, 128, 128))] * 2, more.minimal_matmul, np.matmul)
        run = lambda a: more.fast_reduce_nc(a, dims=[1])
        self.add("fast_reduce_nc", [self.input((1, 4, 64, 64))], run, lambda x: x.sum(1, keepdims=True))
        self.add("fft", [self.rows(1, 1, 32, 64, kind=F32)], more.fft)


def check(ops, ttnn, name, inputs, run, reference, limit):
    """What came of an operation, its error where there is a reference, and a digest of its results."""
    came = results_of(ops, ttnn, np.random.default_rng(list(name.encode())), inputs, run)
    if came is None:
        return "refused", None, ""
    values, results = came
    digest = digest_of([found for _, found in results])
    if reference is None:
        return "ok", None, digest
    kind, found = results[0]
    apart = error_of(found, reference(*values))
    limit = limit or (LIMIT[BF16] if kind in (ttnn.bfloat16, ttnn.float32) else 0)
    return "ok" if apart <= limit else "WRONG", apart, digest


def run_here(folder, names):
    """Runs these operations, or all, on a card of this process."""
    sys.path.insert(0, folder)
    import ttnn
    import ttnn_ops as ops

    ops.DEV[0] = ttnn.open_device(device_id=0, l1_small_size=32768)
    every = Operations(ops, ttnn).all
    for name in names or every:
        came, apart, digest = check(ops, ttnn, name, *every[name])
        print("ENDS", f"{name}: {came}", "" if apart is None else f"{apart:.3g}", digest, flush=True)
    ttnn.close_device(ops.DEV[0])


def names_of(folder):
    """The names of all operations, from a process that opens no card."""
    sys.path.insert(0, folder)
    import ttnn
    import ttnn_ops as ops

    return list(Operations(ops, ttnn).all)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:]
    wrong, known = 0, names_of(folder)
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no operations {unknown}; there are {known}")
    left = names or known
    while left:
        command = [sys.executable, __file__, "--here", folder, *left]
        error = ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
            for line in child.stdout:
                kind, _, said = line.rstrip().partition(" ")
                if kind == "ENDS":
                    print(said, flush=True)
                    wrong += ": WRONG" in said
                    left = left[1:]
                elif "ERROR: " in line or "fault: " in line:
                    # The process may wait for the card for ever.
                    error = line.rstrip()
                    child.kill()
        if left:
            print(f"{left[0]}: ENDED {error}", flush=True)
            wrong, left = wrong + 1, left[1:]
    return min(wrong, 99)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        run_here(sys.argv[2], sys.argv[3:])
        # Interpreters that end with a device's objects alive may end badly.
        os._exit(0)
    sys.exit(main())
