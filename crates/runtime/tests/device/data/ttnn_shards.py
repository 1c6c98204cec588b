"""Writes ttnn_shards.txt: where ttnn puts the pages of sharded tensors.

Run as `python ttnn_shards.py > ttnn_shards.txt` where ttnn (0.81.1 here) has a card or a simulator of one. A line is
`shape type layout : sharding orientation shard cores : page bytes, bytes from page to page : places`. The layout is
`rows` or the shape of the tiles, cores are rectangles `x,y-x,y`. There is a place for each page in their order,
`x,y,n`: the core, and how many pages after the buffer's address. The folder `generated` that ttnn leaves behind is its
log and not needed.
"""

import os
import sys

import numpy as np

# ttnn logs to standard output.
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import ttnn  # noqa: E402

TTNN = {"u32": ttnn.uint32, "u16": ttnn.uint16, "bf16": ttnn.bfloat16, "bfp8_b": ttnn.bfloat8_b}
LAYOUT = {
    "height": ttnn.TensorMemoryLayout.HEIGHT_SHARDED, "width": ttnn.TensorMemoryLayout.WIDTH_SHARDED,
    "block": ttnn.TensorMemoryLayout.BLOCK_SHARDED,
}
ORIENTATION = {"row": ttnn.ShardOrientation.ROW_MAJOR, "col": ttnn.ShardOrientation.COL_MAJOR}
CASES = [
    # Height: even, uneven, one shard, a set of two rectangles, rows of odd width, several matrices.
    ("128x64", "u32", "32x32", "height", "32x64", "0,0-3,0"),
    ("150x60", "bf16", "32x32", "height", "64x64", "0,0-1,1"),
    ("33x1", "bfp8_b", "32x32", "height", "64x32", "0,0-0,0"),
    ("150x60", "u32", "32x32", "height", "32x64", "0,0-1,1 4,0-5,2"),
    ("150x60", "bf16", "16x32", "height", "48x64", "0,0-1,1"),
    ("150x60", "u32", "rows", "height", "40x60", "1,1-2,2"),
    ("7x5", "u32", "rows", "height", "2x5", "0,0-3,0"),
    ("2x3x33x40", "bf16", "32x32", "height", "128x64", "0,0-2,0"),
    # Width.
    ("40x150", "u32", "32x32", "width", "64x64", "0,0-1,1"),
    ("64x256", "bfp8_b", "32x32", "width", "64x32", "0,0-3,1"),
    ("40x150", "u32", "rows", "width", "40x64", "0,0-2,0"),
    ("40x150", "bf16", "16x16", "width", "48x48", "2,0-3,1"),
    ("3x5x70", "u16", "rows", "width", "15x16", "0,0-4,0"),
    # Block: on as many cores as needed, on more, uneven in one or both directions.
    ("128x128", "u32", "32x32", "block", "64x64", "0,0-1,1"),
    ("100x150", "u32", "32x32", "block", "64x64", "0,0-2,2"),
    ("100x150", "bfp8_b", "32x32", "block", "32x96", "1,2-4,5"),
    ("100x150", "u16", "rows", "block", "50x64", "0,0-2,2"),
    ("100x150", "u32", "rows", "block", "40x50", "0,0-2,2"),
    ("2x50x90", "bf16", "32x16", "block", "64x48", "0,0-1,1"),
    ("32x32", "bf16", "32x32", "block", "32x32", "3,3-3,3"),
]


def core_range(text):
    (x0, y0), (x1, y1) = ([int(n) for n in corner.split(",")] for corner in text.split("-"))
    return ttnn.CoreRange(ttnn.CoreCoord(x0, y0), ttnn.CoreCoord(x1, y1))


def line(device, shape, dtype, layout, sharding, shard, cores, orientation):
    dims = [int(d) for d in shape.split("x")]
    ranges = ttnn.CoreRangeSet([core_range(text) for text in cores.split()])
    spec = ttnn.ShardSpec(ranges, [int(d) for d in shard.split("x")], ORIENTATION[orientation])
    memory = ttnn.MemoryConfig(LAYOUT[sharding], ttnn.BufferType.L1, spec)
    array = np.ones(dims, {"u32": np.uint32, "u16": np.uint16}.get(dtype, np.float32))
    if layout == "rows":
        # Only here the memory has a say in the padding of the width.
        tensor = ttnn.Tensor(array, TTNN[dtype], device, ttnn.ROW_MAJOR_LAYOUT, memory)
    else:
        tile = ttnn.Tile([int(d) for d in layout.split("x")])
        tensor = ttnn.Tensor(array, TTNN[dtype], layout=ttnn.TILE_LAYOUT, tile=tile).to(device, memory)
    distance = tensor.buffer_aligned_page_size()
    places = {}
    for page in ttnn._ttnn.reports.get_buffer_pages(device):
        if page.address == tensor.buffer_address():
            after, rest = divmod(page.page_address - page.address, distance)
            assert rest == 0
            places[page.page_index] = f"{page.core_x},{page.core_y},{after}"
    assert sorted(places) == list(range(tensor.buffer_num_pages()))
    places = " ".join(places[page] for page in range(len(places)))
    sizes = f"{tensor.buffer_page_size()},{distance}"
    print(f"{shape} {dtype} {layout} : {sharding} {orientation} {shard} {cores} : {sizes} : {places}", file=out)
    tensor.deallocate()


device = ttnn.open_device(device_id=0)
for case in CASES:
    for orientation in ORIENTATION:
        try:
            line(device, *case, orientation)
        except RuntimeError as error:
            print(*case, orientation, *str(error).splitlines()[:4], file=sys.stderr)
ttnn.close_device(device)
