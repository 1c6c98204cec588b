"""Small programs for the reader's tests, compiled by jax-tt-plugin without hardware.

    TT_METAL_MOCK_CLUSTER_DESC_PATH=blackhole_P100.yaml python programs.py FOLDER
"""
import pathlib
import sys
import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
bf16, f32, i32 = jnp.bfloat16, jnp.float32, jnp.int32
shape = jax.ShapeDtypeStruct
square = shape((32, 32), bf16)
row = shape((32,), i32)

programs = {
    "add_relu": (lambda a, b: jax.nn.relu(a + b), square, square),
    "atan2": (jnp.arctan2, square, square),
    "case": (lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x - 1, x), shape((), jnp.bool_), square),
    "count": (lambda x, n: lax.fori_loop(0, n, lambda i, c: c @ c, x), square, shape((), i32)),
    "while": (lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c + c, x), square),
    "cummax": (lambda x: lax.cummax(x, 1, reverse=True), square),
    "rows": (lambda x, i, u: x.at[i].max(u)[i], square, shape((4,), i32), shape((4, 32), bf16)),
    "swiglu": (lambda x, w, v: jax.nn.silu(x @ w) * (x @ v), square, square, square),
    "window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 8), (1, 1), "VALID"), shape((32, 32), f32)),
    "softplus": (lambda a, b: jax.nn.softplus(a) + b, square, square),
    "conv3d": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=("NCDHW", "OIDHW", "NCDHW")),
               shape((1, 32, 2, 4, 4), bf16), shape((32, 32, 1, 1, 1), bf16)),
}

# Options of the compiler.
options = {"trace": {"enable_trace": "true"}}
programs["trace"] = (lambda a: 1 / a, square)

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
device = jax.devices("tt")[0]
for name, (function, *arguments) in programs.items():
    executable = jax.jit(function).lower(*arguments).compile(compiler_options=options.get(name, {})).runtime_executable()
    try:
        container = bytes(device.client.serialize_executable(executable))
    except AttributeError:
        container = bytes(executable.serialize())
    start = container.index(b"TTNN", 16) - 8
    size = int.from_bytes(container[start:start + 4], "little") + 4
    (folder / f"{name}.ttnn").write_bytes(container[start:start + size])
    print(name, size)
