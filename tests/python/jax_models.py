"""Compiled programs as JAX functions on the CPU, timed: what `cargo xtask bench models` compares the native engine with.

    python jax_models.py FOLDER...           each is named by its program and holds in*.npy and out0.npy
    python jax_models.py --make FOLDER...    writes these arrays of the programs in networks.py

Inputs are bfloat16, as the compiled programs have them. Prints a line of JSON for each: the median of the runs in seconds and the largest
error as a part of the range of out0.npy, which shows that the function is the compiled one.
"""
import json
import pathlib
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from networks import NETWORKS

RUNS = 51
HEADS, HEAD = 4, 32


def rms_norm(x, gain):
    wide = x.astype(jnp.float32)
    scale = lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-5)
    return (wide * scale * gain.astype(jnp.float32)).astype(x.dtype)


def rotate(x):
    position = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None]
    angle = position * (10000.0 ** (-jnp.arange(0, HEAD, 2, dtype=jnp.float32) / HEAD))
    cos, sin = jnp.cos(angle).astype(x.dtype), jnp.sin(angle).astype(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def llama_layer(x, wq, wk, wv, wo, w1, w2, w3, g1, g2):
    heads = lambda t: t.reshape(-1, HEADS, HEAD).transpose(1, 0, 2)
    h = rms_norm(x, g1)
    q, k, v = rotate(heads(h @ wq)), rotate(heads(h @ wk)), heads(h @ wv)
    scores = (q @ k.transpose(0, 2, 1)).astype(jnp.float32) / np.sqrt(HEAD)
    mask = jnp.tril(jnp.ones(scores.shape[1:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), -1).astype(x.dtype)
    x = (weights @ v).transpose(1, 0, 2).reshape(x.shape) @ wo + x
    h = rms_norm(x, g2)
    return (jax.nn.silu(h @ w1) * (h @ w3)) @ w2 + x


def resblock(x, w1, w2):
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(x + conv(jax.nn.relu(conv(x, w1)), w2))


def make(folder):
    """Random arrays, weights of a size that keeps that of the values, and the result in float32."""
    function, shapes = NETWORKS[folder.name]
    random = np.random.default_rng(7)
    arrays = [random.normal(0, 1 if i == 0 else np.prod(shape[:-1]) ** -0.5, shape) for i, shape in enumerate(shapes)]
    arrays = [np.asarray(jnp.asarray(array, jnp.bfloat16), np.float32) for array in arrays]
    for i, array in enumerate(arrays):
        np.save(folder / f"in{i}.npy", array)
    np.save(folder / "out0.npy", np.asarray(jax.jit(function)(*arrays)))


folders = [pathlib.Path(folder) for folder in sys.argv[1:]]
if sys.argv[1] == "--make":
    for folder in folders[1:]:
        make(folder)
    sys.exit()
programs = {"matmul_512": lambda a, b: a @ b, "llama_layer": llama_layer, "resblock": resblock}
programs |= {name: function for name, (function, _) in NETWORKS.items()}
for folder in folders:
    name, function = folder.name, programs[folder.name]
    count = len(list(folder.glob("in*.npy")))
    inputs = [jnp.asarray(np.load(folder / f"in{i}.npy"), jnp.bfloat16) for i in range(count)]
    compiled = jax.jit(function)
    found = np.asarray(compiled(*inputs).astype(jnp.float32))
    expected = np.load(folder / "out0.npy")
    error = float(np.abs(found.reshape(expected.shape) - expected).max() / (expected.max() - expected.min()))
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        compiled(*inputs).block_until_ready()
        times.append(time.perf_counter() - started)
    print(json.dumps({"name": name, "seconds": statistics.median(times), "error": error}), flush=True)
