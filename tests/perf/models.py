"""CPU time of every model beside ONNX Runtime, and what the compiler needs. Prints a table; no part of the test suite.

    models.py --gpucc PROGRAM --work DIR [--fetched DIR] [--threads N] [--record FILE] [NAME ...]

Times: medians of runs interleaved in turns, random data, the first set of dims of tests/models/models.json; ONNX Runtime
with all optimisations and as many threads. The compiler: seconds and largest resident memory for --target=cpu; then
resnet50.script for cpu,sm_90a with an empty kernel cache; what a bundle holds beyond its weights, which are written to a
file of their own, and how many times the model's own files that is (packed for the CPU, plain for a GPU). Exit status 1
when a limit is passed: ratio 2, 25 s, 400 MB, 2 MB a target. --record: the figures, for scripts/acceptance.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import models  # noqa: E402

RATIO_LIMIT, SECONDS_LIMIT, MEMORY_LIMIT, BUNDLE_LIMIT = 2.0, 25.0, 400e6, 2e6
TURNS, TURN_SECONDS = 3, 0.6


# A child's peak memory counts its parent's at the time of the fork: a small process stands between.
LAUNCHER = "import os, sys; p = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); _, s, u = os.wait4(p, 0); " \
           "print(u.ru_maxrss * 1024); sys.exit(1 if s else 0)"


def compile_model(gpucc, path, bundle, targets, cache):
    """Seconds, peak resident bytes, bytes of the bundle beyond its weights for each target."""
    environment = {**os.environ, "GPUCC_CACHE_DIR": cache}
    command = [sys.executable, "-c", LAUNCHER, str(gpucc), str(path), "-o", str(bundle), f"--target={targets}",
               f"--weights={bundle.with_suffix('.weights')}"]
    start = time.monotonic()
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        raise RuntimeError(f"{path}: gpucc failed")
    return time.monotonic() - start, int(result.stdout), bundle.stat().st_size / (1 + targets.count(","))


def stored_weights(bundle, path):
    """The stored weights as a multiple of the model's files: the graph's and those of its external data."""
    graph = onnx.load(path, load_external_data=False).graph
    names = {entry.value for tensor in graph.initializer for entry in tensor.external_data if entry.key == "location"}
    own = path.stat().st_size + sum((path.parent / name).stat().st_size for name in names)
    return bundle.with_suffix(".weights").stat().st_size / own


def time_ort(run, inputs):
    times = []
    end = time.monotonic() + TURN_SECONDS
    while not times or time.monotonic() < end:
        start = time.perf_counter()
        run.run(None, inputs)
        times.append(1e3 * (time.perf_counter() - start))
    return times


def time_gpucc(options, bundle, folder, names, repeat):
    command = [options.gpucc, "run", bundle, "--device=cpu", f"--threads={options.threads}", f"--repeat={repeat}"]
    command += [f"--input={name}={folder / f'input_{i}.npy'}" for i, name in enumerate(names)]
    return float(re.search(r"runs: ([\d.]+) ms", models.run_command(command)).group(1))


def measure(name, facts, options, folder):
    """Ratio, peak bytes of the compiler, bytes beyond weights."""
    path = models.model_path(name, facts, options.work, options.fetched)
    bundle = folder / "model.so"
    seconds, memory, beyond = compile_model(options.gpucc, path, bundle, "cpu", str(folder / "cache"))
    run = models.session(path, True, options.threads)
    inputs = models.session_inputs(run, facts["dims"][0], 1)
    for i, value in enumerate(inputs.values()):
        np.save(folder / f"input_{i}.npy", value)
    run.run(None, inputs)
    theirs, ours = [], []
    for _ in range(TURNS):
        turn = time_ort(run, inputs)
        theirs += turn
        ours.append(time_gpucc(options, bundle, folder, inputs, max(9, len(turn))))
    own, other = statistics.median(ours), statistics.median(theirs)
    good = own <= RATIO_LIMIT * other and memory <= MEMORY_LIMIT and beyond <= BUNDLE_LIMIT
    print(f"{'ok  ' if good else 'OVER'} {name:24s} {own:9.3f} ms  ONNX Runtime {other:9.3f} ms  ratio {own / other:5.2f}  "
          f"compiled in {seconds:5.1f} s, {memory / 1e6:4.0f} MB, {beyond / 1e6:.2f} MB beyond weights "
          f"x{stored_weights(bundle, path):.2f}", flush=True)
    return own / other, memory, beyond


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    table = json.loads((HERE.parent / "models" / "models.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        results = [measure(name, table[name], options, pathlib.Path(folder)) for name in options.names or table]
        name = "resnet50.script"
        path = models.model_path(name, table[name], options.work, options.fetched)
        cold = tempfile.mkdtemp(dir=folder)
        both = pathlib.Path(folder) / "both.so"
        seconds, *rest = compile_model(options.gpucc, path, both, "cpu,sm_90a", cold)
        stored = stored_weights(both, path)
    memory, beyond = (max(values) for values in zip(*[result[1:] for result in results], rest))
    ratio = max(result[0] for result in results)
    good = ratio <= RATIO_LIMIT and seconds <= SECONDS_LIMIT and memory <= MEMORY_LIMIT and beyond <= BUNDLE_LIMIT
    print(f"{'ok  ' if seconds <= SECONDS_LIMIT else 'OVER'} {name} for cpu,sm_90a, empty cache: {seconds:.1f} s, "
          f"{rest[0] / 1e6:.0f} MB, {rest[1] / 1e6:.2f} MB a target beyond weights x{stored:.2f}")
    if options.record:
        models.write_record(options.record, {
            "models": len(results), "worst_ratio": ratio, "compile_seconds": seconds, "most_compiler_megabytes": memory / 1e6,
            "most_megabytes_beyond_weights": beyond / 1e6})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
