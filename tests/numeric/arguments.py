"""ArgMax and ArgMin: axes, keepdims, ties from both ends, NaN as in numpy, all number types."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 13
TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
         np.int64, np.uint64]


def reference(op, x, axis, keep, last):
    x = x.astype(np.float64) if x.dtype == ml_dtypes.bfloat16 else x
    find = np.argmax if op == "ArgMax" else np.argmin
    if last:
        found = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
    else:
        found = find(x, axis)
    return np.expand_dims(found, axis) if keep else np.asarray(found)


def case(name, op, x, axis=0, keep=1, last=0, **more):
    attributes = {"axis": axis, "keepdims": keep, "select_last_index": last}
    return Case(f"{op} {name} axis={axis} keep={keep} last={last}", op, [x],
                [reference(op, x, axis, keep, last).astype(np.int64)], attributes, **more)


def cases():
    generator = np.random.default_rng(5)
    made = []
    for op in ("ArgMax", "ArgMin"):
        for dtype in TYPES:  # few values: many ties
            x = generator.integers(0, 5, (4, 9, 5)).astype(dtype)
            for last in (0, 1):
                made.append(case(np.dtype(dtype).name, op, x, axis=1, keep=last, last=last))
        x = generator.standard_normal((3, 4, 70)).astype(np.float32)
        for axis in (0, 1, 2, -1, -3):
            made.append(case("shape", op, x, axis, axis % 2, axis < 0))
        made.append(case("long", op, generator.integers(0, 1000, (2, 30000)).astype(np.float32), 1, 0, 1))
        x = generator.standard_normal((6, 40)).astype(np.float32)
        x[0, [3, 7, 30]] = np.nan
        x[1, :] = np.nan
        x[2, 5] = np.inf
        x[3, :] = -np.inf
        x[4, :] = 0
        x[4, ::3] = -0.0
        for last in (0, 1):
            made.append(case("special", op, x, 1, 1, last))
        made.append(case("one", op, np.array([3.0], np.float32), 0, 1, 0))
        made.append(case("no rows", op, np.zeros((0, 3), np.float32), 1, 0, 0))
    return made
