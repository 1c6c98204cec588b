"""Inputs of the compiled programs in crates/model/tests/data, and what JAX on the CPU makes of them in float32.

    JAX_PLATFORMS=cpu python expected.py        writes VERSION-NAME/in0.npy ... out0.npy ... beside this file

Inputs of type bfloat16 are rounded to it and stored as float32. The functions are those of that folder's programs.py.
"""
import pathlib
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
for name, (function, *makers) in cases.items():
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = [make(rng) for make in makers]
    folder = pathlib.Path(__file__).parent / name
    folder.mkdir(exist_ok=True)
    for i, array in enumerate(inputs):
        np.save(folder / f"in{i}.npy", np.asarray(array))
    for i, array in enumerate(jax.tree_util.tree_leaves(jax.jit(function)(*inputs))):
        np.save(folder / f"out{i}.npy", np.asarray(array))
