"""A decode loop against ONNX Runtime: 200 steps of one token, each step's caches the next one's, in the same buffers.

    decode.py check --gpucc PROGRAM --decode PROGRAM --work DIR [--record FILE] [NAME ...]
    decode.py time  --gpucc PROGRAM --decode PROGRAM --work DIR [--record FILE] [NAME ...]
    decode.py prepare --gpucc PROGRAM --decode PROGRAM --work DIR [NAME ...]
    decode.py device --gpucc PROGRAM --decode PROGRAM --work DIR [--target sm_90a] [--record FILE] [NAME ...]

NAME: small.script, small.dynamo (decode_graph.py), or graphs/NAME.onnx of a decoder; default: the small ones. check: on the CPU;
from 1 token on, and up to the 512th; one preparation serves both. time: microseconds of the host for one step
on the driver that executes nothing (compiles for sm_90a, so NVRTC is needed). prepare: the steps in DIR/decode/NAME, for device: on a machine
with a GPU, which needs the onnx package, NVRTC and a linker, but not ONNX Runtime. Tolerance: as models.py's.
"""
import argparse
import json
import pathlib
import re
import shutil
import struct
import sys

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import decode_graph  # noqa: E402
import models  # noqa: E402

STEPS, MOST_TOKENS, MAGIC, BATCH = 200, 512, 0x6465636F, 2
FIRSTS = (1, MOST_TOKENS - STEPS)


def graph_path(name, work):
    if not name.startswith("small."):
        return models.model_path(name, {}, work, None)
    folder = work / "graphs"
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(decode_graph.make(name.split(".")[1]), folder / f"{name}.onnx")
    return folder / f"{name}.onnx"


def write_steps(path, target, batch, first):
    """Runs the loop in ONNX Runtime. Returns its own noise: optimisations on against off, over the first steps."""
    plain, fast = models.session(path, False), models.session(path, True)
    caches = [item for item in plain.get_inputs() if item.name.startswith("past")]
    heads, width = caches[0].shape[1], caches[0].shape[3]
    generator = np.random.Generator(np.random.PCG64(100 + first))
    state = [generator.standard_normal((batch, heads, first, width), dtype=np.float32) * np.float32(0.5) for _ in caches]
    vocabulary = plain.get_outputs()[0].shape[2]
    noise = 0.0
    with open(target, "wb") as out:
        out.write(struct.pack("<8q", MAGIC, STEPS, batch, vocabulary, len(caches), heads, width, first))
        for cache in state:
            out.write(cache.tobytes())
        for step in range(STEPS):
            tokens = generator.integers(0, vocabulary, (batch, 1))
            inputs = {"input_ids": tokens, **{item.name: value for item, value in zip(caches, state)}}
            scores, *present = plain.run(None, inputs)
            if step % 20 == 0:
                noise = max([noise] + [models.difference(a, b) for a, b in zip(fast.run(None, inputs), [scores, *present])])
            out.write(tokens.astype(np.int64).tobytes())
            out.write(scores.tobytes())
            state = present
        for cache in state:
            out.write(np.ascontiguousarray(cache).tobytes())
    return noise


def compile_bundle(options, name, path, target):
    graph = onnx.load(path, load_external_data=False).graph
    pasts = [item.name for item in graph.input if item.name.startswith("past")]
    bundle = options.work / "bundles" / f"decode_{name}.{target}.so"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    aliases = [f"--alias={past.replace('past', 'present')}={past}" for past in pasts]
    models.run_command([options.gpucc, path, "-o", bundle, f"--target={target}", *aliases])
    return bundle


def steps_of(options, name, path, batch, first):
    folder = options.work / "decode"
    folder.mkdir(parents=True, exist_ok=True)
    steps = folder / f"{name}.{batch}.{first}"
    return steps, models.tolerance(write_steps(path, steps, batch, first))


def run_sets(options, name, device, target, batch):
    """The program's lines, from 1 token on and up to the last one."""
    path = graph_path(name, options.work)
    bundle = compile_bundle(options, name, path, target)
    lines = []
    for first in FIRSTS:
        steps, allowed = steps_of(options, name, path, batch, first)
        lines.append(models.run_command([options.decode, bundle, steps, device, f"{allowed:.2e}"]).strip() + f", allowed {allowed:.1e}")
        steps.unlink()
    return lines


def check(options, name):
    for line in run_sets(options, name, "cpu", "cpu", BATCH):
        print(f"ok    {name}: {line}", flush=True)
    return {f"{name}.right": 1}


def time(options, name):
    lines = run_sets(options, name, "fake", "sm_90a", 1)
    for line in lines:
        print(f"      {name}: {line}", flush=True)
    return {f"{name}.microseconds": max(float(re.search(r"([\d.]+) us", line)[1]) for line in lines)}


def prepare(options, name):
    path = graph_path(name, options.work)
    folder = options.work / "decode" / name
    folder.mkdir(parents=True, exist_ok=True)
    allowed = {}
    for first in FIRSTS:
        steps, allowed[first] = steps_of(options, name, path, 1, first)
        shutil.move(steps, folder / f"steps{first}")
    (folder / "allowed.json").write_text(json.dumps(allowed))
    print(f"      {folder}")
    return {}


def device(options, name):
    folder = options.work / "decode" / name
    allowed = json.loads((folder / "allowed.json").read_text())
    bundle = compile_bundle(options, name, graph_path(name, options.work), options.target)
    figures = {}
    for first in FIRSTS:
        line = models.run_command([options.decode, bundle, folder / f"steps{first}", "cuda", f"{allowed[str(first)]:.2e}"]).strip()
        print(f"ok    {name}: {line}", flush=True)
        figures[f"{name}.from{first}.microseconds"] = float(re.search(r"([\d.]+) us", line)[1])
    return {f"{name}.steps_right": STEPS * len(FIRSTS), **figures}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "time", "prepare", "device"])
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--decode", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    options.work = options.work.resolve()
    failed = 0
    for name in options.names or ["small.script", "small.dynamo"]:
        try:
            figures = {"check": check, "time": time, "prepare": prepare, "device": device}[options.action](options, name)
            if options.record and figures:
                models.write_record(options.record, figures)
        except RuntimeError as problem:
            failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
