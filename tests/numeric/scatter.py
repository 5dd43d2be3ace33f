"""ScatterND and ScatterElements: every reduction, equal indices in their order, negative indices, indices out of range (which
change nothing), all types, slices and single elements. References are loops over the updates."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 18
TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
         np.int64, np.uint64]
COMBINE = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": lambda old, new: np.minimum(old, new),
    "max": lambda old, new: np.maximum(old, new),
}


def front(index, size):
    index = int(index) + (size if index < 0 else 0)
    return index if 0 <= index < size else None


def scatter_nd(data, indices, updates, reduction):
    result = data.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        place = tuple(front(i, size) for i, size in zip(indices[at], data.shape))
        if None not in place:
            with np.errstate(over="ignore", invalid="ignore"):
                result[place] = COMBINE[reduction](result[place], updates[at])
    return result


def scatter_elements(data, indices, updates, axis, reduction):
    result = data.copy()
    axis %= data.ndim
    steps = range(indices.shape[axis])
    rest = [range(size) if i != axis else steps for i, size in enumerate(indices.shape)]
    for at in np.ndindex(*[len(r) for r in rest]):
        place = list(at)
        place[axis] = front(indices[at], data.shape[axis])
        if place[axis] is None or any(p >= size for p, size in zip(place, data.shape)):
            continue
        place = tuple(place)
        with np.errstate(over="ignore", invalid="ignore"):
            result[place] = COMBINE[reduction](result[place], updates[at])
    return result


def values(generator, dtype, shape):
    low = 0 if np.dtype(dtype).kind == "u" else -5
    return generator.integers(low, 6, shape).astype(dtype)


def nd_case(name, data, indices, updates, reduction="none", **more):
    return Case(f"ScatterND {name} {reduction}", "ScatterND", [data, indices, updates],
                [scatter_nd(data, indices, updates, reduction)], {"reduction": reduction}, fixed=((1, indices.ndim - 1),), **more)


def elements_case(name, data, indices, updates, axis=0, reduction="none", **more):
    return Case(f"ScatterElements {name} {reduction}", "ScatterElements", [data, indices, updates],
                [scatter_elements(data, indices, updates, axis, reduction)], {"axis": axis, "reduction": reduction}, **more)


def nd_cases(generator):
    made = []
    for dtype in TYPES:
        for reduction in COMBINE:
            data, updates = values(generator, dtype, (6, 5)), values(generator, dtype, (9,))
            indices = np.stack([generator.integers(-6, 6, 9), generator.integers(-5, 5, 9)], -1)  # some are equal
            made.append(nd_case(np.dtype(dtype).name, data, indices, updates, reduction))
    flags = generator.integers(0, 2, (4, 7)).astype(bool)
    made.append(nd_case("bool", flags, np.array([[3], [0], [3]]), generator.integers(0, 2, (3, 7)).astype(bool)))
    for reduction in COMBINE:
        data = generator.standard_normal((7, 3, 40)).astype(np.float32)
        rows = generator.integers(-7, 7, (2, 5, 1))
        made.append(nd_case("slices", data, rows, generator.standard_normal((2, 5, 3, 40)).astype(np.float32), reduction))
        made.append(nd_case("pairs", data, generator.integers(-3, 3, (6, 2)), generator.standard_normal((6, 40)).astype(np.float32),
                            reduction))
        outside = np.array([[9], [-8], [2], [np.iinfo(np.int64).max], [np.iinfo(np.int64).min], [7], [-7]])
        made.append(nd_case("outside", data, outside, generator.standard_normal((7, 3, 40)).astype(np.float32), reduction))
    made.append(nd_case("no updates", data, np.zeros((0, 1), np.int64), np.zeros((0, 3, 40), np.float32)))
    made.append(nd_case("no data", np.zeros((0, 4), np.float32), np.array([[0], [1]]), np.ones((2, 4), np.float32)))
    made.append(nd_case("the whole", np.zeros((2, 2), np.float32), np.zeros((3, 0), np.int64), np.arange(12).reshape(3, 2, 2).astype(np.float32)))
    many = generator.integers(0, 5000, (20000, 1))
    made.append(nd_case("many", np.zeros(5000, np.float32), many, generator.standard_normal(20000).astype(np.float32)))
    made.append(nd_case("many", np.zeros(5000, np.int64), many, generator.integers(-9, 9, 20000), "add"))
    made.append(Case("ScatterND as ONNX Runtime", "ScatterND", [data, rows, generator.standard_normal((2, 5, 3, 40)).astype(np.float32)],
                     "ort", {"reduction": "none"}, fixed=((1, 2),)))
    return made


def elements_cases(generator):
    made = []
    for dtype in TYPES:
        for reduction in COMBINE:
            made.append(elements_case(np.dtype(dtype).name, values(generator, dtype, (5, 6)), generator.integers(-5, 5, (8, 6)),
                                      values(generator, dtype, (8, 6)), 0, reduction))
    for axis in (0, 1, -1):
        data = generator.standard_normal((6, 7, 20)).astype(np.float32)
        shape = [4, 5, 13]
        made.append(elements_case(f"axis {axis}", data, generator.integers(-data.shape[axis], data.shape[axis], shape).astype(np.int32),
                                  generator.standard_normal(shape).astype(np.float32), axis, "add", tolerance=1e-6))
    made.append(elements_case("outside", np.zeros((3, 4), np.float32), np.array([[3, -4, 0, 1 << 40]]), np.ones((1, 4), np.float32)))
    made.append(elements_case("no updates", np.ones((3, 4), np.float32), np.zeros((0, 4), np.int64), np.zeros((0, 4), np.float32)))
    made.append(elements_case("vector", np.zeros(9, np.int32), np.array([1, 1, 8, -1, 3]), np.arange(5, dtype=np.int32)))
    x = generator.standard_normal((5, 6)).astype(np.float32)
    for reduction in COMBINE:
        made.append(Case(f"ScatterElements as ONNX Runtime {reduction}", "ScatterElements",
                         [x, generator.integers(-6, 6, (5, 9)), generator.standard_normal((5, 9)).astype(np.float32)], "ort",
                         {"axis": 1, "reduction": reduction}, tolerance=1e-6))
    made.append(Case("Scatter", "Scatter", [x, generator.integers(0, 5, (2, 6)), np.ones((2, 6), np.float32)], "ort", {"axis": 0}, opset=10))
    return made


def cases():
    generator = np.random.default_rng(17)
    return nd_cases(generator) + elements_cases(generator)
