"""Products of matrices on tensor cores beside cuBLAS, and every number of rows from 1 to 300. For a machine with an NVIDIA GPU.

    gpu_matmul.py compile --gpucc PROGRAM --out DIR             bundles for sm_90a, on any machine with NVRTC
    gpu_matmul.py measure --library LIBGPUCC.so --out DIR [--turns N] [--record FILE]
                                                                on the GPU; needs PyTorch with CUDA, numpy and DIR

In one process and in turns: gpucc_enqueue on device tensors, and torch.matmul into a tensor that is there (cuBLAS). Random
data, since zeros draw less power; the median of the turns. Each product must be right: against float64, within half a unit in
the last place of the largest value for each rounding that the model makes, and what f32 sums may differ by. Fails below 0.85 of cuBLAS at 4096.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

SQUARES = [1024, 2048, 4096, 8192]
TYPES = {"f16": (10, 2.0**-10), "bf16": (16, 2.0**-7)}  # TensorProto's number, a unit in the last place
LEAST_SHARE, SHARE_AT = 0.85, 4096
MOST_ROWS = 300
# depth and columns of the products with free rows; both rules of the copy engine, and none
FREE = [(1024, 1536), (1023, 1536), (1024, 1535), (777, 513), (8, 8), (1, 24), (24, 1)]
TURN_SECONDS = 0.1


def product(folder, name, kind, rows, depth, columns, epilogue=False):
    """y = a @ b; with epilogue y = Gelu(a @ b + bias) + residual and z = a @ b + bias."""
    import onnx
    from onnx import helper
    number = TYPES[kind][0]
    info = lambda key, *shape: helper.make_tensor_value_info(key, number, list(shape))  # noqa: E731
    inputs, outputs = [info("a", rows, depth), info("b", depth, columns)], [info("y", rows, columns)]
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y" if not epilogue else "p"])]
    if epilogue:
        inputs += [info("bias", columns), info("residual", rows, columns)]
        outputs += [info("z", rows, columns)]
        nodes += [helper.make_node("Add", ["p", "bias"], ["z"]), helper.make_node("Gelu", ["z"], ["g"]),
                  helper.make_node("Add", ["g", "residual"], ["y"])]
    graph = helper.make_graph(nodes, name, inputs, outputs)
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def bundles():
    """name -> type, rows, depth, columns, epilogue"""
    made = {f"{kind}_{size}": (kind, size, size, size, False) for kind in TYPES for size in SQUARES}
    made[f"f16_{SHARE_AT}_epilogue"] = ("f16", SHARE_AT, SHARE_AT, SHARE_AT, True)
    made.update({f"{kind}_free": (kind, "rows", "depth", "columns", True) for kind in TYPES})
    return made


def compile_all(options):
    options.out.mkdir(parents=True, exist_ok=True)
    for name, (kind, *sizes, epilogue) in bundles().items():
        path = product(options.out, name, kind, *sizes, epilogue)
        free = [] if isinstance(sizes[0], int) else ["--dim=rows=1:4096:256", "--dim=depth=1:8192:1024", "--dim=columns=1:8192:1536"]
        subprocess.run([str(options.gpucc), str(path), "-o", str(options.out / f"{name}.so"), "--target=sm_90a", *free], check=True)
        path.unlink()
    print(f"{len(bundles())} bundles in {options.out}")
    return 0


class Case:
    def __init__(self, torch, library, options, name, rows=None, depth=None, columns=None):
        from gpucc_library import Bundle
        kind, m, k, n, epilogue = bundles()[name]
        self.torch, self.kind, self.epilogue = torch, kind, epilogue
        self.free, self.type = isinstance(m, str), {"f16": torch.float16, "bf16": torch.bfloat16}[kind]
        self.bundle = Bundle(library, options.out / f"{name}.so")
        self.stream = torch.cuda.Stream()
        self.resize(rows or m, depth or k, columns or n)

    def resize(self, m, k, n):
        torch = self.torch
        draw = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.float32).to(self.type)  # noqa: E731
        self.inputs = [draw(m, k), draw(k, n)] + ([draw(n), draw(m, n)] if self.epilogue else [])
        self.outputs = [torch.full((m, n), float("nan"), device="cuda", dtype=self.type) for _ in range(1 + self.epilogue)]
        self.bundle.prepare({"rows": m, "depth": k, "columns": n} if self.free else {})
        self.bundle.bind(self.inputs, self.outputs, None)
        torch.cuda.synchronize()

    def run(self):
        self.bundle.enqueue(self.stream.cuda_stream)

    def error(self):
        """The largest share of what is allowed, after a run."""
        torch = self.torch
        self.run()
        self.stream.synchronize()
        a, b = (value.double() for value in self.inputs[:2])
        sums = a @ b
        # Without the roundings that the model's nodes make: how many lie behind a result says what is allowed. Rounding here
        # too would not do: where a sum lies near the middle of two numbers, both neighbours are right.
        expected = [(sums, 1)]
        if self.epilogue:
            z = sums + self.inputs[2].double()
            expected = [(0.5 * z * (1 + torch.erf(z / math.sqrt(2))) + self.inputs[3].double(), 4), (z, 2)]
        worst = 0.0
        for got, (want, roundings) in zip(self.outputs, expected):
            allowed = roundings * TYPES[self.kind][1] / 2 + 2.0**-24 * (4 * math.sqrt(a.shape[1]) + 8)
            largest = torch.maximum(want.abs().max(), sums.abs().max())  # a sum may cancel what it is made of
            error = float((got.double() - want).abs().max() / largest)
            worst = max(worst, error / allowed if error == error else float("inf"))
        return worst

    def close(self):
        self.bundle.close()


def event_time(torch, call, count, stream):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(stream)
    for _ in range(count):
        call()
    end.record(stream)
    end.synchronize()
    return 1e-3 * start.elapsed_time(end) / count


def compare(torch, case, turns):
    """Medians of a call, in seconds: ours, cuBLAS's, and the median of each turn's share."""
    a, b = case.inputs[:2]
    out = torch.empty(a.shape[0], b.shape[1], device="cuda", dtype=a.dtype)
    calls = {"gpucc": case.run, "cublas": lambda: torch.matmul(a, b, out=out)}
    times = {key: [] for key in calls}
    with torch.cuda.stream(case.stream):
        for call in calls.values():
            for _ in range(5):
                call()
        count = max(3, int(TURN_SECONDS / event_time(torch, calls["cublas"], 5, case.stream)))
        for _ in range(turns):
            for key, call in calls.items():
                times[key].append(event_time(torch, call, count, case.stream))
    share = statistics.median(theirs / ours for ours, theirs in zip(times["gpucc"], times["cublas"]))
    return statistics.median(times["gpucc"]), statistics.median(times["cublas"]), share


def every_row(torch, library, options, kind):
    case, worst, where = Case(torch, library, options, f"{kind}_free", 1, 8, 8), 0.0, None
    for depth, columns in FREE:
        for rows in range(1, MOST_ROWS + 1):
            case.resize(rows, depth, columns)
            error = case.error()
            if error > worst:
                worst, where = error, (rows, depth, columns)
    case.close()
    print(f"{kind}: {MOST_ROWS * len(FREE)} products of 1 to {MOST_ROWS} rows, worst error {worst:.2f} of what is allowed, at {where}",
          flush=True)
    return worst


def measure(options):
    import torch
    from gpucc_library import Library
    torch.manual_seed(7)
    library = Library(options.library)
    record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    good = True
    for name, (kind, m, _, _, epilogue) in bundles().items():
        if isinstance(m, str):
            continue
        case = Case(torch, library, options, name)
        error = case.error()
        ours, theirs, share = compare(torch, case, options.turns)
        case.close()
        flops = 2e-12 * m**3
        good &= error <= 1 and (kind != "f16" or m != SHARE_AT or epilogue or share >= LEAST_SHARE)
        record[name] = {"tflops": round(flops / ours, 1), "cublas_tflops": round(flops / theirs, 1), "share": round(share, 3),
                        "error_of_allowed": round(error, 3)}
        print(f"{name:20s} {flops / ours:7.1f} TFLOP/s, cuBLAS's plain product {flops / theirs:7.1f}, share {share:.3f}, error {error:.2f} of "
              f"what is allowed", flush=True)
    record["share_at_4096"] = record[f"f16_{SHARE_AT}"]["share"]
    record["every_row_error_of_allowed"] = round(max(every_row(torch, library, options, kind) for kind in TYPES), 3)
    good &= record["every_row_error_of_allowed"] <= 1
    if options.record:
        options.record.write_text(json.dumps(record, indent=1) + "\n")
    print("ok" if good else "FAIL")
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["compile", "measure"])
    parser.add_argument("--gpucc", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    return {"compile": compile_all, "measure": measure}[options.action](options)


if __name__ == "__main__":
    sys.exit(main())
