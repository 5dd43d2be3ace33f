"""Real models through gpucc and ONNX Runtime: weights, inputs, references, comparison.

    models.py check --gpucc PROGRAM --work DIR [--fetched DIR] [--device cpu|cuda:0] [--targets LIST]
              [--record FILE] [--check-bundle PROGRAM] [NAME ...]
    models.py prepare --work DIR [--fetched DIR] [NAME ...]     inputs and references only
    models.py list

graphs/NAME.onnx are graphs as PyTorch's two exporters wrote them, without weights; NAME.fill.json says how each weight is
drawn, always the same. Other models are fetched by scripts/fetch_models. One bundle a model is compiled; it runs at every
set of dims in models.json and is compared with ONNX Runtime.

Tolerance, of max |difference| / max |reference|: the larger of 1e-5 and four times ONNX Runtime's own noise (its results
with optimisations off and on), at most 2e-4. Integers must be equal. --record: a file of figures for scripts/acceptance,
NAME.error_of_allowed for each model, those of other models kept. --check-bundle: reads each bundle's ELF.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
LEAST_TOLERANCE, MOST_TOLERANCE, NOISE_FACTOR = 1e-5, 2e-4, 4
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


def fill_weights(plan, path):
    """Writes a weights file: constants, and normal numbers clipped to the range of the exported ones."""
    if path.exists() and path.stat().st_size == plan["bytes"]:
        return
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as out:
        out.truncate(plan["bytes"])
        for tensor in plan["tensors"]:
            if tensor["kind"] == "constant":
                values = np.full(tensor["shape"], tensor["value"], tensor["dtype"])
            else:
                generator = np.random.Generator(np.random.PCG64(tensor["seed"]))
                values = generator.standard_normal(tensor["shape"], dtype=np.float32)
                values = values * np.float32(tensor["std"]) + np.float32(tensor["mean"])
                values = np.clip(values, tensor["low"], tensor["high"]).astype(tensor["dtype"])
            out.seek(tensor["offset"])
            out.write(values.tobytes())
    temporary.rename(path)


def model_path(name, facts, work, fetched):
    if facts.get("fetched"):
        path = fetched / f"{name}.onnx"
        if not path.exists():
            raise SystemExit(f"{path} is missing: run scripts/fetch_models")
        return path
    folder = work / "graphs"
    folder.mkdir(parents=True, exist_ok=True)
    plan = json.loads((HERE / "graphs" / f"{name}.fill.json").read_text())
    path = folder / f"{name}.onnx"
    path.write_bytes((HERE / "graphs" / f"{name}.onnx").read_bytes())
    if plan["tensors"]:
        fill_weights(plan, folder / plan["file"])
    return path


def make_input(generator, name, dtype, shape):
    """Values that are valid for what the input's name says: ids, masks, steps, bytes, images."""
    if dtype == np.float32:
        return generator.standard_normal(shape, dtype=np.float32)
    lowered = name.lower()
    if "mask" in lowered:
        values = np.ones(shape, dtype)
        values[1:, -2:] = 0  # padding in all sequences but the first
        return values
    if "type" in lowered:
        return generator.integers(0, 2, shape).astype(dtype)
    if "bytes" in lowered:
        return generator.integers(0, 257, shape).astype(dtype)
    return generator.integers(0, 1000, shape).astype(dtype)


def session(path, optimised, threads=2):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def session_inputs(run, dims, seed):
    generator = np.random.Generator(np.random.PCG64(seed))
    inputs = {}
    for item in run.get_inputs():
        shape = [d if isinstance(d, int) else dims[d] for d in item.shape]
        inputs[item.name] = make_input(generator, item.name, TYPES[item.type], shape)
    return inputs


def difference(actual, expected):
    """max |difference| / max |reference|; infinity when shapes, types or NaNs disagree."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    if expected.size == 0:
        return 0.0
    if not np.array_equal(np.isfinite(actual), np.isfinite(expected)):
        return float("inf")
    finite = np.isfinite(expected)
    a, e = actual[finite].astype(np.float64), expected[finite].astype(np.float64)
    largest = np.abs(e).max(initial=0)
    error = np.abs(a - e).max(initial=0)
    return float(error / largest) if largest else float(error)


def references(name, facts, path, work):
    """Inputs, reference outputs and tolerances of each set of dims; kept in files between runs."""
    sets = []
    plain = fast = None
    for number, dims in enumerate(facts["dims"]):
        folder = work / "references" / name / str(number)
        if not (folder / "done").exists():
            plain = plain or session(path, False)
            fast = fast or session(path, True)
            folder.mkdir(parents=True, exist_ok=True)
            inputs = session_inputs(plain, dims, 1000 + number)
            outputs = plain.run(None, inputs)
            noise = [difference(b, a) for a, b in zip(outputs, fast.run(None, inputs))]
            for i, (key, value) in enumerate(inputs.items()):
                np.save(folder / f"input_{i}.npy", value)
            for i, value in enumerate(outputs):
                np.save(folder / f"output_{i}.npy", value)
            names = [item.name for item in plain.get_inputs()]
            (folder / "done").write_text(json.dumps({"inputs": names, "noise": noise}))
        sets.append((dims, folder, json.loads((folder / "done").read_text())))
    return sets


def tolerance(noise):
    return min(MOST_TOLERANCE, max(LEAST_TOLERANCE, NOISE_FACTOR * noise))


def run_command(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\nexit status {result.returncode}\n{result.stderr.strip()}")
    return result.stdout


def write_record(path, figures):
    """Adds to what the file has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**kept, **figures}, indent=1) + "\n")


def check_model(name, facts, options):
    path = model_path(name, facts, options.work, options.fetched)
    bundle = options.work / "bundles" / f"{name}.so"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    sets = references(name, facts, path, options.work)
    start = time.monotonic()
    run_command([options.gpucc, path, "-o", bundle, f"--target={options.targets}"])
    seconds = time.monotonic() - start
    if options.check_bundle:
        run_command([options.check_bundle, bundle])
    worst = 0.0
    for dims, folder, record in sets:
        out = options.work / "outputs" / name
        for old in out.glob("output_*.npy"):
            old.unlink()
        command = [options.gpucc, "run", bundle, f"--device={options.device}", f"--output-dir={out}"]
        command += [f"--input={key}={folder / f'input_{i}.npy'}" for i, key in enumerate(record["inputs"])]
        out.parent.mkdir(parents=True, exist_ok=True)
        run_command(command)
        for i, noise in enumerate(record["noise"]):
            error = difference(np.load(out / f"output_{i}.npy"), np.load(folder / f"output_{i}.npy"))
            worst = max(worst, error / tolerance(noise))
            if not error <= tolerance(noise):
                raise RuntimeError(f"output {i} at {dims}: error {error:.2e}, allowed {tolerance(noise):.2e}")
    if options.record:
        write_record(options.record, {f"{name}.error_of_allowed": worst})
    return f"compiled in {seconds:.1f} s, {len(sets)} set(s) of dims, worst error {worst:.2f} of what is allowed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "prepare", "list"])
    parser.add_argument("--gpucc", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("models-work"))
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--check-bundle", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    options.work = options.work.resolve()
    models = json.loads((HERE / "models.json").read_text())
    failed = 0
    for name in options.names or models:
        if options.action == "list":
            print(name)
            continue
        try:
            if options.action == "prepare":
                references(name, models[name], model_path(name, models[name], options.work, options.fetched), options.work)
                message = "prepared"
            else:
                message = check_model(name, models[name], options)
            print(f"ok    {name}: {message}", flush=True)
        except RuntimeError as problem:
            failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)
    if options.action == "check":
        print(f"{len(options.names or models) - failed} of {len(options.names or models)} models right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
