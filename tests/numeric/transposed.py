"""ConvTranspose: strides, dilations, groups, pads, output_padding, output_shape, auto_pad, in 1 to 3 spatial dims."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 22


def case(generator, name, x, w, bias=True, dtype=np.float32, tolerance=2e-6, expected="ort", **attributes):
    group = attributes.get("group", 1)
    inputs = [generator.standard_normal(x).astype(dtype), generator.standard_normal(w).astype(dtype)]
    if bias:
        inputs.append(generator.standard_normal(w[1] * group).astype(dtype))
    fixed = [(0, 1)] + [(1, i) for i in range(len(w))]
    if "output_shape" in attributes:
        fixed += [(0, i) for i in range(len(x))]
    return Case(f"ConvTranspose {name}", "ConvTranspose", inputs, expected, attributes, tolerance=tolerance, fixed=tuple(fixed),
                opset=11 if expected == "ort" else 0)


def cases():
    generator = np.random.default_rng(3)
    made = [
        case(generator, "plain", (2, 3, 11), (3, 4, 3)),
        case(generator, "no bias", (1, 5, 8), (5, 2, 4), bias=False, strides=[2]),
        case(generator, "window of 20, stride 10", (1, 32, 13), (32, 16, 20), strides=[10], pads=[5, 5]),
        case(generator, "window of 12, stride 6", (1, 16, 21), (16, 8, 12), strides=[6], pads=[3, 3]),
        case(generator, "window of 20, stride 5", (1, 22, 30), (22, 1, 20), bias=False, strides=[5]),
        case(generator, "depthwise with output_padding", (1, 24, 17), (24, 1, 3), group=24, strides=[2], pads=[1, 1],
             output_padding=[1]),
        case(generator, "window below the stride", (1, 3, 6), (3, 2, 2), strides=[5]),
        case(generator, "dilation", (1, 3, 9), (3, 4, 3), dilations=[2], pads=[1, 2]),
        case(generator, "dilation and stride", (1, 3, 9), (3, 4, 4), dilations=[3], strides=[2], pads=[2, 1]),
        case(generator, "dilation above the stride", (1, 2, 7), (2, 2, 3), dilations=[4], strides=[3]),
        case(generator, "groups", (2, 6, 10), (6, 4, 5), group=3, strides=[3], pads=[2, 1]),
        case(generator, "pads beyond the window", (1, 2, 9), (2, 3, 3), pads=[3, 4]),
        case(generator, "output_shape", (1, 3, 7), (3, 2, 3), strides=[2], output_shape=[14]),
        case(generator, "output_shape, odd rest", (1, 3, 7), (3, 2, 4), strides=[2], output_shape=[13]),
        case(generator, "images", (2, 4, 6, 9), (4, 3, 3, 2), strides=[2, 3], pads=[1, 0, 1, 1], output_padding=[1, 2]),
        case(generator, "images of two groups", (1, 8, 1, 33), (8, 4, 1, 5), group=2, strides=[1, 2], pads=[0, 2, 0, 2]),
        case(generator, "images, dilated", (1, 2, 5, 5), (2, 3, 3, 3), dilations=[2, 1], strides=[1, 2]),
        case(generator, "volumes", (1, 2, 3, 4, 5), (2, 3, 2, 3, 2), strides=[2, 1, 2], pads=[0, 1, 0, 1, 1, 1]),
        case(generator, "one pixel", (1, 3, 1), (3, 2, 5), strides=[4]),
        case(generator, "no batch", (0, 3, 4), (3, 2, 3), strides=[2]),
        case(generator, "double", (1, 3, 9), (3, 2, 4), dtype=np.float64, expected="onnx", tolerance=1e-13, strides=[2], pads=[1, 1]),
        case(generator, "half", (1, 3, 9), (3, 2, 4), dtype=np.float16, expected="onnx", tolerance=3e-3, strides=[2], pads=[1, 1]),
    ]
    for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        for strides, size in ([1], 3), ([2], 3), ([2], 4), ([3], 5):
            made.append(case(generator, f"{mode} {strides[0]} {size}", (1, 2, 9), (2, 3, size), auto_pad=mode, strides=strides))
    return made
