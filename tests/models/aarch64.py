"""Bundles for AArch64 hosts, run under an emulator: the same bits as on x86-64.

    aarch64.py --gpucc PROGRAM --work DIR --program RUN_BUNDLE --emulator COMMAND --check-bundle PROGRAM [--fetched DIR]
               NAME...

Each model is compiled for both hosts; the code for AArch64 must multiply and add in NEON vectors. The bundle for x86-64 runs here, the other one by RUN_BUNDLE (tests/hosts) under the
emulator; all outputs must be equal byte for byte. Here the other one is refused.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402


def vector_instructions(path):
    """fmla of four floats, by a vector or by one of its elements."""
    words = np.frombuffer(path.read_bytes()[:path.stat().st_size // 4 * 4], "<u4")
    return int(np.sum(((words & 0xFFE0FC00) == 0x4E20CC00) | ((words & 0xFFC0F400) == 0x4F801000)))


def check(name, facts, options):
    path = models.model_path(name, facts, options.work, options.fetched)
    folder = options.work / "aarch64" / name
    folder.mkdir(parents=True, exist_ok=True)
    here, there = folder / "x86_64.so", folder / "aarch64.so"
    models.run_command([options.gpucc, path, "-o", here, "--target=cpu"])
    models.run_command([options.gpucc, path, "-o", there, "--target=cpu", "--host=aarch64"])
    models.run_command([options.check_bundle, there])
    vectors = vector_instructions(there)
    if vectors < 20:
        raise RuntimeError(f"the code has {vectors} NEON multiplications and additions")
    refused = subprocess.run([options.gpucc, "run", there, "--device=cpu"], capture_output=True, text=True)
    if refused.returncode != 3 or "is for AArch64 hosts" not in refused.stderr:
        raise RuntimeError(f"the bundle was not refused here: {refused.returncode}, {refused.stderr.strip()}")
    dims, data, record = models.references(name, facts, path, options.work)[0]
    inputs = [np.load(data / f"input_{i}.npy") for i in range(len(record["inputs"]))]
    words = []
    for i, (key, value) in enumerate(zip(record["inputs"], inputs)):
        value.tofile(folder / f"input_{i}")
        words.append(f"{key}={folder / f'input_{i}'}:{'x'.join(map(str, value.shape))}")
    models.run_command(shlex.split(options.emulator) + [options.program, there, folder] + words)
    command = [options.gpucc, "run", here, "--device=cpu", f"--output-dir={folder}"]
    models.run_command(command + [f"--input={key}={data / f'input_{i}.npy'}" for i, key in enumerate(record["inputs"])])
    expected = [np.load(folder / f"output_{i}.npy") for i in range(len(record["noise"]))]
    for i, value in enumerate(expected):
        if (folder / f"output_{i}").read_bytes() != value.tobytes():
            got = np.frombuffer((folder / f"output_{i}").read_bytes(), value.dtype)
            error = models.difference(got.reshape(value.shape), value) if got.size == value.size else float("inf")
            raise RuntimeError(f"output {i} at {dims} has other bits than on x86-64: error {error:.2e}")
    return f"{len(expected)} output(s) equal, {vectors} fmla of four floats"


def check_refusals(options):
    """The system's own linker cannot link for another processor: without lld the host is refused. So are unknown ones."""
    model = options.fetched / f"{options.names[0]}.onnx"
    environment = {**os.environ, "PATH": str(options.work / "nowhere")}
    result = subprocess.run([options.gpucc, model, "-o", options.work / "none.so", "--target=cpu", "--host=aarch64"],
                            capture_output=True, text=True, env=environment)
    if result.returncode != 3 or "ld.lld-19 or ld.lld" not in result.stderr:
        raise RuntimeError(f"without a linker: {result.returncode}, {result.stderr.strip()}")
    result = subprocess.run([options.gpucc, model, "-o", options.work / "none.so", "--host=sparc"],
                            capture_output=True, text=True)
    if result.returncode != 2 or "x86_64, aarch64" not in result.stderr:
        raise RuntimeError(f"an unknown host: {result.returncode}, {result.stderr.strip()}")
    return "refused"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--gpucc", "--work", "--program", "--check-bundle"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--emulator", required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=models.HERE.parent.parent / ".cache" / "models")
    parser.add_argument("names", nargs="+")
    options = parser.parse_intermixed_args()
    options.work = options.work.resolve()
    table = json.loads((models.HERE / "models.json").read_text())
    checks = [(name, lambda name=name: check(name, table[name], options)) for name in options.names]
    failed = 0
    for name, run in checks + [("no lld, no such host", lambda: check_refusals(options))]:
        try:
            print(f"ok    {name}: {run()}", flush=True)
        except RuntimeError as problem:
            failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
