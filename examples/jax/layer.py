"""A transformer layer, jitted by JAX, on the card; compared with NumPy in 64 bits.

    tilework card --board p100 --counts counts.json --trace layer.pftrace -- python examples/jax/layer.py

The difference is that of bfloat16 and of the plugin's own kernels, whose exponential and reciprocal
of a softmax are approximations of some per cent.
"""

import jax
import jax.numpy as jnp
import numpy as np

TOKENS, WIDTH, HIDDEN = 32, 64, 128


def normed(x, lib):
    return x / lib.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def layer(x, wq, wk, wv, wo, w1, w2, lib=jnp):
    """Attention and a network of two layers, each added to its input."""
    y = normed(x, lib)
    scores = (y @ wq) @ (y @ wk).T / WIDTH**0.5
    weights = lib.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    x = x + weights @ (y @ wv) @ wo
    return x + lib.maximum(normed(x, lib) @ w1, 0) @ w2


def main():
    print(jax.devices())
    random = np.random.default_rng(7)
    shapes = [(TOKENS, WIDTH)] + [(WIDTH, WIDTH)] * 4 + [(WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    arrays = [random.normal(size=shape, scale=shape[0] ** -0.5).astype(np.float32) for shape in shapes]
    arrays[0] *= TOKENS**0.5
    got = np.asarray(jax.jit(layer)(*arrays)).astype(np.float64)
    want = layer(*[array.astype(np.float64) for array in arrays], lib=np)
    error = np.abs(got - want).max() / np.abs(want).max()
    print(f"the largest difference is {error:.4f} of the largest value")
    moved = sum(array.nbytes for array in arrays)
    print(f"arguments and result have {moved} and {got.size * 4} bytes")
    assert error < 0.03, (got, want)


if __name__ == "__main__":
    main()
