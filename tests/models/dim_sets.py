"""One bundle of a model at 20 random sets of dims: every result equals ONNX Runtime's, enqueue allocates nothing, nothing
is compiled or loaded.

    dim_sets.py --gpucc PROGRAM --sets PROGRAM --work DIR [--record FILE] [NAME ...]

The sets are drawn with a fixed seed from the ranges below. References are kept in DIR between runs.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys

import numpy as np

import models

COUNT = 20
# Names of dims that are one size, and its values.
RANGES = {
    "bert_base.script": [(["batch"], range(1, 4)), (["seq"], range(1, 65))],
    "bert_base.dynamo": [(["s10", "s86"], range(1, 4)), (["s11"], range(2, 65))],
    "unet_diffusion.script": [(["batch"], range(1, 4)), (["height"], range(8, 65, 8)), (["width"], range(8, 65, 8))],
    "unet_diffusion.dynamo": [(["s13", "s24"], range(1, 4)), (["s53"], range(8, 65, 8)), (["s0"], range(8, 65, 8))],
}
DTYPES = {np.dtype(np.float32): 1, np.dtype(np.int32): 6, np.dtype(np.int64): 7}


def draw_sets(name):
    generator = random.Random(name)
    sets, seen = [], set()
    while len(sets) < COUNT:
        dims = {}
        for names, values in RANGES[name]:
            size = generator.choice(values)
            dims.update({key: size for key in names})
        if str(dims) not in seen:
            seen.add(str(dims))
            sets.append(dims)
    return sets


def check(name, options):
    facts = {**json.loads((models.HERE / "models.json").read_text())[name], "dims": draw_sets(name)}
    path = models.model_path(name, facts, options.work, None)
    sets = models.references(f"{name}.20", facts, path, options.work)
    bundle = options.work / "bundles" / f"{name}.20.so"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    models.run_command([options.gpucc, path, "-o", bundle, "--target=cpu"])
    out = options.work / "outputs" / f"{name}.20"
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, (dims, folder, record) in enumerate(sets):
        for i in range(len(record["inputs"])):
            values = np.load(folder / f"input_{i}.npy")
            raw = out / f"input_{number}_{i}"
            raw.write_bytes(values.tobytes())
            lines.append(f"input {DTYPES[values.dtype]} {raw} {' '.join(map(str, values.shape))}")
        lines += [f"output {out / f'output_{number}_{i}'}" for i in range(len(record["noise"]))] + ["run"]
    result = subprocess.run([options.sets, bundle], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"exit status {result.returncode}: {result.stdout}{result.stderr}")
    found = re.findall(r"^set (\d+):(.*)$", result.stdout, re.MULTILINE)
    if len(found) != COUNT:
        raise RuntimeError(f"{len(found)} sets ran instead of {COUNT}")
    worst = 0.0
    for (dims, folder, record), (number, text) in zip(sets, found):
        shapes = [tuple(map(int, part.split()[1:])) for part in text.split(" output ")[1:]]
        for i, noise in enumerate(record["noise"]):
            expected = np.load(folder / f"output_{i}.npy")
            raw = out / f"output_{number}_{i}"
            actual = np.frombuffer(raw.read_bytes(), expected.dtype).reshape(shapes[i])
            error = models.difference(actual, expected)
            worst = max(worst, error / models.tolerance(noise))
            if not error <= models.tolerance(noise):
                raise RuntimeError(f"output {i} at {dims}: error {error:.2e}, allowed {models.tolerance(noise):.2e}")
    bundle.unlink()
    if options.record:
        models.write_record(options.record, {f"{name}.dim_sets": COUNT, f"{name}.dim_sets_error_of_allowed": worst})
    return f"{result.stdout.strip().splitlines()[-1]}, worst error {worst:.2f} of what is allowed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--sets", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    options.work = options.work.resolve()
    failed = 0
    for name in options.names or RANGES:
        try:
            print(f"ok    {name}: {check(name, options)}", flush=True)
        except RuntimeError as problem:
            failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
