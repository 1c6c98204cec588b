"""Stock ttnn operations one after the other in one process, in a random order, on one simulated card.

    python tests/python/ttnn_mixed.py FOLDER [SEED] [COUNT]

FOLDER has `ttnn_ops.py`, whose operations, references and limits are taken; it runs each in a process of its own. What
a kernel leaves behind, in the coprocessor, in L1 or on the host, must not change what later ones compute: so each
operation that is right alone has to be right here. The exit code is the number of those that are not.
"""
import os
import random
import sys


def arguments(ops, numpy, ttnn, device, name):
    """The operation's inputs on the device, and their values after rounding."""
    generator = numpy.random.default_rng(sum(map(ord, name)))
    for given in ops.OPS[name]["ins"]:
        drawn = ops.draw(generator, given.shape, given.dist)
        layout = ttnn.TILE_LAYOUT if given.lay == ops.T else ttnn.ROW_MAJOR_LAYOUT
        kind = ttnn.float32 if given.dt in (ops.B8, ops.B4) else getattr(ttnn, given.dt)
        is_float = given.dt in (ops.BF, ops.F32, ops.B8, ops.B4)
        values = drawn.astype(numpy.float32 if is_float else numpy.int64).flatten().tolist()
        host = ttnn.Tensor(values, list(given.shape), kind, layout)
        if kind is not getattr(ttnn, given.dt):
            host = ttnn.to_dtype(host, getattr(ttnn, given.dt))
        ops.HOST.append(host)
        ops.VAL.append(values_of(numpy, ttnn, host).reshape(given.shape))
        if given.mem == "host":
            yield host
        elif isinstance(given.mem, tuple):
            yield host.to(device, ops.SHARD(given.shape, given.mem))
        else:
            known = {None: ttnn.DRAM_MEMORY_CONFIG, "L1": ttnn.L1_MEMORY_CONFIG}
            yield host.to(device, known.get(given.mem, given.mem))


def values_of(numpy, ttnn, host):
    blocks = host.dtype in (ttnn.bfloat8_b, ttnn.bfloat4_b)
    return numpy.array((ttnn.to_dtype(host, ttnn.float32) if blocks else host).to_list(), numpy.float64)


def is_right(numpy, operation, found, wanted):
    error = numpy.abs(found - wanted).max() / max(1e-9, numpy.abs(wanted).max())
    a, b = found.flatten() - found.mean(), wanted.flatten() - wanted.mean()
    scale = numpy.sqrt((a * a).sum() * (b * b).sum())
    alike = float((a * b).sum() / scale) if scale > 0 else 1.0
    good = numpy.isfinite(found).all() and error <= operation["err"] + 1e-12 and alike >= operation["pcc"]
    return bool(good), f"error {error:.3g}, correlation {alike:.5f}"


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    import numpy
    import ttnn
    import ttnn_ops as ops

    ops.define()
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    # Some want a device of their own kind.
    names = [name for name, operation in ops.OPS.items() if not operation["dev"]]
    random.Random(seed).shuffle(names)
    names = names[: int(sys.argv[3]) if len(sys.argv) > 3 else None]
    device = ttnn.open_device(device_id=0, l1_small_size=24576)
    ops.DEV[0] = device
    wrong = 0
    for name in names:
        ops.HOST.clear(), ops.VAL.clear()
        inputs = []
        try:
            inputs.extend(arguments(ops, numpy, ttnn, device, name))
            result = ops.OPS[name]["fn"](*inputs)
            ttnn.synchronize_device(device)
            result = result[0] if isinstance(result, (tuple, list)) else result
            wanted = numpy.asarray(ops.OPS[name]["ref"](*ops.VAL), numpy.float64)
            found = values_of(numpy, ttnn, result.cpu()).reshape(wanted.shape)
            good, what = is_right(numpy, ops.OPS[name], found, wanted)
        except Exception as error:
            good, what = False, str(error).strip().splitlines()[0][:150]
        for tensor in inputs:
            if ttnn.is_tensor_storage_on_device(tensor) and tensor.is_allocated():
                ttnn.deallocate(tensor)
        if not good:
            wrong += 1
            print(f"WRONG {name}: {what}", flush=True)
    print(f"{len(names)} operations in the order of seed {seed}: {wrong} wrong", flush=True)
    ttnn.close_device(device)
    return min(wrong, 99)


if __name__ == "__main__":
    # Interpreters that end with a device's objects alive may end badly.
    code = main()
    sys.stdout.flush()
    os._exit(code)
