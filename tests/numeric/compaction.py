"""NonZero, Compress and Unique: results as long as the data say, all types, empty and scalar, 1 to 10^6 elements."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 17
I64 = 7
TYPES = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]
TWICE = ("fixed", "free")


def non_zero(name, x, **more):
    places = np.zeros((0, int(bool(x))), np.int64) if x.ndim == 0 else np.array(np.nonzero(x), np.int64)
    return Case(f"NonZero {name}", "NonZero", [x], [places], **more)


def compress(name, x, condition, axis=None, **more):
    flat = x.reshape(-1) if axis is None else x
    along = 0 if axis is None else axis
    kept = condition[:flat.shape[along]]
    found = np.compress(kept, flat, axis=along)
    return Case(f"Compress {name} axis={axis}", "Compress", [x, condition], [found], {} if axis is None else {"axis": axis}, **more)


def unique(name, x, axis=None, order=1, **more):
    """numpy's, but in the order of first occurrence where it is not sorted; equal NaNs are one."""
    wide = x.astype(np.float64) if x.dtype == ml_dtypes.bfloat16 else x
    found, first, inverse, counts = np.unique(wide, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    turn = np.argsort(first, kind="stable") if not order else np.arange(len(first))
    ranks = np.empty(len(turn), np.int64)
    ranks[turn] = np.arange(len(turn))
    first, counts, inverse = first[turn], counts[turn], ranks[inverse] if len(turn) else inverse
    # the element that is first stands for its equals: -0 for 0
    values = np.take(x.reshape(-1) if axis is None else x, first, axis=axis or 0)
    attributes = {"sorted": order} | ({} if axis is None else {"axis": axis})
    return Case(f"Unique {name} axis={axis} sorted={order}", "Unique", [x],
                [values] + [part.astype(np.int64) for part in (first, inverse, counts)], attributes, **more)


def cases():
    generator = np.random.default_rng(7)
    made = []
    for dtype in TYPES:
        x = generator.integers(0, 2 if dtype is np.bool_ else 3, (3, 4, 5)).astype(dtype)
        name = np.dtype(dtype).name
        made.append(non_zero(name, x))
        made.append(compress(name, x, np.array([True, False, True, True]), 1))
        made.append(unique(name, x))
    x = generator.standard_normal((6, 7)).astype(np.float32)
    x[x < 0.3] = 0
    x[0, 1], x[2, 2], x[3, 3] = np.nan, -0.0, np.inf
    made += [non_zero("special", x), non_zero("all", np.ones((4, 3), np.float32)), non_zero("none", np.zeros((4, 3), np.float32)),
             non_zero("empty", np.zeros((4, 0, 3), np.float32)), non_zero("scalar", np.array(2, np.float32)),
             non_zero("scalar of 0", np.array(0, np.int64)), non_zero("one", np.ones(1, np.int64))]
    for axis in (None, 0, 1, -1):
        length = 7 if axis in (1, -1) else 6 if axis == 0 else 42
        for name, size in (("whole", length), ("short", length - 3), ("empty condition", 0)):
            made.append(compress(name, x, generator.integers(0, 2, size).astype(bool), axis))
        made.append(compress("nothing kept", x, np.zeros(length, bool), axis))
    made.append(compress("beyond the axis", x, np.ones(9, bool), 1))
    made.append(compress("no rows", np.zeros((0, 5), np.float32), np.array([True, False, True]), 1))
    x = generator.integers(-2, 3, (5, 8)).astype(np.float32)
    x[1, [2, 5]] = np.nan
    x[0, 0], x[0, 1] = -0.0, 0.0
    for order in (0, 1):
        made.append(unique("special", x, None, order))
        made.append(unique("one", np.array([4], np.int32), None, order))
        made.append(unique("empty", np.zeros(0, np.float32), None, order))
        rows = generator.integers(0, 2, (9, 2, 3)).astype(np.int64)
        for axis in (0, 1, 2, -1, -2):
            made.append(unique("slices", rows, axis, order))
        made.append(unique("float slices", rows.astype(np.float32) - 1, 0, order))
        made.append(unique("bool slices", rows > 0, 0, order))
        made.append(unique("no columns", np.zeros((4, 0), np.float32), 0, order))
    for count in (1, 2, 255, 256, 257, 2049, 65537):
        made.append(non_zero(f"of {count}", generator.integers(0, 2, count).astype(np.float32), modes=TWICE))
        made.append(unique(f"of {count}", generator.integers(0, 1 + count // 3, count).astype(np.int64), None, count % 2, modes=TWICE))
    made.append(non_zero("of 10^6", generator.integers(0, 2, (1000, 1000)).astype(np.uint8), modes=TWICE))
    made.append(compress("of 10^6", generator.standard_normal(1000000).astype(np.float32),
                         generator.integers(0, 2, 1000000).astype(bool), modes=TWICE))
    made.append(unique("of 10^6", generator.integers(0, 5000, 1000000).astype(np.int32), None, 0, modes=TWICE))
    return made
