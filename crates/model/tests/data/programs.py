"""Small programs for the reader's tests, compiled by jax-tt-plugin without hardware.

    TT_METAL_MOCK_CLUSTER_DESC_PATH=blackhole_P100.yaml python programs.py FOLDER [NAME...]

With blackhole_4xP150.yaml the programs for several devices.
"""
import pathlib
import sys
import jax
import jax.experimental.xla_metadata
import jax.numpy as jnp
import numpy as np
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
    "exact_product": (lambda x, w: jnp.matmul(x, w, precision=lax.Precision.HIGHEST), shape((32, 48), f32), shape((48, 40), f32)),
    "softplus": (lambda a, b: jax.nn.softplus(a) + b, square, square),
    "conv3d": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=("NCDHW", "OIDHW", "NCDHW")),
               shape((1, 32, 2, 4, 4), bf16), shape((32, 32, 1, 1, 1), bf16)),
}

# Options of the compiler.
options = {"trace": {"enable_trace": "true"}}
programs["trace"] = (lambda a: 1 / a, square)

# Convolutions whose weights and biases the compiler prepares, with padding.
numbers = ("NHWC", "OIHW", "NHWC")
convolve = lambda x, w, **more: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers, **more)
programs["conv3d_narrow"] = (programs["conv3d"][0], shape((1, 3, 3, 5, 5), bf16), shape((8, 3, 3, 3, 3), bf16))
programs["conv_prepared"] = (lambda x, w, b: jax.nn.relu(convolve(x, w) + b), shape((1, 8, 8, 3), bf16), shape((20, 3, 3, 3), bf16), shape((20,), bf16))
programs["conv_groups"] = (lambda x, w: convolve(x, w, feature_group_count=4), shape((1, 8, 8, 16), bf16), shape((24, 4, 3, 3), bf16))
programs["conv_transposed"] = (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
                               shape((1, 8, 8, 12), bf16), shape((3, 3, 12, 20), bf16))
options |= {name: {"optimization_level": "2"} for name in ("conv_prepared", "conv_groups", "conv_transposed")}


def tt(name, results, **attributes):
    """A function that the compiler knows by name."""
    def call(*operands):
        with jax.experimental.xla_metadata.set_xla_metadata(**attributes):
            return jax.ffi.ffi_call(f"tt.{name}", results)(*operands)
    return call


# Mixtures of experts, and sampling.
mapping = shape((1, 1, 4, 1), i32)
programs["moe_gather"] = (
    lambda x, r, w: jnp.einsum("tkd,tk->td", jnp.einsum("td,tkdf->tkf", x, w[lax.top_k(x @ r, 2)[1]]), jax.nn.softmax(lax.top_k(x @ r, 2)[0])),
    shape((8, 32), bf16), shape((32, 4), bf16), shape((4, 32, 32), bf16))
programs["sparse_matmul"] = (tt("sparse_matmul", shape((1, 2, 1, 3, 32, 32), bf16), is_input_a_sparse="false", is_input_b_sparse="true", nnz="0"),
                             shape((1, 2, 32, 32), bf16), shape((1, 3, 32, 32), bf16), shape((1, 2, 1, 3), bf16))
programs["dispatch"] = (tt("all_to_all_dispatch", (shape((1, 4, 2, 32), bf16), shape((1, 4, 2, 2), i32)), num_devices="1", cluster_axis="0"),
                        shape((4, 2, 1, 32), bf16), shape((4, 2, 1, 2), i32), mapping)
programs["combine"] = (tt("all_to_all_combine", shape((2, 4, 2, 32), bf16), num_devices="1", cluster_axis="0", num_experts_per_tok="2", output_shard_dim="1"),
                       shape((4, 4, 2, 32), bf16), shape((1, 4, 2, 2), i32), mapping)
programs["remap"] = (tt("moe_expert_token_remap", (shape((1, 4, 8, 4), bf16), shape((1, 1, 2, 4), bf16)), reduction_size="16"),
                     shape((1, 4, 8, 4), bf16), mapping, shape((1, 4, 8, 2), i32))
programs["sampling"] = (tt("sampling", shape((32,), i32), seed="3"), shape((32, 64), bf16), shape((32, 64), i32), shape((32,), jnp.uint32),
                        shape((32,), bf16), shape((32,), bf16))

# Programs for several devices: the axes of the mesh, and what of inputs and output is cut along which.
sharded = {
    "mesh_matmul": ((2, 2), lambda x, w: x @ w, [("x", None), (None, "y")], ("x", "y"), shape((64, 32), f32), shape((32, 96), f32)),
    "mesh_batch": ((1, 2), lambda x, w: jax.nn.relu(x @ w), [("y", None), ()], ("y", None), shape((64, 32), f32), shape((32, 32), f32)),
    "mesh_reduce": ((1, 2), lambda x, w: x @ w, [(None, "y"), ("y", None)], (), shape((32, 64), f32), shape((64, 32), f32)),
}
if len(jax.devices("tt")) == 4:
    Sharding, Spec = jax.sharding.NamedSharding, jax.sharding.PartitionSpec
    programs = {}
    for name, (sizes, function, inputs, output, *shapes) in sharded.items():
        devices = np.array(jax.devices("tt")[:sizes[0] * sizes[1]]).reshape(sizes)
        on = lambda axes: Sharding(jax.sharding.Mesh(devices, ("x", "y")), Spec(*axes))
        given = [shape(s.shape, s.dtype, sharding=on(axes)) for s, axes in zip(shapes, inputs)]
        programs[name] = (jax.jit(function, out_shardings=on(output)), *given)

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
device = jax.devices("tt")[0]
for name, (function, *arguments) in programs.items():
    if sys.argv[2:] and name not in sys.argv[2:]:
        continue
    executable = jax.jit(function).lower(*arguments).compile(compiler_options=options.get(name, {})).runtime_executable()
    try:
        container = bytes(device.client.serialize_executable(executable))
    except AttributeError:
        container = bytes(executable.serialize())
    start = container.index(b"TTNN", 16) - 8
    size = int.from_bytes(container[start:start + 4], "little") + 4
    (folder / f"{name}.ttnn").write_bytes(container[start:start + size])
    print(name, size)
