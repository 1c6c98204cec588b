"""A small network in JAX, compiled for a Blackhole P100 without hardware, with inputs and expected outputs.

    pip install jax==0.10.2 jax-tt-plugin==0.1.3
    TT_METAL_MOCK_CLUSTER_DESC_PATH=blackhole_P100.yaml python mlp.py

`blackhole_P100.yaml` is among the cluster descriptions of the public user-mode driver's tests (tenstorrent/tt-umd,
tests/cluster_descriptor_examples).
"""
import jax
import jax.numpy as jnp
import numpy as np

# Operations are named by this file, not by its folder.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


def mlp(x, w1, b1, w2, b2):
    """Two layers and a softmax over ten classes."""
    hidden = jax.nn.relu(x @ w1 + b1)
    return jax.nn.softmax(hidden @ w2 + b2, axis=-1)


random = np.random.default_rng(7)
shapes = [(16, 64), (64, 32), (32,), (32, 10), (10,)]
inputs = [random.normal(0, 0.5, shape).astype(jnp.bfloat16) for shape in shapes]

# What a device should compute: the same in float32, on the CPU.
with jax.default_device(jax.devices("cpu")[0]):
    wide = [np.asarray(a, np.float32) for a in inputs]
    np.save("out0.npy", np.asarray(mlp(*wide)))
for i, array in enumerate(wide):
    np.save(f"in{i}.npy", array)

device = jax.devices("tt")[0]
arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inputs]
executable = jax.jit(mlp).lower(*arguments).compile().runtime_executable()
try:
    container = bytes(device.client.serialize_executable(executable))
except AttributeError:
    container = bytes(executable.serialize())
# The file is one section of the container: its size, and the identifier TTNN behind the next word.
start = container.index(b"TTNN", 16) - 8
size = int.from_bytes(container[start : start + 4], "little") + 4
with open("mlp.ttnn", "wb") as file:
    file.write(container[start : start + size])
