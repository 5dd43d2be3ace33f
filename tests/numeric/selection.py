"""TopK: both orders, ties by place, NaN and -0 as in ONNX Runtime, all types, rows of 1 to 10^6."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 24
TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
         np.int64, np.uint64]


def top_k(x, k, axis, largest):
    """The greatest is NaN, equal ones stand in the order of their places."""
    wide = x.astype(np.float64) if x.dtype == ml_dtypes.bfloat16 else x
    rows = np.moveaxis(wide, axis, -1).reshape(-1, x.shape[axis])
    found = np.zeros((len(rows), k), np.int64)
    for i, row in enumerate(rows):
        if largest:
            found[i] = len(row) - 1 - np.argsort(row[::-1], kind="stable")[::-1][:k]
        else:
            found[i] = np.argsort(row, kind="stable")[:k]
    shape = tuple(np.delete(x.shape, axis % x.ndim)) + (k,)
    found = np.moveaxis(found.reshape(shape), -1, axis)
    return [np.take_along_axis(x, found, axis), found]


def case(name, x, k, axis=-1, largest=1, sorted_=1, expected=None, **more):
    return Case(f"TopK {name} k={k} axis={axis} largest={largest}", "TopK", [x, np.array([k], np.int64)],
                expected or top_k(x, k, axis, largest), {"axis": axis, "largest": largest, "sorted": sorted_},
                outputs=[None, 7] if expected else None, constant=(1,), **more)


def cases():
    generator = np.random.default_rng(5)
    made = []
    for dtype in TYPES:  # few values: many ties
        x = generator.integers(0, 9, (4, 30, 5)).astype(dtype)
        if np.dtype(dtype).kind != "u":
            x = x - np.array(4, dtype)
        for largest in (0, 1):
            made.append(case(np.dtype(dtype).name, x, 7, 1, largest))
    x = generator.standard_normal((3, 40)).astype(np.float32)
    x[0, [3, 7, 30]] = np.nan
    x[1, ::2] = 0
    x[1, ::3] = -0.0
    x[2, [1, 5]] = np.inf
    x[2, [2, 6]] = -np.inf
    for largest in (0, 1):
        for k in (1, 12, 40):
            made.append(case("special", x, k, -1, largest, expected="ort"))
        made.append(case("first axis", x, 2, 0, largest))
        for length in (1, 2, 3, 64, 1000, 4097):
            made.append(case(f"row of {length}", generator.standard_normal((2, length)).astype(np.float32),
                             (length + 1) // 2, 1, largest))
    made.append(case("unsorted", generator.standard_normal((2, 50)).astype(np.float32), 50, 1, 1, 0))
    made.append(case("nothing", np.zeros((2, 5), np.float32), 0, 1))
    made.append(case("no rows", np.zeros((0, 5), np.float32), 3, 1))
    made.append(case("long", generator.standard_normal(1000000).astype(np.float32), 1000, 0, modes=("fixed", "free")))
    made.append(case("long, whole", generator.integers(-(2**62), 2**62, 200000).astype(np.int64), 200000, 0, 0,
                     modes=("fixed", "free")))
    return made
