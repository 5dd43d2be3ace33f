"""A generated graph of many nodes through the whole line, beside ONNX Runtime.

    large_graph.py --gpucc PROGRAM [--nodes N]

Blocks of a normalisation, a matrix product, a GELU spelled out and a residual, with reshapes, transposes, splits and
concatenations between, all with weights of their own. The bundle must agree with ONNX Runtime at two sizes, and equal
kernels must have been compiled once: far fewer kernels than launches, in every target, and fewer units of CUDA than kernels.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WIDTH = 32
TOLERANCE = 1e-4
LEAST_LAUNCHES_A_KERNEL = 10


class Builder:
    def __init__(self):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(0)

    def weight(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def floats(self, *shape, scale=1.0):
        return self.weight((self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, value):
        return self.weight(np.float32(value))

    def block(self, x, number):
        mean = self.node("ReduceMean", x, axes=[-1], keepdims=1)
        centred = self.node("Sub", x, mean)
        variance = self.node("ReduceMean", self.node("Mul", centred, centred), axes=[-1], keepdims=1)
        deviation = self.node("Sqrt", self.node("Add", variance, self.constant(1e-5)))
        y = self.node("Mul", self.node("Div", centred, deviation), self.floats(WIDTH))
        y = self.node("Add", self.node("MatMul", y, self.floats(WIDTH, WIDTH, scale=WIDTH**-0.5)), self.floats(WIDTH, scale=0.1))
        inner = self.node("Add", self.node("Erf", self.node("Div", y, self.constant(2**0.5))), self.constant(1))
        y = self.node("Mul", self.node("Mul", y, inner), self.constant(0.5))
        if number % 4 == 1:
            y = self.node("Reshape", y, self.weight(np.array([0, 4, WIDTH // 4], np.int64)))
            y = self.node("Transpose", y, perm=[0, 2, 1])
            y = self.node("Reshape", y, self.weight(np.array([0, WIDTH], np.int64)))
        if number % 4 == 3:
            low, high = self.node("Split", y, self.weight(np.array([WIDTH // 2] * 2, np.int64)), outputs=2, axis=1)
            y = self.node("Concat", self.node("Sigmoid", high), low, axis=1)
        return self.node("Add", x, y)

    def model(self, count):
        x, number = "x", 0
        while len(self.nodes) < count:
            x, number = self.block(x, number), number + 1
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH]) for name in ("x", x)]
        graph = helper.make_graph(self.nodes, "large", ends[:1], ends[1:], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, default=3000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpucc-large-") as name:
        folder = pathlib.Path(name)
        builder = Builder()
        onnx.save(builder.model(options.nodes), folder / "model.onnx")
        start = time.monotonic()
        for targets in ("cpu,sm_90a", "cpu"):
            status, log = run(options.gpucc, folder / "model.onnx", "-o", folder / "model.so", f"--target={targets}", f"--cache={folder}/cache")
            if status != 3:  # 3: no NVRTC
                break
        if status:
            sys.exit(f"exit status {status}\n{log}")
        seconds = time.monotonic() - start
        facts = json.loads(run(options.gpucc, "info", folder / "model.so")[1])
        session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
        worst = 0.0
        for rows in (3, 17):
            x = builder.random.standard_normal((rows, WIDTH)).astype(np.float32)
            np.save(folder / "x.npy", x)
            status, log = run(options.gpucc, "run", folder / "model.so", f"--input=x={folder}/x.npy", f"--output-dir={folder}",
                              "--device=cpu")
            if status:
                sys.exit(f"run: exit status {status}\n{log}")
            expected = session.run(None, {"x": x})[0]
            error = float(np.abs(np.load(folder / "output_0.npy") - expected).max() / np.abs(expected).max())
            if not error <= TOLERANCE:
                sys.exit(f"{rows} rows: error {error:.2g}, allowed {TOLERANCE:g}")
            worst = max(worst, error)
        for target in facts["targets"]:
            if target["kernels"] * LEAST_LAUNCHES_A_KERNEL > target["launches"]:
                sys.exit(f"{target['name']}: {target['kernels']} kernels for {target['launches']} launches of equal blocks")
        units = sum(path.is_file() for path in (folder / "cache").rglob("*"))  # one entry of the cache a unit
        for target in facts["targets"]:
            if target["name"].startswith("sm_") and not 0 < units < target["kernels"]:
                sys.exit(f"{units} units for {target['kernels']} small kernels")
    kernels = ", ".join(f"{target['name']} {target['kernels']} kernels for {target['launches']} launches" for target in facts["targets"])
    print(f"{len(builder.nodes)} nodes in {seconds:.1f} s, error {worst:.2g}; {kernels}; {units} units of CUDA")


if __name__ == "__main__":
    main()
