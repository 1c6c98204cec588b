"""Thirty small functions, jitted and run on the card, each compared with JAX on the CPU in float32.

    tilework card --board p100 -- python examples/jax/functions.py [NAME...]

bfloat16 has to be within 2 % of the range of the result with a correlation of 0.999, float32 within 0.01 %, and
integers and moves exact. The exit code is the number of functions that are not, but for those of KNOWN.
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32

# What the plugin's own kernels compute otherwise (docs/jax.md).
KNOWN = {
    "softmax_f32": "its softmax has a fast exponential and an approximate reciprocal",
    "attention": "its softmax has a fast exponential and an approximate reciprocal",
    "unary_chain": "its exponential is approximate",
    "llama_layer": "its fused SwiGLU wants a width that its cores divide",
}


def convolution(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def rms(x, g):
    x32 = x.astype(F32)
    return (x32 * lax.rsqrt(jnp.mean(x32 * x32, -1, keepdims=True) + 1e-5)).astype(x.dtype) * g


def layer_norm(x, g, b):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + x.dtype.type(1e-5)) * g + b


def attention(q, k, v):
    scores = (q @ jnp.swapaxes(k, -1, -2)).astype(F32) / np.float32(np.sqrt(q.shape[-1]))
    return jax.nn.softmax(scores, axis=-1).astype(v.dtype) @ v


def causal_attention(q, k, v):
    scores = (q @ jnp.swapaxes(k, -1, -2)).astype(F32) / np.float32(np.sqrt(q.shape[-1]))
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, np.float32(-1e9))
    return jax.nn.softmax(scores, axis=-1).astype(v.dtype) @ v


def llama_layer(x, wq, wk, wv, wo, wg, wd, wu, g1, g2):
    h = rms(x, g1)
    heads = lambda w: jnp.swapaxes((h @ w).reshape(32, 4, 32), 0, 1)
    o = jnp.swapaxes(causal_attention(heads(wq), heads(wk), heads(wv)), 0, 1).reshape(32, 128)
    x = x + o @ wo
    h = rms(x, g2)
    return x + (jax.nn.silu(h @ wg) * (h @ wu)) @ wd


def embedding(index, table):
    return table[index]


# The function, and type, shape and scale of each argument.
FUNCTIONS = {
    "add": (lambda a, b: a + b, (BF16, (64, 64)), (BF16, (64, 64))),
    "add_f32": (lambda a, b: a + b, (F32, (64, 96)), (F32, (64, 96))),
    "argmax": (lambda a: jnp.argmax(a, -1), (F32, (32, 64))),
    "attention": (attention, *[(BF16, (4, 64, 32))] * 3),
    "batched_matmul": (lambda a, b: a @ b, (BF16, (4, 32, 64)), (BF16, (4, 64, 32))),
    "broadcast_mul": (lambda a, b: a * b, (BF16, (4, 64, 64)), (BF16, (1, 1, 64))),
    "cast_int": (lambda a: (a * 10).astype(I32) + 3, (F32, (32, 32))),
    "causal_attention": (causal_attention, *[(BF16, (2, 64, 64))] * 3),
    "conv3x3": (convolution, (BF16, (1, 16, 16, 32)), (BF16, (3, 3, 32, 32), 0.1)),
    "conv_s2_relu_pool": (
        lambda x, w: lax.reduce_window(
            jax.nn.relu(convolution(x, w, 2)), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
        ),
        (BF16, (1, 32, 32, 16)),
        (BF16, (3, 3, 16, 32), 0.1),
    ),
    "embedding": (embedding, (I32, (16,), 64), (BF16, (64, 128))),
    "int_arith": (lambda a, b: a * b + a - b, (I32, (32, 64), 1000), (I32, (32, 64), 1000)),
    "kv_cache_update": (
        lambda cache, new: lax.dynamic_update_slice(cache, new, (0, 0, 5, 0)),
        (BF16, (1, 4, 32, 64)),
        (BF16, (1, 4, 1, 64)),
    ),
    "layernorm": (layer_norm, (BF16, (64, 128)), (BF16, (128,)), (BF16, (128,))),
    "linear_bias": (lambda x, w, b: x @ w + b, (BF16, (32, 64)), (BF16, (64, 128)), (BF16, (128,))),
    "llama_layer": (
        llama_layer,
        (BF16, (32, 128)),
        *[(BF16, (128, 128), 0.1)] * 4,
        (BF16, (128, 256), 0.1),
        (BF16, (256, 128), 0.1),
        (BF16, (128, 256), 0.1),
        *[(BF16, (128,))] * 2,
    ),
    "matmul": (lambda a, b: a @ b, (BF16, (64, 128)), (BF16, (128, 96))),
    "matmul_512": (lambda a, b: a @ b, (BF16, (512, 512)), (BF16, (512, 512))),
    "mlp_softmax": (
        lambda x, w, v: jax.nn.softmax(jax.nn.relu(x @ w) @ v, axis=-1),
        (BF16, (64, 128)),
        (BF16, (128, 256), 0.1),
        (BF16, (256, 32), 0.1),
    ),
    "pad": (lambda a: jnp.pad(a, ((1, 2), (3, 4))), (F32, (30, 50))),
    "permute4d": (lambda a: jnp.transpose(a, (0, 2, 1, 3)), (BF16, (1, 8, 32, 32))),
    "relu_sigmoid_tanh": (lambda a: jax.nn.relu(a) + jax.nn.sigmoid(a) * jnp.tanh(a), (BF16, (64, 64))),
    "resblock": (
        lambda x, w, v: jax.nn.relu(x + convolution(jax.nn.relu(convolution(x, w)), v)),
        (BF16, (1, 16, 16, 32)),
        *[(BF16, (3, 3, 32, 32), 0.1)] * 2,
    ),
    "rmsnorm": (rms, (BF16, (64, 128)), (BF16, (128,))),
    "slice_concat": (lambda a: jnp.concatenate([a[:, 32:], a[:, :32]], 1), (BF16, (32, 96))),
    "softmax_f32": (lambda a: jax.nn.softmax(a, axis=-1), (F32, (32, 64))),
    "sum_mean_max": (lambda a: (a.sum(1), a.mean(0), a.max(1)), (BF16, (64, 96))),
    "transpose_reshape": (lambda a: jnp.swapaxes(a, 1, 2).reshape(4, -1), (BF16, (4, 32, 64))),
    "unary_chain": (lambda a: jnp.exp(-jnp.abs(a)) + jnp.sqrt(jnp.abs(a)), (BF16, (32, 128))),
    "where_compare": (lambda a, b: jnp.where(a > b, a, b * a.dtype.type(0.5)), (BF16, (64, 64)), (BF16, (64, 64))),
}
MOVES = {"argmax", "cast_int", "embedding", "int_arith", "kv_cache_update", "pad", "permute4d", "slice_concat"}
MOVES |= {"transpose_reshape"}


def arguments(name):
    random = np.random.default_rng(sum(map(ord, name)))
    for kind, shape, *scale in FUNCTIONS[name][1:]:
        scale = scale[0] if scale else 1
        if kind is I32:
            yield random.integers(0, scale, shape).astype(np.int32)
        else:
            yield np.asarray(jnp.asarray(random.standard_normal(shape) * scale, kind))


def widened(array):
    return array.astype(np.float32) if array.dtype == BF16 else array


def check(name):
    function, inputs = FUNCTIONS[name][0], list(arguments(name))
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.tree.leaves(jax.jit(function)(*[jnp.asarray(widened(array)) for array in inputs]))
    found = jax.tree.leaves(jax.jit(function)(*[jnp.asarray(array) for array in inputs]))
    well, worst = True, 0.0
    for a, b in zip(found, wanted, strict=True):
        a, b = widened(np.asarray(a)), widened(np.asarray(b))
        if a.shape != b.shape:
            return False, f"shape {a.shape} instead of {b.shape}"
        apart = np.abs(a.astype(np.float64) - b).max() / (np.ptp(b.astype(np.float64)) or 1)
        alike = np.corrcoef(a.ravel(), b.ravel())[0, 1] if b.std() > 0 else 1.0
        exact = np.array_equal(a.astype(np.float32), b.astype(np.float32))
        if name in MOVES:
            # Moved bfloat16 are the same numbers.
            well &= exact
        elif any(kind is BF16 for kind, *_ in FUNCTIONS[name][1:]):
            well &= bool(apart <= 0.02 and alike >= 0.999)
        else:
            well &= bool(apart <= 1e-4)
        worst = max(worst, apart)
    return well, f"{100 * worst:.4f} % of the range"


def main():
    names = sys.argv[1:] or list(FUNCTIONS)
    if unknown := [name for name in names if name not in FUNCTIONS]:
        sys.exit(f"no function {unknown[0]!r}; there are {', '.join(FUNCTIONS)}")
    if jax.devices()[0].platform == "cpu":
        sys.exit("JAX has found no card")
    wrong = 0
    for name in names:
        try:
            well, what = check(name)
        except Exception as error:  # What the plugin refuses is its own class.
            well, what = False, "refused: " + str(error).strip().splitlines()[0][:120]
        note = "" if well else f"  (known: {KNOWN[name]})" if name in KNOWN else "  WRONG"
        wrong += not well and name not in KNOWN
        print(f"{'right' if well else 'off':6}{name:20}{what}{note}", flush=True)
    print(f"{len(names)} functions, {wrong} wrong")
    return min(wrong, 99)


if __name__ == "__main__":
    sys.exit(main())
