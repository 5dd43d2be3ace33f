"""DynamicQuantizeLinear, MatMulInteger, ConvInteger and DynamicQuantizeLSTM: exact integers, against ONNX Runtime and numpy."""
import numpy as np
from numeric import Case

OPSET = 20
UINT8, INT32, FLOAT = 2, 6, 1
EIGHT = {"u8": np.uint8, "i8": np.int8}


def random(generator, dtype, shape):
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)


def quantize_cases(generator):
    made = []
    samples = {
        "both signs": generator.standard_normal((3, 7, 5)), "positive": generator.random((40,)) + 2, "negative": -generator.random((2, 9)) - 1,
        "zeros": np.zeros((4, 4)), "halves": np.arange(-255, 256) / 2, "one": np.array([3.5]), "scalar": np.array(-2.5),
        "long": generator.standard_normal(100003) * 7, "tiny": generator.standard_normal(20) * 1e-30,
    }
    for name, x in samples.items():
        made.append(Case(f"DynamicQuantizeLinear {name}", "DynamicQuantizeLinear", [np.asarray(x, np.float32)], "ort",
                         outputs=[UINT8, FLOAT, UINT8]))
    x = generator.standard_normal((5, 40)).astype(np.float32)
    scale = (max(x.max(), np.float32(0)) - min(x.min(), np.float32(0))) / np.float32(255)
    zero = np.round(-x.min() / scale)
    y = np.clip(np.round(x / scale) + zero, 0, 255).astype(np.uint8)
    x[2, 7] = np.nan  # does not count for the range
    y[2, 7] = 0
    made.append(Case("DynamicQuantizeLinear NaN", "DynamicQuantizeLinear", [x], [y, np.asarray(scale), np.asarray(zero, np.uint8)],
                     outputs=[UINT8, FLOAT, UINT8]))
    return made


def matmul_case(name, inputs):
    a, b = (np.asarray(x, np.int64) for x in inputs[:2])
    zeros = [np.asarray(z, np.int64) if z is not None else 0 for z in (inputs[2:] + [None, None])[:2]]
    if np.ndim(zeros[0]) == 1 and zeros[0].size > 1:
        zeros[0] = zeros[0][:, None]
    result = np.matmul(a - zeros[0], b - zeros[1]).astype(np.int32)
    spread = tuple((i, axis) for i in (2, 3) if i < len(inputs) and (np.ndim(inputs[i]) > 1 or np.shape(inputs[i]) == (1,))
                   for axis in range(np.ndim(inputs[i])))
    return Case(f"MatMulInteger {name}", "MatMulInteger", inputs, [result], outputs=[INT32], fixed=spread)


def matmul_cases(generator):
    made = []
    for left in EIGHT:
        for right in EIGHT:
            for m, k, n in ((1, 1, 1), (3, 17, 5), (33, 257, 70), (1, 300, 129)):
                a, b = random(generator, EIGHT[left], (m, k)), random(generator, EIGHT[right], (k, n))
                za, zb = random(generator, EIGHT[left], ()), random(generator, EIGHT[right], ())
                made.append(matmul_case(f"{left} {right} {m}x{k}x{n}", [a, b, za, zb]))
                made.append(matmul_case(f"{left} {right} {m}x{k}x{n} no zero points", [a, b]))
                made.append(matmul_case(f"{left} {right} {m}x{k}x{n} by row and column",
                                        [a, b, random(generator, EIGHT[left], (m,)), random(generator, EIGHT[right], (n,))]))
    a, b = random(generator, np.uint8, (2, 3, 4, 9)), random(generator, np.int8, (3, 9, 6))
    made.append(matmul_case("batches", [a, b, np.array(7, np.uint8), np.array([3], np.int8)]))
    made.append(matmul_case("batches, a number a row and a column",
                            [a, b, random(generator, np.uint8, (2, 3, 4, 1)), random(generator, np.int8, (3, 1, 6))]))
    made.append(matmul_case("only b's", [a, b, None, np.array(-5, np.int8)]))
    made.append(matmul_case("vector", [random(generator, np.uint8, (9,)), b[0], np.array(200, np.uint8)]))
    made.append(matmul_case("nothing to sum", [np.zeros((3, 0), np.uint8), np.zeros((0, 4), np.uint8), np.array(9, np.uint8)]))
    made.append(matmul_case("no rows", [np.zeros((0, 4), np.uint8), random(generator, np.int8, (4, 3))]))
    made.append(matmul_case("large", [np.full((2, 70000), 255, np.uint8), np.full((70000, 2), -128, np.int8)]))
    return made


def convolution(x, w, xz, wz, strides, pads, dilations, group):
    """By shifted copies of the padded input, in 64 bits."""
    spatial = x.ndim - 2
    x, w = x.astype(np.int64) - xz, w.astype(np.int64) - (np.reshape(wz, (-1,) + (1,) * (w.ndim - 1)) if np.ndim(wz) else wz)
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[spatial + i]) for i in range(spatial)])
    sizes = [(x.shape[2 + i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(spatial)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes), np.int64)
    inputs, outputs = w.shape[1], w.shape[0] // group
    for tap in np.ndindex(*w.shape[2:]):
        window = tuple(slice(tap[i] * dilations[i], tap[i] * dilations[i] + (sizes[i] - 1) * strides[i] + 1, strides[i])
                       for i in range(spatial))
        part = x[(slice(None), slice(None)) + window]
        for g in range(group):
            y[:, g * outputs:(g + 1) * outputs] += np.einsum("nc...,mc->nm...", part[:, g * inputs:(g + 1) * inputs],
                                                             w[(slice(g * outputs, (g + 1) * outputs), slice(None)) + tap])
    return y.astype(np.int32)


def conv_case(generator, name, types, x_shape, w_shape, zeros="both", strides=None, pads=None, dilations=None, group=1):
    spatial = len(x_shape) - 2
    x, w = random(generator, EIGHT[types[0]], x_shape), random(generator, EIGHT[types[1]], w_shape)
    strides, pads, dilations = strides or [1] * spatial, pads or [0] * (2 * spatial), dilations or [1] * spatial
    xz = random(generator, x.dtype, ()) if zeros != "none" else None
    wz = None if zeros in ("none", "x") else random(generator, w.dtype, (w_shape[0],) if zeros == "channels" else ())
    inputs = [x, w, xz, wz]
    while inputs[-1] is None:
        inputs.pop()
    expected = convolution(x, w, 0 if xz is None else xz.astype(np.int64), 0 if wz is None else wz.astype(np.int64), strides, pads,
                           dilations, group)
    return Case(f"ConvInteger {name}", "ConvInteger", inputs, [expected],
                {"strides": strides, "pads": pads, "dilations": dilations, "group": group}, outputs=[INT32],
                fixed=tuple((1, i) for i in range(len(w_shape))))


def conv_cases(generator):
    made = [conv_case(generator, f"{left} {right} {zeros}", (left, right), (2, 5, 19), (7, 5, 3), zeros, pads=[1, 1])
            for left in EIGHT for right in EIGHT for zeros in ("both", "none", "x", "channels")]
    types = ("u8", "i8")
    made.append(conv_case(generator, "1x1", types, (1, 64, 40), (48, 64, 1)))
    made.append(conv_case(generator, "wide window", types, (1, 24, 130), (16, 24, 11), pads=[25, 25], dilations=[5]))
    made.append(conv_case(generator, "strides", types, (1, 22, 121), (16, 22, 12), pads=[3, 3], strides=[6]))
    made.append(conv_case(generator, "groups", types, (2, 6, 15), (9, 2, 3), "channels", pads=[2, 0], group=3))
    made.append(conv_case(generator, "depthwise", types, (1, 33, 40), (33, 1, 3), pads=[1, 1], group=33))
    made.append(conv_case(generator, "images", types, (2, 3, 17, 14), (8, 3, 3, 5), pads=[1, 2, 0, 3], strides=[2, 1], dilations=[1, 2]))
    made.append(conv_case(generator, "volumes", types, (1, 2, 5, 6, 7), (3, 2, 2, 3, 2), pads=[0, 1, 1, 1, 0, 1]))
    return made


def lstm_case(generator, name, sequence, batch, inputs, hidden, directions, **more):
    weights = {}
    for key, rows in (("W", inputs), ("R", hidden)):
        weights[key] = random(generator, np.int8, (directions, rows, 4 * hidden))
    scales = [(generator.random(directions) * 0.004 + 0.002).astype(np.float32) for _ in range(2)]
    zeros = [np.zeros(directions, np.int8)] * 2
    x = generator.standard_normal((sequence, batch, inputs)).astype(np.float32)
    state = [generator.standard_normal((directions, batch, hidden)).astype(np.float32) for _ in range(2)]
    bias = generator.standard_normal((directions, 8 * hidden)).astype(np.float32)
    given = [x, weights["W"], weights["R"], bias, None, *state, None, scales[0], zeros[0], scales[1], zeros[1]]
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else more.pop("direction", "forward")}
    return Case(f"DynamicQuantizeLSTM {name}", "DynamicQuantizeLSTM", given, "ort", attributes, outputs=[FLOAT] * 3,
                domain="com.microsoft", constant=tuple(range(1, 4)) + tuple(range(8, 12)), tolerance=2e-5,
                fixed=((0, 1), (0, 2)) + tuple((i, axis) for i in (5, 6) for axis in range(3)), **more)


def lstm_cases(generator):
    return [lstm_case(generator, "forward", 7, 1, 12, 8, 1), lstm_case(generator, "reverse", 5, 1, 3, 16, 1, direction="reverse"),
            lstm_case(generator, "both directions", 9, 1, 20, 24, 2), lstm_case(generator, "one step", 1, 1, 4, 4, 1)]


def cases():
    generator = np.random.default_rng(11)
    return quantize_cases(generator) + matmul_cases(generator) + conv_cases(generator) + lstm_cases(generator)
