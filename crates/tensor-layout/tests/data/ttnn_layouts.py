"""Writes ttnn_layouts.txt: how ttnn lays tensors out, as lengths and hashes of their bytes.

Run as `python ttnn_layouts.py > ttnn_layouts.txt` where ttnn is installed (0.81.1 here; it needs no card). A line is
`shape type layout : padded shape : bytes hash`; the layout is `rows` or the shape of the tiles, the hash 64-bit FNV-1a.
The elements are those of `element` below, in row-major order.
"""

import os
import sys
import tempfile

import numpy as np

# ttnn logs to standard output.
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import ttnn  # noqa: E402

SHAPES = ["1", "5", "32", "100", "3x5", "32x32", "33x40", "1x1", "64x16", "2x3x4", "3x33x17", "2x1x40x70", "2x2x2x9x65"]
FLOATS = ["f32", "bf16", "bfp8_b", "bfp4_b"]
INTEGERS = ["i32", "u32", "u16", "u8"]
TTNN = {
    "f32": ttnn.float32, "bf16": ttnn.bfloat16, "bfp8_b": ttnn.bfloat8_b, "bfp4_b": ttnn.bfloat4_b,
    "i32": ttnn.int32, "u32": ttnn.uint32, "u16": ttnn.uint16, "u8": ttnn.uint8,
}
NUMPY = {"i32": np.int32, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8}
TILES = ["32x32", "16x32", "32x16", "16x16", "8x32", "4x16", "1x32"]


def element(i):
    """24 odd bits with a sign and one of eight exponents: no element of a block is a tie."""
    word = (i * 2654435761 + 12345) % 2**32
    magnitude = (word >> 8) | 1
    return (-1) ** (word & 1) * magnitude * 2.0 ** -(word >> 1 & 7)


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def tile_bytes(height, width, dtype):
    bits = {"f32": 32, "i32": 32, "u32": 32, "bf16": 16, "u16": 16, "u8": 8, "bfp8_b": 8, "bfp4_b": 4}[dtype]
    exponents = -(-height * width // 16 // 16) * 16 if dtype.startswith("bfp") else 0
    return exponents + height * width * bits // 8


def stored(tensor, length):
    """The bytes of a tensor: the end of the file that ttnn writes."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "tensor.tensorbin")
        ttnn.dump_tensor(name, tensor)
        with open(name, "rb") as file:
            data = file.read()
    assert length <= len(data) <= length + 4096, (length, len(data))
    return data[len(data) - length:]


def line(shape, dtype, layout):
    dims = [int(d) for d in shape.split("x")]
    count = int(np.prod(dims))
    if dtype in NUMPY:
        array = np.array([((i * 2654435761 + 12345) % 2**32) for i in range(count)], np.uint64).astype(NUMPY[dtype])
    else:
        array = np.array([element(i) for i in range(count)], np.float32)
    array = array.reshape(dims)
    if layout == "rows":
        tensor = ttnn.Tensor(array, TTNN[dtype], layout=ttnn.ROW_MAJOR_LAYOUT)
        length = count * tile_bytes(1, 16, dtype) // 16
    else:
        height, width = (int(d) for d in layout.split("x"))
        tensor = ttnn.Tensor(array, TTNN[dtype], layout=ttnn.TILE_LAYOUT, tile=ttnn.Tile((height, width)))
        tiles = int(np.prod(list(tensor.padded_shape))) // (height * width)
        length = tiles * tile_bytes(height, width, dtype)
    padded = "x".join(str(d) for d in list(tensor.padded_shape))
    print(f"{shape} {dtype} {layout} : {padded} : {length} {fnv(stored(tensor, length)):016x}", file=out)


for shape in SHAPES:
    for dtype in FLOATS + INTEGERS:
        if not dtype.startswith("bfp"):
            line(shape, dtype, "rows")
        line(shape, dtype, "32x32")
for layout in TILES[1:]:
    for shape in ["3x33x17", "20x50"]:
        for dtype in FLOATS + ["u16", "u8"]:
            try:
                line(shape, dtype, layout)
            except RuntimeError as error:
                print(shape, dtype, layout, str(error).splitlines()[0], file=sys.stderr)
