"""Odd storage: Cast to and from f8, f4, int4, uint4, int2, uint2, f16 and bf16, every bit pattern, against the onnx package's
reference (numpy and ml_dtypes); QuantizeLinear and DequantizeLinear by tensor, axis and block."""
import ml_dtypes
import numpy as np
from numeric import Case
from onnx import TensorProto as T

OPSET = 25
FLOAT8 = {T.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn, T.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
          T.FLOAT8E5M2: ml_dtypes.float8_e5m2, T.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz}
WHOLE = {T.INT4: ml_dtypes.int4, T.UINT4: ml_dtypes.uint4, T.INT2: ml_dtypes.int2, T.UINT2: ml_dtypes.uint2}
SMALL = {**FLOAT8, T.FLOAT4E2M1: ml_dtypes.float4_e2m1fn, **WHOLE}
WIDE = {T.FLOAT: np.float32, T.FLOAT16: np.float16, T.BFLOAT16: ml_dtypes.bfloat16, T.DOUBLE: np.float64}
RANGE = {T.INT4: (-8, 8), T.UINT4: (0, 16), T.INT2: (-2, 2), T.UINT2: (0, 4), T.INT8: (-128, 128), T.UINT8: (0, 256),
         T.INT16: (-32768, 32768), T.UINT16: (0, 65536)}


def all_values(kind, dtype):
    """Every value of a type of 8 bits or less."""
    if kind in RANGE:
        return np.arange(*RANGE[kind]).astype(dtype)
    bits = 4 if kind == T.FLOAT4E2M1 else 8
    return np.arange(1 << bits, dtype=np.uint8).view(dtype) if bits == 8 else \
        np.arange(16, dtype=np.uint8).astype(np.uint8).view(dtype)


def halves():
    return np.arange(65536, dtype=np.uint16).view(np.float16)


def cast(name, x, to, **attributes):
    return Case(f"Cast {name} to {T.DataType.Name(to)} {attributes}", "Cast", [x], "onnx", {"to": to, **attributes},
                outputs=[to])


def casts():
    made = []
    for kind, dtype in SMALL.items():
        for to in WIDE:
            made.append(cast(T.DataType.Name(kind), all_values(kind, dtype), to))
        for to in (T.INT32, T.UINT8, T.INT64):
            if kind in WHOLE and (kind in (T.UINT4, T.UINT2) or to != T.UINT8):
                made.append(cast(T.DataType.Name(kind), all_values(kind, dtype), to))
    every_half = halves()
    every_bf16 = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    random = np.random.default_rng(3).standard_normal(3001).astype(np.float64) * 100
    for kind in FLOAT8:
        for saturate in (0, 1):
            for x in (every_half, every_bf16, every_bf16.astype(np.float32), random):
                made.append(cast(x.dtype.name, x, kind, saturate=saturate))
    finite = every_half[~np.isnan(every_half)]
    for x in (finite, finite.astype(np.float32), random):
        made.append(cast(x.dtype.name, x, T.FLOAT4E2M1))
    for kind in WHOLE:  # out of range the specification says nothing: within it only
        low, high = RANGE[kind]
        made.append(cast("range", np.linspace(low, high - 1, 67).astype(np.float32), kind))
        made.append(cast("wrap", np.arange(-130, 140, dtype=np.int32), kind))
    small = np.arange(0, 7).astype(ml_dtypes.int4)  # numpy does not cast between these itself
    for other in (T.UINT4, T.FLOAT4E2M1):
        made.append(Case(f"Cast INT4 to {T.DataType.Name(other)}", "Cast", [small],
                         [np.arange(0, 7).astype(np.float32).astype(SMALL[other])], {"to": other}))
    for mode in ("up", "down", "nearest"):
        for saturate in (0, 1):
            made.append(cast("f32", np.abs(every_bf16.astype(np.float32)), T.FLOAT8E8M0, round_mode=mode,
                             saturate=saturate))
    made.append(cast("FLOAT8E8M0", np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu), T.FLOAT))
    for odd in (1, 2, 3, 5, 9):
        made.append(cast(f"{odd} elements", np.arange(odd, dtype=np.float32) % 2, T.UINT2))
        made.append(cast(f"{odd} elements", np.arange(odd, dtype=np.float32) % 7, T.INT4))
    return made


def dequantize(name, x, scale, zero=None, **attributes):
    result = attributes.get("output_dtype", 0) or {np.dtype(v): k for k, v in WIDE.items()}[scale.dtype]
    unit = {T.FLOAT16: 2.0**-11, T.BFLOAT16: 2.0**-8}.get(result, 2.0**-23)
    return Case(f"DequantizeLinear {name} {attributes}", "DequantizeLinear", [x, scale, zero], "onnx", attributes,
                outputs=[result], tolerance=unit)


def draw(generator, kind, shape):
    if kind in RANGE:
        return generator.integers(*RANGE[kind], shape).astype(SMALL.get(kind) or np.dtype(T.DataType.Name(kind).lower()))
    return generator.uniform(-3, 3, shape).astype(SMALL[kind])


def dequantizations():
    generator = np.random.default_rng(7)
    made = []
    for kind in [T.INT8, T.UINT8, T.INT16, T.UINT16, *SMALL]:
        x = draw(generator, kind, (3, 10, 5))
        name = T.DataType.Name(kind)
        zeros = kind in RANGE
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16) if kind in (T.UINT8, T.INT4) else (np.float32,):
            scale = np.array(0.25, dtype)
            made.append(dequantize(name, x, scale, draw(generator, kind, ()) if zeros else None))
            for axis, size in ((0, 3), (1, 10), (-1, 5)):
                scale = generator.uniform(0.1, 2, size).astype(dtype)
                made.append(dequantize(name, x, scale, draw(generator, kind, size) if zeros else None, axis=axis))
            for axis, shape in ((1, (3, 3, 5)), (2, (3, 10, 2)), (0, (1, 10, 5))):
                scale = generator.uniform(0.1, 2, shape).astype(dtype)
                made.append(dequantize(name, x, scale, draw(generator, kind, shape) if zeros else None, axis=axis,
                                       block_size=4 if axis < 2 else 3))
    x = draw(generator, T.INT4, (64, 32))
    made.append(dequantize("weights", x, generator.uniform(0.1, 1, (2, 32)).astype(np.float32), None, axis=0, block_size=32,
                           output_dtype=T.FLOAT16))
    return made


def quantizations():
    generator = np.random.default_rng(9)
    made = []
    for kind in [T.INT8, T.UINT8, T.INT16, T.UINT16, *SMALL]:
        dtype = SMALL.get(kind) or np.dtype(T.DataType.Name(kind).lower())
        for wide in (np.float32, np.float16) if kind in (T.INT8, T.UINT4) else (np.float32,):
            x = (generator.standard_normal((4, 9, 6)) * 20).astype(wide)
            for axis, shape, block in ((1, (), 0), (1, (9,), 0), (1, (4, 3, 6), 3)):
                scale = generator.uniform(0.25, 2, shape).astype(wide)
                zero = generator.integers(0, 2, shape).astype(dtype) if kind in RANGE else np.zeros(shape, dtype)
                for given in (zero, None):
                    attributes = {"axis": axis, "block_size": block}
                    if given is None:
                        attributes["output_dtype"] = kind
                    made.append(Case(f"QuantizeLinear {x.dtype.name} {T.DataType.Name(kind)} {attributes}",
                                     "QuantizeLinear", [x, scale, given], "onnx", attributes, outputs=[kind]))
    return made


def cases():
    made = casts() + dequantizations() + quantizations()
    for case in made:  # fixed sizes and -O0 say nothing more here
        case.modes = ("free", "folded")
    return made
