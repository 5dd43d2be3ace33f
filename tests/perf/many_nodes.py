"""Reader, passes and plan of a graph of 10,000 nodes on one core: prints the seconds of the processor that it takes for the
CPU and for a GPU, and fails above 10. No code is generated and nothing above 1 MB is folded. The blocks are those of
transformers and convolutional networks with the shape arithmetic that exporters write, so that every pass has work.

    many_nodes.py --gpucc PROGRAM [--nodes N] [--record FILE]
"""
import argparse
import os
import pathlib
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import models  # noqa: E402

LIMIT = 10.0
WIDTH, HEADS = 64, 4


class Builder:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0
        generator = np.random.default_rng(1)
        for name, shape in [("w", (WIDTH, WIDTH)), ("b", (WIDTH,)), ("scale", (WIDTH,)), ("c", (WIDTH, WIDTH, 1, 1))]:
            self.constant(name, (generator.standard_normal(shape) * 0.1).astype(np.float32))
        for name, values in [("zero", 0), ("one", 1), ("heads", [HEADS]), ("rest", [WIDTH // HEADS]), ("width", [WIDTH]),
                             ("axis0", [0]), ("side", [4])]:
            self.constant(name, np.array(values, np.int64))

    def constant(self, name, values):
        self.weights.append(numpy_helper.from_array(values, name))

    def add(self, op, inputs, **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"/{op}_{self.count}", **attributes))
        return name

    def size(self, x, axis):
        shape = self.add("Shape", [x])
        return self.add("Unsqueeze", [self.add("Gather", [shape, axis], axis=0), "axis0"])

    def attention(self, x):
        batch, length = self.size(x, "zero"), self.size(x, "one")
        split = self.add("Concat", [batch, length, "heads", "rest"], axis=0)
        parts = []
        for _ in range(3):
            product = self.add("Add", [self.add("MatMul", [x, "w"]), "b"])
            parts.append(self.add("Transpose", [self.add("Reshape", [product, split])], perm=[0, 2, 1, 3]))
        turned = self.add("Transpose", [parts[1]], perm=[0, 1, 3, 2])
        scores = self.add("Softmax", [self.add("MatMul", [parts[0], turned])], axis=-1)
        mixed = self.add("Transpose", [self.add("MatMul", [scores, parts[2]])], perm=[0, 2, 1, 3])
        joined = self.add("Reshape", [mixed, self.add("Concat", [batch, length, "width"], axis=0)])
        x = self.add("Add", [x, self.add("MatMul", [joined, "w"])])
        return self.add("LayerNormalization", [x, "scale", "b"], axis=-1)

    def pointwise(self, x):
        y = self.add("Mul", [self.add("Sigmoid", [self.add("Add", [self.add("MatMul", [x, "w"]), "b"])]), x])
        return self.add("Add", [self.add("Tanh", [self.add("Mul", [y, "scale"])]), x])

    def convolution(self, x):
        batch = self.size(x, "zero")
        image = self.add("Concat", [batch, "width", "side", self.add("Div", [self.size(x, "one"), "side"])], axis=0)
        y = self.add("Reshape", [self.add("Transpose", [x], perm=[0, 2, 1]), image])
        y = self.add("Relu", [self.add("Conv", [y, "c", "b"], kernel_shape=[1, 1])])
        flat = self.add("Reshape", [y, self.add("Concat", [batch, "width", self.size(x, "one")], axis=0)])
        return self.add("Add", [self.add("Transpose", [flat], perm=[0, 2, 1]), x])


def make(nodes):
    builder, x = Builder(), "x"
    while builder.count < nodes:
        for block in (builder.attention, builder.pointwise, builder.convolution):
            x = block(x)
    shape = ["batch", "length", WIDTH]
    graph = helper.make_graph(builder.nodes, "many", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)], builder.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model, builder.count


def seconds_of(command):
    child = os.spawnv(os.P_NOWAIT, command[0], command)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: failed")
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    worst = 0.0
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "many.onnx"
        model, count = make(options.nodes)
        path.write_bytes(model.SerializeToString())
        for target in ("cpu", "sm_90a"):
            taken = seconds_of([str(options.gpucc), "check", f"--target={target}", str(path)])
            worst = max(worst, taken)
            print(f"{'ok  ' if taken <= LIMIT else 'OVER'} {count} nodes for {target}: {taken:.2f} s on one core", flush=True)
    if options.record:
        models.write_record(options.record, {"nodes": count, "nodes_seconds": worst})
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
