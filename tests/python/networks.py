"""Two convolutional networks in JAX: `resnet`, two residual blocks of 112 x 112 images, the second with stride 2, and
`unet`, three levels of 64 x 64 images. NETWORKS has each function with the shapes of its arguments.

    pip install jax==0.10.2 jax-tt-plugin==0.1.3
    TT_METAL_MOCK_CLUSTER_DESC_PATH=blackhole_P100.yaml python networks.py FOLDER

compiles both into FOLDER/NAME.ttnn, as examples/mlp/mlp.py does, which says where the description of the board is.
"""
import pathlib
import sys

import jax
import jax.numpy as jnp
from jax import lax

relu = jax.nn.relu


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def doubled(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def halved(x):
    return lax.reduce_window(x, jnp.array(-jnp.inf, x.dtype), lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def resnet(x, w1, w2, w3, w4, shortcut):
    x = relu(x + conv(relu(conv(x, w1)), w2))
    return relu(conv(x, shortcut, 2) + conv(relu(conv(x, w3, 2)), w4))


def unet(x, a1, a2, b1, b2, c1, c2, to_b, d1, d2, to_a, e1, e2, last):
    twice = lambda x, first, second: relu(conv(relu(conv(x, first)), second))
    a = twice(x, a1, a2)
    b = twice(halved(a), b1, b2)
    c = twice(halved(b), c1, c2)
    d = twice(jnp.concatenate([doubled(c, to_b), b], -1), d1, d2)
    e = twice(jnp.concatenate([doubled(d, to_a), a], -1), e1, e2)
    return conv(e, last)


def three(i, o):
    return (3, 3, i, o)


NETWORKS = {
    "resnet": (resnet, [(1, 112, 112, 64), three(64, 64), three(64, 64), three(64, 128), three(128, 128), (1, 1, 64, 128)]),
    "unet": (unet, [(1, 64, 64, 32), three(32, 32), three(32, 32), three(32, 64), three(64, 64), three(64, 128), three(128, 128),
                    (2, 2, 128, 64), three(128, 64), three(64, 64), (2, 2, 64, 32), three(64, 32), three(32, 32), (1, 1, 32, 32)]),
}


def compiled(function, shapes):
    """The TTNN section of the container that the plugin makes: its size, and the identifier behind the next word."""
    arguments = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]
    executable = jax.jit(function).lower(*arguments).compile().runtime_executable()
    container = bytes(executable.serialize())
    start = container.index(b"TTNN", 16) - 8
    return container[start:start + int.from_bytes(container[start:start + 4], "little") + 4]


if __name__ == "__main__":
    # Operations are named by this file, not by its folder.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    for name, (function, shapes) in NETWORKS.items():
        (pathlib.Path(sys.argv[1]) / f"{name}.ttnn").write_bytes(compiled(function, shapes))
