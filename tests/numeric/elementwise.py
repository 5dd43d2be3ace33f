"""Elementwise operators that are made of others or have formulas of their own, against numpy in wider arithmetic or ONNX Runtime:
inverse and hyperbolic functions over their whole range, bits, and what com.microsoft fuses."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 24
FLOAT, HALF, BFLOAT, DOUBLE = np.float32, np.float16, ml_dtypes.bfloat16, np.float64
WIDE = np.longdouble
STEPS = {FLOAT: 2.0**-23, HALF: 2.0**-10, BFLOAT: 2.0**-7, DOUBLE: 2.0**-52}

FUNCTIONS = {  # reference, and a range beyond which nothing new comes
    "Acos": (np.arccos, 1), "Acosh": (np.arccosh, 1e6), "Asin": (np.arcsin, 1), "Asinh": (np.arcsinh, 1e6), "Atan": (np.arctan, 1e6),
    "Atanh": (np.arctanh, 1), "Cosh": (np.cosh, 12), "Sinh": (np.sinh, 12), "Tan": (np.tan, 6),
    "Mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), 12),
}


def points(generator, most, dtype):
    low = 0.0 if most == 1 else -6.0
    x = np.concatenate([np.linspace(-min(most, 4), min(most, 4), 301), most * generator.uniform(-1, 1, 200),
                        10.0 ** generator.uniform(low - 6, np.log10(most), 150), -(10.0 ** generator.uniform(low - 6, np.log10(most), 150))])
    special = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan]
    return np.concatenate([x, special]).astype(dtype)


def parts(name, x, y, dtype):
    """The values of y in groups of like size, so that the tolerance is a relative one."""
    wide = np.abs(y.astype(np.float64))
    keys = np.where(np.isfinite(wide) & (wide > 0), np.floor(np.log2(np.where((wide > 0) & np.isfinite(wide), wide, 1)) / 4), 999)
    for key in np.unique(keys):
        yield x[keys == key], y[keys == key]


def function_cases(generator):
    made = []
    for name, (reference, most) in FUNCTIONS.items():
        for dtype in (FLOAT, DOUBLE, HALF, BFLOAT):
            if dtype in (HALF, BFLOAT) and most > 12:
                most = 1000
            x = points(generator, most, dtype)
            with np.errstate(all="ignore"):
                y = reference(x.astype(WIDE)).astype(dtype)
            inputs, outputs = zip(*parts(name, x, y, dtype))
            # all groups as one tensor a tolerance: each group is a case of its own size
            ulps = 6 if dtype in (FLOAT, DOUBLE) else 1.01
            scale = 16.0 if name in ("Tan",) else 1.0
            for number, (a, b) in enumerate(zip(inputs, outputs)):
                smallest = np.abs(b.astype(np.float64)[np.isfinite(b.astype(np.float64))])
                ratio = smallest.max(initial=1) / max(smallest.min(initial=1), 1e-300) if smallest.size else 1
                made.append(Case(f"{name} {np.dtype(dtype).name} {number}", name, [a], [b], tolerance=ulps * scale * STEPS[dtype],
                                 modes=("free", "folded") if number else ("fixed", "free", "plain", "folded")))
    return made


def bit_cases(generator):
    made = []
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        a, b = (generator.integers(limits.min, limits.max, shape, dtype, endpoint=True) for shape in ((5, 1, 7), (3, 1)))
        for name, function in (("BitwiseAnd", np.bitwise_and), ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor)):
            made.append(Case(f"{name} {np.dtype(dtype).name}", name, [a, b], [function(a, b)]))
        made.append(Case(f"BitwiseNot {np.dtype(dtype).name}", "BitwiseNot", [a], [~a]))
        if limits.min == 0:
            by = generator.integers(0, limits.bits, (3, 7)).astype(dtype)
            made.append(Case(f"BitShift left {np.dtype(dtype).name}", "BitShift", [a, by], [a << by], {"direction": "LEFT"}))
            made.append(Case(f"BitShift right {np.dtype(dtype).name}", "BitShift", [a, by], [a >> by], {"direction": "RIGHT"}))
    return made


def gelu_tanh(x):
    x = x.astype(WIDE)
    return 0.5 * x * (1 + np.tanh(np.sqrt(WIDE(2) / np.pi) * (x + WIDE(0.044715) * x**3)))


def fused_cases(generator):
    x, bias = generator.standard_normal((3, 4, 24)).astype(FLOAT) * 3, generator.standard_normal(24).astype(FLOAT)
    more = {"domain": "com.microsoft", "tolerance": 2e-6}
    made = [
        Case("FastGelu", "FastGelu", [x], [gelu_tanh(x).astype(FLOAT)], **more),
        Case("FastGelu with bias", "FastGelu", [x, bias], [gelu_tanh(x + bias).astype(FLOAT)], **more),
        Case("FastGelu in ONNX Runtime", "FastGelu", [x, bias], "ort", domain="com.microsoft", tolerance=1e-5),
        Case("Gelu of Microsoft", "Gelu", [x], "ort", **more),
        Case("BiasGelu", "BiasGelu", [x, bias], "ort", **more),
        Case("QuickGelu", "QuickGelu", [x], "ort", {"alpha": 1.702}, **more),
        Case("Swish", "Swish", [x], [(x / (1 + np.exp(-2.5 * x.astype(WIDE)))).astype(FLOAT)], {"alpha": 2.5}, tolerance=2e-6),
        Case("ThresholdedRelu", "ThresholdedRelu", [x], [np.where(x > FLOAT(0.7), x, 0)], {"alpha": 0.7}),
        Case("Shrink", "Shrink", [x], "onnx", {"bias": 1.5, "lambd": 0.75}, tolerance=1e-7),
        Case("Shrink of integers", "Shrink", [np.arange(-6, 7, dtype=np.int32)],
             [np.array([-5, -4, -3, -2, 0, 0, 0, 0, 0, 2, 3, 4, 5], np.int32)], {"bias": 1.0, "lambd": 2.0}),
    ]
    for left in (0, 1):
        for right in (0, 1):
            a = generator.standard_normal((2, 33, 17) if left else (2, 17, 33)).astype(FLOAT)
            b = generator.standard_normal((2, 9, 33) if right else (2, 33, 9)).astype(FLOAT)
            made.append(Case(f"FusedMatMul {left} {right}", "FusedMatMul", [a, b], "ort", {"transA": left, "transB": right, "alpha": 0.25},
                             domain="com.microsoft", tolerance=3e-6))
    gamma, beta = generator.standard_normal(24).astype(FLOAT), generator.standard_normal(24).astype(FLOAT)
    skip = generator.standard_normal(x.shape).astype(FLOAT)
    for name, inputs, outputs in (("", [x, skip, gamma, beta], [1]), ("with bias", [x, skip, gamma, beta, bias], [1]),
                                  ("without beta", [x, skip, gamma], [1]), ("with the sum", [x, skip, gamma, beta, bias], [1, 0, 0, 1])):
        made.append(Case(f"SkipLayerNormalization {name}", "SkipLayerNormalization", inputs, "ort", {"epsilon": 1e-5}, outputs=outputs, **more))
    return made


def cases():
    generator = np.random.default_rng(23)
    return function_cases(generator) + bit_cases(generator) + fused_cases(generator)
