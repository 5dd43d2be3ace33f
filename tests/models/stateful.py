"""Models that take and return their state, called again and again, against float64 and ONNX Runtime.

    stateful.py --gpucc PROGRAM --work DIR [--fetched DIR] [--device cpu|cuda:0] [--targets LIST] [NAME ...]

Each side carries its own state from call to call, so what is off would grow. At every set of sizes, and for voice activity at
both sample rates; where ONNX Runtime cannot run a set, gpucc must refuse it and name a node. Voice activity begins with a
spectrum whose sums cancel: results must be as near to float64 as ONNX Runtime's, within a factor of 2 (or models.py's least
tolerance).
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import float64  # noqa: E402
import models  # noqa: E402

CALLS = 6
# At 16000 the convolutions leave one step for 192 to 703 samples, at 8000 for 96 to 351; the model holds its input to what both
# take. Any other number of steps does not fit its recurrent cell.
RATES = [(rate, samples, batch) for rate, lengths in ((16000, (192, 512, 576, 703, 704)), (8000, (192, 256, 288, 351, 352)))
         for samples in lengths for batch in (1, 3)]


def speech(generator, batch, samples):
    """A tone that comes and goes in noise."""
    time = np.arange(samples) / 8000
    tone = np.sin(2 * np.pi * generator.uniform(80, 400, (batch, 1)) * time) * generator.uniform(0, 0.5, (batch, 1))
    return (tone + 0.02 * generator.standard_normal((batch, samples))).astype(np.float32)


def silero(rate, samples, batch):
    return {"feed": lambda generator: {"input": speech(generator, batch, samples), "sr": np.array(rate, np.int64)},
            "state": {"state": np.zeros((2, batch, 128), np.float32)}, "returns": {"state": 1}}


def dtln():
    return {"feed": lambda generator: {"input_2": np.abs(generator.standard_normal((1, 1, 257))).astype(np.float32)},
            "state": {"input_3": np.zeros((1, 2, 128, 2), np.float32)}, "returns": {"input_3": 1}}


def gtcrn():
    shapes = {"conv_cache": (2, 1, 16, 16, 33), "tra_cache": (2, 3, 1, 1, 16), "inter_cache": (2, 1, 33, 16)}
    return {"feed": lambda generator: {"mix": generator.standard_normal((1, 257, 1, 2)).astype(np.float32)},
            "state": {name: np.zeros(shape, np.float32) for name, shape in shapes.items()},
            "returns": {name: 1 + i for i, name in enumerate(shapes)}}


SETS = {
    "silero_vad": [(f"{rate} Hz, {samples} samples, batch {batch}", silero(rate, samples, batch)) for rate, samples, batch in RATES],
    "silero_vad_ifless": [(f"{rate} Hz, {samples} samples, batch {batch}", silero(rate, samples, batch))
                          for rate, samples, batch in RATES if samples < (700 if rate == 16000 else 350)],
    "dtln_1": [("", dtln())],
    "gtcrn": [("", gtcrn())],
}


NOT_EVALUATED = {"gtcrn"}


def run_gpucc(options, bundle, inputs, names):
    out = options.work / "outputs" / "stateful"
    out.mkdir(parents=True, exist_ok=True)
    command = [options.gpucc, "run", bundle, f"--device={options.device}", f"--output-dir={out}"]
    for i, name in enumerate(names):
        np.save(out / f"input_{i}.npy", inputs[name])
        command.append(f"--input={name}={out / f'input_{i}.npy'}")
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip()
    return [np.load(out / f"output_{i}.npy") for i in range(len(list(out.glob("output_*.npy"))))], ""


def evaluate(name, path):
    """What is right: float64; where the onnx package cannot say (its grouped ConvTranspose fails), ONNX Runtime unoptimised."""
    if name in NOT_EVALUATED:
        session = models.session(path, False)
        return lambda inputs: session.run(None, inputs)
    exact = float64.in_float64(path)
    return lambda inputs: exact.run(None, {key: value.astype(np.float64) if value.dtype == np.float32 else value
                                           for key, value in inputs.items()})


def error_of(results, exact):
    return max(models.difference(a.astype(b.dtype), b) for a, b in zip(results, exact))


def check_set(options, bundle, runtime, evaluator, label, case):
    names = [item.name for item in runtime.get_inputs()]
    generator = np.random.Generator(np.random.PCG64(11))
    theirs, exact, ours = (dict(case["state"]) for _ in range(3))
    their_error = our_error = 0.0
    for _ in range(CALLS):
        feed = case["feed"](generator)
        got, why = run_gpucc(options, bundle, {**feed, **ours}, names)
        try:
            results = runtime.run(None, {**feed, **theirs})
        except Exception:  # pylint: disable=broad-except
            if got is not None or "needed by" not in why:
                raise RuntimeError(f"{label}: ONNX Runtime refuses it, gpucc: {why or 'does not'}") from None
            return None
        if got is None:
            raise RuntimeError(f"{label}: {why}")
        expected = evaluator({**feed, **exact})
        their_error, our_error = max(their_error, error_of(results, expected)), max(our_error, error_of(got, expected))
        theirs, exact, ours = ({name: values[index] for name, index in case["returns"].items()}
                               for values in (results, expected, got))
    allowed = max(models.LEAST_TOLERANCE, 2 * their_error)
    if not our_error <= allowed:
        raise RuntimeError(f"{label}: error {our_error:.2e}, ONNX Runtime's {their_error:.2e}, allowed {allowed:.2e}")
    return our_error


def check(options, name):
    path = options.fetched / f"{name}.onnx"
    if not path.exists():
        raise SystemExit(f"{path} is missing: run scripts/fetch_models")
    bundle = options.work / "bundles" / f"stateful_{name}.so"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    models.run_command([options.gpucc, path, "-o", bundle, f"--target={options.targets}"])
    runtime, evaluator = models.session(path, True), evaluate(name, path)
    with np.errstate(all="ignore"):  # the evaluator's sigmoid overflows on its way
        found = [check_set(options, bundle, runtime, evaluator, label, case) for label, case in SETS[name]]
    right = [error for error in found if error is not None]
    return f"{len(right)} set(s) of {CALLS} calls right, worst error {max(right):.1e}, {len(found) - len(right)} refused by both"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    options.work = options.work.resolve()
    failed = 0
    for name in options.names or SETS:
        try:
            print(f"ok    {name}: {check(options, name)}", flush=True)
        except RuntimeError as problem:
            failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
