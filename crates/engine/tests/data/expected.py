"""Inputs of the compiled programs in crates/model/tests/data, and what JAX on the CPU makes of them in float32.

    JAX_PLATFORMS=cpu python expected.py        writes VERSION-NAME/in0.npy ... out0.npy ... beside this file

Inputs of type bfloat16 are rounded to it and stored as float32. The functions are those of that folder's programs.py; those that
JAX does not know are written out in NumPy. Names on the command line choose some of them.
"""
import pathlib
import sys
import zlib
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

bf16, f32, i32 = jnp.bfloat16, jnp.float32, np.int32


def rounded(rng, shape, scale=1.0):
    return np.asarray(jnp.asarray(rng.standard_normal(shape) * scale, bf16).astype(f32))


square = lambda rng: rounded(rng, (32, 32))
weights = lambda rng: rounded(rng, (32, 32), 0.2)
positive = lambda rng: np.abs(rounded(rng, (32, 32))) + np.float32(0.5)
cases = {
    "0.1.0-atan2": (jnp.arctan2, square, square),
    "0.1.0-case": (lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x - 1, x), lambda rng: np.bool_(True), square),
    "0.1.0-count": (lambda x, n: lax.fori_loop(0, n, lambda i, c: c @ c, x), weights, lambda rng: i32(2)),
    "0.1.0-swiglu": (lambda x, w, v: jax.nn.silu(x @ w) * (x @ v), square, weights, weights),
    "0.1.0-trace": (lambda a: 1 / a, positive),
    "0.1.0-while": (lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c + c, x), positive),
    "0.1.1-add_relu": (lambda a, b: jax.nn.relu(a + b), square, square),
    "0.1.2-add_relu": (lambda a, b: jax.nn.relu(a + b), square, square),
    "0.1.2-cummax": (lambda x: lax.cummax(x, 1, reverse=True), square),
    "0.1.2-rows": (lambda x, i, u: x.at[i].max(u)[i], square, lambda rng: rng.permutation(32)[:4].astype(i32),
                   lambda rng: rounded(rng, (4, 32))),
    "0.1.2-softplus": (lambda a, b: jax.nn.softplus(a) + b, square, square),
    "0.1.2-conv3d": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=("NCDHW", "OIDHW", "NCDHW")),
                     lambda rng: rounded(rng, (1, 32, 2, 4, 4)), lambda rng: rounded(rng, (32, 32, 1, 1, 1), 0.2)),
    "0.1.3-trace": (lambda a: 1 / a, positive),
    "0.1.3-window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 8), (1, 1), "VALID"),
                     lambda rng: rng.standard_normal((32, 32)).astype(np.float32)),
}
experts = lambda *dims: lambda rng: np.argsort(rng.random((*dims, 4)))[..., :2].astype(i32)
mapping = lambda rng: np.ones((1, 1, 4, 1), i32)
array = lambda *dims: lambda rng: rounded(rng, dims)
nhwc = ("NHWC", "OIHW", "NHWC")
convolve = lambda x, w, **more: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=nhwc, **more)


def mixture(x, r, w):
    weights, chosen = lax.top_k(x @ r, 2)
    return jnp.einsum("tkd,tk->td", jnp.einsum("td,tkdf->tkf", x, w[chosen]), jax.nn.softmax(weights))


def combine(x, chosen, _):
    # Each token's row of its k-th expert, for each k.
    tokens = np.arange(8)
    return np.stack([x.reshape(4, 8, 32)[chosen.reshape(8, 2)[:, k], tokens] for k in range(2)]).reshape(2, 4, 2, 32)


def remap(scores, _, chosen):
    hot = np.zeros((32, 4), np.float32)
    hot[np.arange(32)[:, None], chosen.reshape(32, 2)] = 1
    return (scores.reshape(32, 4) * hot).reshape(1, 4, 8, 4), hot.reshape(1, 1, 2, 16, 4).max(3)


cases |= {
    "0.1.3-conv3d_narrow": (cases["0.1.2-conv3d"][0], array(1, 3, 3, 5, 5), array(8, 3, 3, 3, 3)),
    "0.1.3-conv_prepared": (lambda x, w, b: jax.nn.relu(convolve(x, w) + b), array(1, 8, 8, 3), array(20, 3, 3, 3), array(20)),
    "0.1.3-conv_groups": (lambda x, w: convolve(x, w, feature_group_count=4), array(1, 8, 8, 16), array(24, 4, 3, 3)),
    "0.1.3-conv_transposed": (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
                              array(1, 8, 8, 12), array(3, 3, 12, 20)),
    "0.1.3-moe_gather": (mixture, array(8, 32), array(32, 4), array(4, 32, 32)),
    "0.1.3-sparse_matmul": (lambda a, b, s: np.einsum("abmk,ekn,abe->abemn", a, b[0], s[:, :, 0])[:, :, None], array(1, 2, 32, 32),
                            array(1, 3, 32, 32), lambda rng: np.float32([[[[1, 0, 1]], [[0, 1, 1]]]])),
    "0.1.3-dispatch": (lambda x, k, _: (x.reshape(1, 4, 2, 32), k.reshape(1, 4, 2, 2)), array(4, 2, 1, 32), experts(4, 2, 1), mapping),
    "0.1.3-combine": (combine, array(4, 4, 2, 32), experts(1, 4, 2), mapping),
    "0.1.3-remap": (remap, array(1, 4, 8, 4), mapping, experts(1, 4, 8)),
    # Of rows whose sum of probabilities is bounded by 0, the largest is drawn.
    "0.1.3-sampling": (lambda x, i, *_: np.take_along_axis(i, x.argmax(1)[:, None], 1)[:, 0], array(32, 64),
                       lambda rng: rng.permuted(np.tile(np.arange(64, dtype=i32), (32, 1)), axis=1),
                       lambda rng: np.full(32, 32, np.uint32), lambda rng: np.zeros(32, f32), lambda rng: np.ones(32, f32)),
}
by_numpy = ("sparse_matmul", "dispatch", "combine", "remap", "sampling")
for name, (function, *makers) in cases.items():
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = [make(rng) for make in makers]
    folder = pathlib.Path(__file__).parent / name
    folder.mkdir(exist_ok=True)
    for i, array in enumerate(inputs):
        np.save(folder / f"in{i}.npy", np.asarray(array))
    for i, array in enumerate(jax.tree_util.tree_leaves((function if name.endswith(by_numpy) else jax.jit(function))(*inputs))):
        np.save(folder / f"out{i}.npy", np.asarray(array))
