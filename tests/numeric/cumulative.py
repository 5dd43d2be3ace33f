"""CumSum and CumProd: every axis, exclusive, reverse, all types, one row of 10^7, against sums and products in float64."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 26
TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.uint32, np.int64, np.uint64]


def reference(op, x, axis, exclusive, reverse):
    wide = np.float64 if x.dtype.kind not in "iu" else x.dtype
    y = x.astype(wide)
    if reverse:
        y = np.flip(y, axis)
    y = np.cumprod(y, axis, dtype=wide) if op == "CumProd" else np.cumsum(y, axis, dtype=wide)
    if exclusive:
        y = np.roll(y, 1, axis)
        first = [slice(None)] * x.ndim
        first[axis] = slice(0, 1)
        y[tuple(first)] = 1 if op == "CumProd" else 0
    return (np.flip(y, axis) if reverse else y).astype(x.dtype)


def tolerance(x, axis):
    unit = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}.get(x.dtype.name)
    if unit is None:
        return 0.0
    accumulator = 2.0**-53 if x.dtype == np.float64 else 2.0**-24
    return (0 if unit == accumulator else unit) + accumulator * (8 + 4 * np.sqrt(max(x.shape[axis], 1)))


def case(name, op, x, axis, exclusive=0, reverse=0, **more):
    return Case(f"{op} {name} axis={axis} exclusive={exclusive} reverse={reverse}", op, [x, np.array(axis, np.int64)],
                [reference(op, x, axis, exclusive, reverse)], {"exclusive": exclusive, "reverse": reverse},
                tolerance=tolerance(x, axis), constant=(1,), **more)


def cases():
    generator = np.random.default_rng(5)
    made = []
    for op in ("CumSum", "CumProd"):
        for dtype in TYPES:
            x = generator.uniform(0.5, 1.5, (3, 37, 5)) if np.dtype(dtype).kind not in "iu" else \
                generator.integers(0, 4, (3, 37, 5))
            for flags in range(4):
                made.append(case(np.dtype(dtype).name, op, x.astype(dtype), flags - 1, flags & 1, flags >> 1))
        x = generator.uniform(0.9, 1.1, (4, 9, 40)).astype(np.float32)
        for axis in (0, 1, 2, -2):
            made.append(case("columns", op, x, axis, axis & 1, axis >> 1 & 1))
        made.append(case("empty", op, np.zeros((0, 3), np.float32), 1))
        made.append(case("no row", op, np.zeros((3, 0), np.float32), 1, 1))
        made.append(case("one", op, np.array([2.5], np.float32), 0, 1, 1))
        special = np.array([[1, np.inf, 2, -np.inf, 3], [1, np.nan, 2, 3, 4]], np.float32)
        made.append(case("special", op, special, 1))
        made.append(case("special", op, special, 1, 1, 1))
        made.append(case("wide", op, generator.uniform(0.9, 1.1, (5, 700)).astype(np.float32), 0))
    for flags in range(4):
        made.append(case("long", "CumSum", generator.standard_normal((2, 100001)).astype(np.float32), 1, flags & 1, flags >> 1))
    made.append(case("longest", "CumSum", generator.standard_normal(10000000).astype(np.float32), 0,
                     modes=("fixed", "free")))
    made.append(case("long, whole", "CumSum", generator.integers(-9, 9, 300000).astype(np.int64), 0, 1, 1))
    return made
