"""DFT and STFT: lengths 1, powers of two, primes, 3*5*7 and others, real, complex, inverse, onesided, padded and cut, free
batch dims, against numpy's in float64."""
import ml_dtypes
import numpy as np
from numeric import Case

OPSET = 20


def parts(x):
    return np.stack([x.real, x.imag], -1)


def whole(x):
    return x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)


def tolerance(x, n):
    unit = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}[x.dtype.name]
    accumulator = 2.0**-53 if x.dtype == np.float64 else 2.0**-24
    return (0 if unit == accumulator else unit) + accumulator * (8 + 4 * np.sqrt(n))


def dft(name, x, axis=1, n=None, inverse=0, onesided=0, **more):
    wide = whole(x.astype(np.float64))
    axis %= x.ndim
    length = n or (2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis])
    if inverse and onesided:
        y = np.fft.irfft(wide, length, axis)[..., np.newaxis]
    else:
        y = parts((np.fft.ifft if inverse else np.fft.fft)(wide, length, axis))
        if onesided:
            y = np.take(y, range(length // 2 + 1), axis)
    inputs = [x, np.array(n, np.int64) if n else None, np.array(axis, np.int64)]
    fixed = () if n else ((0, axis % x.ndim),)
    return Case(f"DFT {name} n={length} inverse={inverse} onesided={onesided}", "DFT", inputs, [y.astype(x.dtype)],
                {"inverse": inverse, "onesided": onesided}, tolerance=tolerance(x, length), constant=(1, 2),
                fixed=fixed + ((0, x.ndim - 1),), **more)


def stft(name, x, step, length, window, onesided):
    frames = 1 + (x.shape[1] - length) // step
    wide = whole(x.astype(np.float64))
    cut = np.stack([wide[:, f * step:f * step + length] for f in range(frames)], 1)
    y = parts(np.fft.fft(cut * (1 if window is None else window.astype(np.float64)), axis=-1))
    if onesided:
        y = y[:, :, :length // 2 + 1]
    inputs = [x, np.array(step, np.int64), window, np.array(length, np.int64)]
    return Case(f"STFT {name} step={step} n={length} onesided={onesided}", "STFT", inputs, [y.astype(x.dtype)],
                {"onesided": onesided}, tolerance=tolerance(x, length), constant=(1, 3), fixed=((0, 2), (2, 0)))


def cases():
    generator = np.random.default_rng(11)

    def draw(*shape, dtype=np.float32):
        return generator.standard_normal(shape).astype(dtype)

    made = []
    for n in (1, 2, 3, 4, 8, 12, 31, 37, 64, 105, 127, 210, 512, 1009):
        for flags in range(4):
            inverse, real = flags & 1, flags >> 1
            made.append(dft("real" if real else "complex", draw(2, n, 1 if real else 2), 1, None, inverse, 0))
        made.append(dft("half", draw(3, n, 1), 1, None, 0, 1))
        if n > 1:
            made.append(dft("half", draw(3, n // 2 + 1, 2), 1, n, 1, 1))
    made.append(dft("rows", draw(2, 3, 30, 4, 2), -3))
    made.append(dft("first axis", draw(21, 3, 2), 0, None, 1))
    made.append(dft("padded", draw(2, 20, 2), 1, 33))
    made.append(dft("cut", draw(2, 50, 1), 1, 33, 0, 1))
    made.append(dft("long", draw(1, 65536, 2), 1, modes=("free",)))
    made.append(dft("long prime", draw(1, 65537, 1), 1, modes=("free",)))
    for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
        made.append(dft(np.dtype(dtype).name, draw(2, 60, 2, dtype=dtype), 1))
        made.append(dft(np.dtype(dtype).name, draw(2, 61, 2, dtype=dtype), 1, None, 1))
    for onesided in (0, 1):
        window = np.hanning(48).astype(np.float32)
        made.append(stft("window", draw(2, 400, 1), 16, 48, window, onesided))
        made.append(stft("no window", draw(1, 300, 1), 7, 30, None, onesided))
    made.append(stft("one frame", draw(3, 41, 1), 5, 41, np.hanning(41).astype(np.float32), 1))
    flat = stft("without parts", draw(2, 200, 1), 11, 20, np.hanning(20).astype(np.float32), 1)
    flat.inputs[0] = flat.inputs[0][:, :, 0]
    flat.fixed = ((2, 0),)
    made.append(flat)
    made.append(stft("complex", draw(2, 100, 2), 9, 25, np.hanning(25).astype(np.float32), 0))
    return made
