"""A small decoder with the structure of the exported ones: tokens in, scores and longer key and value caches out.

Two forms, as the two exporters write them: "script": the mask is a triangle of a ConstantOfShape, all caches have one named
length; "dynamo": of an Expand, each has a name of its own. Two layers of attention over cache and token; weights from a seed.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, WIDTH, VOCABULARY, POSITIONS = 2, 3, 8, 50, 600
MODEL = HEADS * WIDTH


class Builder:
    def __init__(self):
        self.nodes, self.constants, self.generator = [], [], np.random.Generator(np.random.PCG64(5))

    def add(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value, dtype=np.int64):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape, scale=0.3):
        return self.constant(self.generator.standard_normal(shape) * scale, np.float32)

    def size(self, value, axis):
        return self.add("Gather", self.add("Shape", value), self.constant(axis))

    def linear(self, x, inputs, outputs):
        return self.add("Add", self.weight(outputs), self.add("MatMul", x, self.weight(inputs, outputs)))

    def norm(self, x):
        return self.add("LayerNormalization", x, self.constant(np.ones(MODEL), np.float32), self.weight(MODEL))

    def mask(self, seq, past, form):
        """0 where a token is seen, minus infinity behind it."""
        shape = self.add("Concat", self.add("Unsqueeze", seq, self.constant([0])),
                         self.add("Unsqueeze", self.add("Add", seq, past), self.constant([0])), axis=0)
        if form == "script":
            ones = self.add("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([True])))
        else:
            ones = self.add("Expand", self.constant(True, np.bool_), shape)
        seen = self.add("Trilu", ones, past, upper=0)
        return self.add("Where", seen, self.constant(0, np.float32), self.constant(-np.inf, np.float32))

    def heads(self, x):
        return self.add("Transpose", self.add("Reshape", x, self.constant([0, -1, HEADS, WIDTH])), perm=[0, 2, 1, 3])

    def attention(self, x, layer, mask):
        parts = [f"part_{layer}_{i}" for i in range(3)]
        self.nodes.append(helper.make_node("Split", [self.linear(x, MODEL, 3 * MODEL), self.constant([MODEL] * 3)], parts, axis=2))
        caches = []
        for part, kind in ((parts[1], "key"), (parts[2], "value")):
            name = f"present_{layer}_{kind}"
            self.nodes.append(helper.make_node("Concat", [f"past_{layer}_{kind}", self.heads(part)], [name], axis=2))
            caches.append(name)
        half = self.constant(WIDTH ** -0.25, np.float32)
        keys = self.add("Mul", self.add("Transpose", caches[0], perm=[0, 1, 3, 2]), half)
        scores = self.add("Add", self.add("MatMul", self.add("Mul", self.heads(parts[0]), half), keys), mask)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), caches[1])
        flat = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.constant([0, 0, MODEL]))
        return self.linear(flat, MODEL, MODEL)


def make(form):
    b = Builder()
    past, seq = b.size("past_0_key", 2), b.size("input_ids", 1)
    positions = b.add("Add", b.add("Range", b.constant(0), seq, b.constant(1)), past)
    x = b.add("Add", b.add("Gather", b.weight(VOCABULARY, MODEL), "input_ids"), b.add("Gather", b.weight(POSITIONS, MODEL), positions))
    for layer in range(LAYERS):
        x = b.add("Add", x, b.attention(b.norm(x), layer, b.mask(seq, past, form)))
        wide = b.linear(b.norm(x), MODEL, 2 * MODEL)
        x = b.add("Add", x, b.linear(b.add("Gelu", wide) if form == "dynamo" else b.add("Mul", wide, b.add("Sigmoid", wide)),
                                     2 * MODEL, MODEL))
    b.nodes.append(helper.make_node("MatMul", [b.norm(x), b.weight(MODEL, VOCABULARY)], ["logits"]))
    names = [f"{layer}_{kind}" for layer in range(LAYERS) for kind in ("key", "value")]

    def cache(name, tokens):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", HEADS, tokens, WIDTH])

    graph = helper.make_graph(
        b.nodes, "decoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "seq"])] + [cache(f"past_{n}", "past" if form == "script" else f"past {n}") for n in names],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "seq", VOCABULARY])] +
        [cache(f"present_{n}", "total") for n in names], b.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
