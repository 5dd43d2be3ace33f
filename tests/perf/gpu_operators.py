"""Operators that take several kernels, at sizes of 10^6 to 10^8: right, equal bits every time, and beside PyTorch. For a
machine with an NVIDIA GPU; no part of the suite.

    gpu_operators.py --gpucc PROGRAM --library LIBGPUCC.so --work DIR [--target sm_90a] [--json FILE] [--turns N] [NAME ...]

Each row is a model of one node. Results are compared with float64 (exactly, where positions or whole numbers come out), three
runs with each other bit by bit, and the time with the PyTorch call that does the same, in turns on one stream.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from gpucc_library import Bundle, Library  # noqa: E402

TURN_SECONDS = 0.05
TYPES = {torch.float32: TensorProto.FLOAT, torch.int64: TensorProto.INT64, torch.int32: TensorProto.INT32}
UNIT = 2.0**-24


def draw(*shape):
    return torch.randn(*shape, device="cuda")


def close(bound):
    def check(got, want):
        error = ((got.double() - want).abs().max() / want.abs().max()).item()
        return error <= bound, error
    return check


def exact(got, want):
    wrong = (got != want).sum().item()
    return wrong == 0, float(wrong)


def fourier(x):
    return torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))


def rows():
    """name -> node type, attributes, constant inputs, data, PyTorch's call, reference, its check."""
    ten6, ten7, ten8 = 10**6, 10**7, 10**8
    root = lambda n: UNIT * (8 + n**0.5)  # noqa: E731  rounding errors of a long sum, as in tests/numeric
    table = {
        "ReduceSum 10^8": ("ReduceSum", {"keepdims": 0}, [np.array([0])], draw(ten8), lambda x: x.sum(0),
                           lambda x: x.double().sum(0), lambda got, want: close(root(ten8))(got, want)),
        "ReduceSum 100x10^6": ("ReduceSum", {"keepdims": 0}, [np.array([1])], draw(100, ten6), lambda x: x.sum(1),
                               lambda x: x.double().sum(1), close(root(ten6))),
        "ArgMax 10^6": ("ArgMax", {"axis": 0, "keepdims": 0, "select_last_index": 0}, [], draw(ten6), lambda x: x.argmax(0),
                        lambda x: x.argmax(0), exact),
        "CumSum 10^7": ("CumSum", {}, [np.array(0)], draw(ten7), lambda x: x.cumsum(0), lambda x: x.double().cumsum(0),
                        close(root(ten7))),
        "CumSum int64 10^7": ("CumSum", {}, [np.array(0)], torch.randint(-9, 9, (ten7,), device="cuda"), lambda x: x.cumsum(0),
                              lambda x: x.cumsum(0), exact),
        "TopK 100 of 10^6": ("TopK", {"axis": 0}, [np.array([100])], draw(ten6), lambda x: x.topk(100).values,
                             lambda x: x.topk(100).values, exact),
        "TopK 10^6 of 10^6": ("TopK", {"axis": 0}, [np.array([ten6])], draw(ten6),
                              lambda x: x.sort(descending=True, stable=True).values,
                              lambda x: x.sort(descending=True).values, exact),
    }
    for n in (1 << 20, 65537, 105 * 1001):
        table[f"DFT {n}"] = ("DFT", {}, [np.array(n), np.array(1)], draw(1, n, 2), fourier, lambda x: fourier(x.double()),
                             close(UNIT * (8 + 4 * n**0.5)))
    return table


def compile_row(options, name, node_type, attributes, constants, data):
    folder = options.work / name.replace(" ", "_").replace("^", "").replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    names = ["x"] + [f"c{i}" for i in range(len(constants))]
    outputs = ["y", "positions"] if node_type == "TopK" else ["y"]
    node = helper.make_node(node_type, names, outputs, **attributes)
    kinds = [TensorProto.INT64 if node_type == "ArgMax" else TYPES[data.dtype], TensorProto.INT64]
    graph = helper.make_graph([node], "row", [helper.make_tensor_value_info("x", TYPES[data.dtype], list(data.shape))],
                              [helper.make_tensor_value_info(n, kind, None) for n, kind in zip(outputs, kinds)],
                              [numpy_helper.from_array(np.asarray(c, np.int64), n) for c, n in zip(constants, names[1:])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    command = [options.gpucc, folder / "model.onnx", "-o", folder / "model.so", f"--target={options.target}"]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"gpucc: {result.stderr.strip()}")
    return folder / "model.so"


def event_time(call, count, stream):
    """Microseconds of one call, on the device."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(stream)
    for _ in range(count):
        call()
    end.record(stream)
    end.synchronize()
    return 1e3 * start.elapsed_time(end) / count


def measure(name, row, options, library):
    node_type, attributes, constants, data, peer, reference, check = row
    bundle = Bundle(library, compile_row(options, name, node_type, attributes, constants, data))
    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        bundle.prepare({})
        kinds = {1: torch.float32, 7: torch.int64}
        outputs = [torch.empty(bundle.output_shape(i), dtype=kinds[info.dtype], device="cuda")
                   for i, info in enumerate(bundle.infos("output"))]
        bundle.bind([data], outputs, None)
        ours = lambda: bundle.enqueue(stream.cuda_stream)  # noqa: E731
        runs = []
        for _ in range(3):
            for output in outputs:
                output.fill_(-1)
            ours()
            runs.append([output.clone() for output in outputs])
        stream.synchronize()
        same = all(torch.equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run))
        right, error = check(outputs[0], reference(data))
        calls = {"gpucc": ours, "torch": lambda: peer(data)}
        counts = {}
        for key, call in calls.items():
            call()
            counts[key] = max(3, min(2000, int(1e6 * TURN_SECONDS / max(event_time(call, 3, stream), 1))))
        times = {key: [] for key in calls}
        for _ in range(options.turns):
            for key, call in calls.items():
                times[key].append(event_time(call, counts[key], stream))
    record = {"operator": name, "right": bool(right), "same_bits": same, "error": error,
              "gpucc_us": statistics.median(times["gpucc"]), "torch_us": statistics.median(times["torch"]),
              "launches": bundle.statistics().launches}
    record["ratio"] = record["gpucc_us"] / record["torch_us"]
    bundle.close()
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    library = Library(options.library.resolve())
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}")
    records, failed = [], 0
    for name, row in rows().items():
        if options.names and name not in options.names:
            continue
        try:
            record = measure(name, row, options, library)
        except Exception as problem:  # the others are still shown
            failed += 1
            print(f"FAIL  {name}: {type(problem).__name__}: {str(problem)[:400]}", flush=True)
            continue
        records.append(record)
        good = record["right"] and record["same_bits"]
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'}  {name:20s} {record['gpucc_us']:9.1f} us ({record['launches']} launches)  PyTorch "
              f"{record['torch_us']:9.1f}  ratio {record['ratio']:5.2f}  error {record['error']:.1e}"
              f"{'' if record['same_bits'] else '  NOT THE SAME BITS'}", flush=True)
    if options.json:
        summary = {"device": torch.cuda.get_device_name(0), "peer": f"PyTorch {torch.__version__}", "wrong": failed,
                   "operators": len(records), "rows": records}
        options.json.write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
