"""The operations of crates/ops/examples/operations.rs as jitted JAX functions on the CPU, timed: a line of JSON for each with the median of the
warm calls in seconds. `cargo xtask bench models` compares the two.
"""
import json
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RUNS = 21
rng = np.random.default_rng(1)


def array(*shape):
    return jnp.asarray(rng.uniform(-0.5, 0.5, shape), jnp.float32)


def conv(axes, stride=1, groups=1):
    numbers = {2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}[axes]

    def run(x, w):
        pads = [(k // 2, k // 2) for k in w.shape[:axes]]
        return lax.conv_general_dilated(x, w, (stride,) * axes, pads, dimension_numbers=numbers, feature_group_count=groups)

    return run


def pool(init, op, scale):
    return lambda x: lax.reduce_window(x, init, op, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)]) * scale


def layer_norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def transposed(x, w):
    return lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


rows = lambda: (array(1024, 1024),)
operations = [
    ("conv 1x1", conv(2), (array(1, 56, 56, 256), array(1, 1, 256, 64))),
    ("conv 3x3", conv(2), (array(1, 56, 56, 128), array(3, 3, 128, 128))),
    ("conv 3x3, 112 x 112", conv(2), (array(1, 112, 112, 64), array(3, 3, 64, 64))),
    ("conv 3x3, stride 2", conv(2, 2), (array(1, 56, 56, 128), array(3, 3, 128, 256))),
    ("conv 7x7, stride 2", conv(2, 2), (array(1, 224, 224, 3), array(7, 7, 3, 64))),
    ("conv 3x3, depthwise", conv(2, groups=256), (array(1, 56, 56, 256), array(3, 3, 1, 256))),
    ("conv 3x3, 32 groups", conv(2, groups=32), (array(1, 56, 56, 128), array(3, 3, 4, 128))),
    ("conv 2x2, transposed", transposed, (array(1, 28, 28, 256), array(2, 2, 256, 128))),
    ("conv 3x3x3", conv(3), (array(1, 16, 28, 28, 32), array(3, 3, 3, 32, 64))),
    ("max_pool 3x3", pool(-jnp.inf, lax.max, 1.0), (array(1, 112, 112, 64),)),
    ("avg_pool 3x3", pool(0.0, lax.add, 1 / 9), (array(1, 112, 112, 64),)),
    ("layer_norm", layer_norm, rows()),
    ("rms_norm", lambda x: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5), rows()),
    ("softmax", lambda x: jax.nn.softmax(x, -1), rows()),
    ("attention", attention, (array(1, 8, 512, 64), array(1, 8, 512, 64), array(1, 8, 512, 64))),
]
for name, function, inputs in operations:
    compiled = jax.jit(function)
    compiled(*inputs).block_until_ready()
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        compiled(*inputs).block_until_ready()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"name": name, "seconds": statistics.median(seconds)}))
