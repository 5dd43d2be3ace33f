"""GPU time of every model beside PyTorch eager, and of every kernel. For a machine with an NVIDIA GPU; no part of the suite.

    gpu_models.py --gpucc PROGRAM --library LIBGPUCC.so --work DIR [--fetched DIR] [--target sm_90a] [--json FILE]
                  [--kernels N] [--turns N] [NAME ...]

Needs PyTorch with CUDA, onnx, numpy, and NVRTC and a linker for gpucc. Weights are drawn here (tests/models), so nothing large
travels. In one process and in turns: the bundle through the C interface on device tensors; the same graph as PyTorch eager
calls (torch_eager.py: cuDNN and cuBLAS at their best setting, cudnn.benchmark on, TF32 off, since gpucc computes in fp32);
and those calls captured in a CUDA graph, which takes the host's part out. Times are medians over turns, from events on one
stream. The kernels of one run come from PyTorch's profiler; their bounds from the comments of the emitted CUDA C.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "models"), str(HERE)]
import models  # noqa: E402
from gpucc_library import Bundle, Library  # noqa: E402
from torch_eager import TORCH_TYPES, Eager  # noqa: E402

TURN_SECONDS = 0.05
# Sizes worth timing; models that are not listed: the first set of tests/models/models.json.
SIZES = {
    "resnet18.script": [{"batch": 1}, {"batch": 32}],
    "resnet50.script": [{"batch": 1}, {"batch": 32}],
    "mobilenetv2.script": [{"batch": 1}, {"batch": 32}],
    "vit_b16.script": [{"batch": 1}, {"batch": 16}],
    "bert_base.script": [{"batch": 1, "seq": 128}, {"batch": 8, "seq": 128}],
    "distilbert.script": [{"batch": 1, "seq": 128}, {"batch": 8, "seq": 128}],
    "gpt2.script": [{"batch": 1, "seq": 128}, {"batch": 4, "seq": 128}],
    "unet_diffusion.script": [{"batch": 2, "height": 32, "width": 32}, {"batch": 2, "height": 64, "width": 64}],
    "open_nsfw": [{"unk__653": 1}, {"unk__653": 16}],
    "malviz_resnet18": [{"batch_size": 1}, {"batch_size": 16}],
    "minilm_l6_int8": [{"batch": 1, "sequence": 128}],
}


def best_settings():
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")


def compile_bundle(options, path, folder, dims):
    """Planned for exactly these sizes: they are the dims' hints; the bundle still takes others."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [options.gpucc, path, "-o", folder / "model.so", f"--target={options.target}", f"--emit-cuda={folder}"]
    command += [f"--dim={name}=1:{max(size, 4096)}:{size}" for name, size in dims.items()]
    for old in folder.glob("*.cu"):
        old.unlink()
    environment = {**os.environ, "GPUCC_CACHE_DIR": str(options.work / "cache")}
    result = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"gpucc: {result.stderr.strip()}")
    return folder / "model.so"


def kernel_facts(folder):
    """name -> what it computes and the least time that its comment states, in us."""
    facts = {}
    for file in folder.glob("*.cu"):
        text = file.read_text()
        bound = re.search(r"no less than ([\d.]+) us", text)
        strategy = re.search(r"// Strategy (.*)\.\n", text)
        summary = re.search(r"// ([^\n]*)\n// Nodes", text)
        facts[file.stem] = {"bound_us": float(bound.group(1)) if bound else None,
                            "strategy": strategy.group(1) if strategy else "", "summary": summary.group(1) if summary else ""}
    return facts


def event_time(call, count, stream):
    """Microseconds of one call, on the device."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(stream)
    for _ in range(count):
        call()
    end.record(stream)
    end.synchronize()
    return 1e3 * start.elapsed_time(end) / count


def repeats(call, stream):
    for _ in range(3):
        call()
    stream.synchronize()
    return max(3, min(2000, int(1e6 * TURN_SECONDS / max(event_time(call, 3, stream), 1))))


def capture(eager, stream):
    """The calls as a CUDA graph; None where one of them cannot be captured."""
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            eager.run()
        return graph.replay
    except RuntimeError as problem:
        print(f"      not captured: {str(problem).splitlines()[0][:120]}")
        return None


def profile(call, stream, runs=10):
    """[(kernel, launches of a run, us of a launch)], the most expensive first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as result:
        for _ in range(runs):
            call()
        stream.synchronize()
    rows = []
    for row in result.key_averages():
        total = getattr(row, "self_device_time_total", 0) or getattr(row, "self_cuda_time_total", 0)
        if total:
            rows.append((row.key, row.count / runs, total / row.count))
    return sorted(rows, key=lambda row: -row[1] * row[2])


def measure(name, facts, dims, options, library):
    path = models.model_path(name, facts, options.work, options.fetched)
    label = "_".join([name] + [f"{key}{size}" for key, size in dims.items()])
    folder = options.work / "gpu" / label
    bundle = Bundle(library, compile_bundle(options, path, folder, dims))
    stream = torch.cuda.Stream()
    generator = np.random.Generator(np.random.PCG64(7))
    record = {"model": name, "dims": dims}
    inputs = {}
    for info in bundle.infos("input"):
        shape = [info.dims[i] if info.dims[i] >= 0 else dims[info.symbols[i].decode()] for i in range(info.rank)]
        kind = {1: np.float32, 6: np.int32, 7: np.int64}[info.dtype]
        inputs[info.name.decode()] = torch.from_numpy(models.make_input(generator, info.name.decode(), kind, shape)).cuda()
    with torch.inference_mode(), torch.cuda.stream(stream):
        bundle.prepare(dims)
        outputs = [torch.empty(bundle.output_shape(i), dtype=TORCH_TYPES[info.dtype], device="cuda")
                   for i, info in enumerate(bundle.infos("output"))]
        bundle.bind(list(inputs.values()), outputs, None)
        ours = lambda: bundle.enqueue(stream.cuda_stream)  # noqa: E731
        ours()
        eager = Eager(path, inputs, "cuda")
        expected = eager.run()
        stream.synchronize()
        record["error"] = max(models.difference(a.cpu().numpy(), b.cpu().numpy()) for a, b in zip(outputs, expected))
        del expected
        calls = {"gpucc": ours, "eager": eager.run, "graph": None if options.no_graph else capture(eager, stream)}
        counts = {key: repeats(call, stream) for key, call in calls.items() if call}
        times = {key: [] for key in counts}
        for _ in range(options.turns):
            for key, count in counts.items():
                times[key].append(event_time(calls[key], count, stream))
        record.update({f"{key}_us": statistics.median(values) for key, values in times.items()})
        record["spread"] = {key: (max(values) - min(values)) / statistics.median(values) for key, values in times.items()}
        record["launches"] = bundle.statistics().launches
        known = kernel_facts(folder)
        record["kernels"] = [{"kernel": kernel, "launches": count, "us": us, **known.get(kernel, {})}
                             for kernel, count, us in profile(ours, stream)]
        record["torch_kernels"] = [{"kernel": kernel, "launches": count, "us": us}
                                   for kernel, count, us in profile(eager.run, stream)]
    bundle.close()
    return record


def show(record, kernels):
    best = min(record["eager_us"], record.get("graph_us", float("inf")))
    dims = " ".join(f"{key}={size}" for key, size in record["dims"].items())
    print(f"{record['model']:24s} {dims:28s} {record['gpucc_us']:9.1f} us ({record['launches']} launches)  "
          f"eager {record['eager_us']:9.1f}  as a graph {record.get('graph_us', float('nan')):9.1f}  "
          f"ratio to the best {record['gpucc_us'] / best:5.2f}  error {record['error']:.1e}", flush=True)
    for row in record["kernels"][:kernels]:
        bound = row.get("bound_us")
        share = f"{100 * bound / row['us']:4.0f}% of its bound" if bound else " " * 18
        print(f"      {row['launches'] * row['us']:8.1f} us = {row['launches']:5.1f} x {row['us']:8.2f}  {share}  {row['kernel'][:40]}"
              f"  {row.get('summary', '')[:80]}  {row.get('strategy', '')}")
    if kernels:
        print("      PyTorch:")
    for row in record["torch_kernels"][:kernels]:
        print(f"      {row['launches'] * row['us']:8.1f} us = {row['launches']:5.1f} x {row['us']:8.2f}  {row['kernel'][:140]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--kernels", type=int, default=12, help="how many of each model are printed; the JSON holds all")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--no-graph", action="store_true", help="do not capture PyTorch's calls")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    options.work = options.work.resolve()
    best_settings()
    table = json.loads((HERE.parent / "models" / "models.json").read_text())
    library = Library(options.library.resolve())
    profile(lambda: torch.zeros(1, device="cuda"), torch.cuda.current_stream(), 1)  # starts the profiler before any graph exists
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, TF32 off")
    names = options.names or [name for name in table if not name.endswith(".dynamo")]
    records, failed = [], 0
    for name in names:
        if table[name].get("fetched") and not (options.fetched / f"{name}.onnx").exists():
            print(f"{name:24s} not fetched")
            continue
        for dims in SIZES.get(name, table[name]["dims"][:1]):
            try:
                records.append(measure(name, table[name], dims, options, library))
                show(records[-1], options.kernels)
            except Exception as problem:  # the other models are still timed
                failed += 1
                print(f"FAIL  {name} {dims}: {type(problem).__name__}: {str(problem)[:400]}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(records, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
