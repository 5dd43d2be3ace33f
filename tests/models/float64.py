"""One model whose arithmetic cancels, against float64: magika's norms subtract a squared mean from a mean of squares.

    float64.py --gpucc PROGRAM --work DIR [--fetched DIR] [--device cpu|cuda:0]

With two byte values in the input the variances are as small as 1e-4 of what they are the difference of, so results of
different float32 programs differ in the third digit. Each must be as near to float64 as ONNX Runtime is, within a factor.
"""
import argparse
import pathlib
import subprocess

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import models

FACTOR = 2


def graph_in_float64(graph):
    for tensor in graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                graph_in_float64(attribute.g)
            elif attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == onnx.TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float64)))
        if node.op_type == "Cast" and node.attribute[0].i == onnx.TensorProto.FLOAT:
            node.attribute[0].i = onnx.TensorProto.DOUBLE
        if node.op_type == "GlobalMaxPool":  # the evaluator's own loses the pooled axis
            node.op_type = "ReduceMax"
            node.attribute.extend([helper.make_attribute("axes", [2]), helper.make_attribute("keepdims", 1)])
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    del graph.value_info[:]


def in_float64(path):
    """The model with float64 in place of float32."""
    model = onnx.load(path)
    graph_in_float64(model.graph)
    return ReferenceEvaluator(model)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=models.HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    path = models.model_path("magika", {"fetched": True}, options.work, options.fetched)
    folder = options.work / "float64"
    folder.mkdir(parents=True, exist_ok=True)
    target = "cpu" if options.device == "cpu" else "sm_90a"
    subprocess.run([str(options.gpucc), str(path), f"--target={target}", "-o", str(folder / "magika.so")], check=True)
    generator = np.random.Generator(np.random.PCG64(5))
    exact, runtime = in_float64(path), models.session(path, True)
    failed = False
    for what, low, high in [("two values", 0, 2), ("bytes", 0, 257), ("no bytes at all", 1000, 2 ** 31 - 1)]:
        data = generator.integers(low, high, (3, 2048)).astype(np.int32)
        np.save(folder / "bytes.npy", data)
        subprocess.run([str(options.gpucc), "run", str(folder / "magika.so"), "--input", f"bytes={folder / 'bytes.npy'}",
                        "--output-dir", str(folder), f"--device={options.device}"], check=True, stdout=subprocess.DEVNULL)
        expected = exact.run(None, {"bytes": data})[0]
        ours, theirs = (np.abs(result - expected).max() / np.abs(expected).max()
                        for result in (np.load(folder / "output_0.npy"), runtime.run(None, {"bytes": data})[0]))
        allowed = max(models.LEAST_TOLERANCE, FACTOR * theirs)
        failed |= not ours <= allowed
        print(f"{what}: error {ours:.2e}, ONNX Runtime's {theirs:.2e}, allowed {allowed:.2e}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
