"""Small models for tests/cli and tests/diag: good ones, and one that is bad for each reason in the table below.

    make_models.py FOLDER

Bad models are made with the onnx package where it lets them be, else by changing bytes.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def tensor(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def value(name, shape, element=FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def model(nodes, inputs, outputs, weights=(), opset=17, **settings):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(weights))
    domains = settings.pop("domains", [])
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    made = helper.make_model(graph, opset_imports=imports, producer_name="make_models", **settings)
    made.ir_version = settings.get("ir_version", 8)
    return made


def one_node(op, inputs=1, outputs=1, opset=17, shape=(2, 3), element=FLOAT, domain="", **attributes):
    """A model of one node "the node" that reads inputs x0, x1, ... of one shape."""
    names, results = [f"x{i}" for i in range(inputs)], [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="the node", domain=domain, **attributes)
    return model([node], [value(name, shape, element) for name in names], [value(r, None, element) for r in results],
                 opset=opset, domains=[domain] if domain else [])


def classifier(inner=4):
    """y = Relu(x @ w + b), with x of [batch, 4]."""
    generator = np.random.Generator(np.random.PCG64(1))
    weights = [tensor("w", generator.standard_normal((inner, 3))), tensor("b", [1, -2, 3])]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"], name="/fc/MatMul"),
             helper.make_node("Add", ["product", "b"], ["sum"], name="/fc/Add"),
             helper.make_node("Relu", ["sum"], ["y"], name="/Relu")]
    return model(nodes, [value("x", ["batch", 4])], [value("y", ["batch", 3])], weights)


# ---- good models

def small():
    return classifier()


def cache():
    """present = past + x, to be written into past's own buffer."""
    return model([helper.make_node("Add", ["past", "x"], ["present"], name="add")],
                 [value("past", [2, 8]), value("x", [2, 8])], [value("present", [2, 8])])


def two_inputs():
    """Dims of both inputs must agree: a guard."""
    return model([helper.make_node("MatMul", ["a", "b"], ["y"], name="product")],
                 [value("a", ["rows", "left"]), value("b", ["right", 5])], [value("y", None)])


def half():
    """Products of f16: rows of 41, which the copy engine of sm_90a refuses, and of 24."""
    generator = np.random.Generator(np.random.PCG64(3))
    weights = [tensor(n, generator.standard_normal(s), np.float16) for n, s in [("w", (64, 41)), ("v", (64, 24))]]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="odd"),
             helper.make_node("MatMul", ["x", "v"], ["z"], name="even")]
    half = TensorProto.FLOAT16
    return model(nodes, [value("x", [256, 64], half)], [value("y", [256, 41], half), value("z", [256, 24], half)], weights)


def heavy():
    """4 MB of weights."""
    weight = np.random.Generator(np.random.PCG64(2)).standard_normal((1024, 1024))
    return model([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [value("x", [1, 1024])],
                 [value("y", None)], [tensor("w", weight)])


def odd_names():
    """Names that may neither act on a terminal, nor end a quote, nor reach generated code."""
    x, y = 'x"\\\x1b[31m\n*/ é', "y%s$(id)`id`"
    return model([helper.make_node("Neg", [x], [y], name="*/ #include <evil>\n")], [value(x, ["b'\"\n", 2])],
                 [value(y, None)])


def types():
    """An integer input beside a float one."""
    return model([helper.make_node("Gather", ["table", "ids"], ["y"], name="look up")],
                 [value("ids", ["count"], INT64)], [value("y", None)],
                 [tensor("table", np.arange(12).reshape(6, 2))])


def shape_input():
    """An input whose values give a size."""
    return model([helper.make_node("Expand", ["x", "shape"], ["y"], name="expand")],
                 [value("x", [1, 3]), value("shape", [2], INT64)], [value("y", None)])


def frozen():
    """A weight that gives a shape, beside one that does not."""
    return model([helper.make_node("Reshape", ["x", "shape"], ["r"], name="reshape"),
                  helper.make_node("Add", ["r", "w"], ["y"], name="add")], [value("x", [2, 3])], [value("y", None)],
                 [tensor("shape", [3, 2], np.int64), tensor("w", [1, 2])])


# ---- bad models, in the order of the list

def no_ir_version():
    made = small()
    made.ClearField("ir_version")
    return made


def new_ir_version():
    made = small()
    made.ir_version = 99
    return made


def no_opset():
    made = small()
    del made.opset_import[:]
    return made


def new_opset():
    made = small()
    made.opset_import[0].version = 999
    return made


def old_opset():
    made = small()
    made.opset_import[0].version = 6
    return made


def unknown_operator():
    return one_node("Frobnicate")


def unknown_domain():
    return one_node("Relu", domain="com.example")


def unsupported_operators():
    """Three nodes that are not supported, for three reasons, and a good one between."""
    nodes = [helper.make_node("TfIdfVectorizer", ["x"], ["u"], name="first"),
             helper.make_node("Relu", ["x"], ["r"], name="good"),
             helper.make_node("StringNormalizer", ["r"], ["z"], name="second"),
             helper.make_node("Frobnicate", ["r"], ["f"], name="third")]
    return model(nodes, [value("x", [4])], [value("u", None), value("z", None), value("f", None)])


def many_unsupported():
    """More problems than are reported of a compile."""
    nodes = [helper.make_node("Frobnicate", ["x"], [f"y{i}"], name=f"n{i}") for i in range(150)]
    return model(nodes, [value("x", [4])], [value("y0", None)])


def unsupported_type():
    return one_node("Identity", element=TensorProto.STRING)


def refused_type():
    return one_node("Relu", opset=13, element=INT64)


def cycle():
    nodes = [helper.make_node("Add", ["x", "c"], ["a"], name="one"), helper.make_node("Neg", ["a"], ["b"], name="two"),
             helper.make_node("Abs", ["b"], ["c"], name="three")]
    return model(nodes, [value("x", [2])], [value("c", None)])


def missing_input():
    return model([helper.make_node("Add", ["x", "nowhere"], ["y"], name="adder")], [value("x", [2])], [value("y", None)])


def missing_output():
    return model([helper.make_node("Neg", ["x"], ["y"], name="n")], [value("x", [2])], [value("z", None)])


def duplicate_output():
    nodes = [helper.make_node("Neg", ["x"], ["y"], name="one"), helper.make_node("Abs", ["x"], ["y"], name="two")]
    return model(nodes, [value("x", [2])], [value("y", None)])


def duplicate_input():
    return model([helper.make_node("Neg", ["x"], ["y"], name="n")], [value("x", [2]), value("x", [3])],
                 [value("y", None)])


def duplicate_weight():
    return model([helper.make_node("Add", ["x", "w"], ["y"], name="n")], [value("x", [2])], [value("y", None)],
                 [tensor("w", [1, 2]), tensor("w", [3, 4])])


def too_few_inputs():
    return one_node("Add", inputs=1)


def too_many_inputs():
    return one_node("Relu", inputs=2)


def too_many_outputs():
    return one_node("Relu", outputs=2)


def absent_input():
    return model([helper.make_node("Add", ["", "x"], ["y"], name="the node")], [value("x", [2])], [value("y", None)])


def attribute_type():
    return one_node("Softmax", axis=1.5)


def attribute_unknown():
    return one_node("Relu", slope=2)


def attribute_missing():
    return one_node("Cast")


def attribute_range():
    return one_node("Softmax", axis=7)


def attribute_word():
    return one_node("AveragePool", shape=(1, 1, 4, 4), kernel_shape=[2, 2], auto_pad="SIDEWAYS")


def attribute_twice():
    made = one_node("Softmax", axis=1)
    made.graph.node[0].attribute.append(made.graph.node[0].attribute[0])
    return made


def inner_dims():
    return classifier(inner=5)


def broadcast_dims():
    return model([helper.make_node("Add", ["x", "z"], ["y"], name="adder")], [value("x", [2, 3]), value("z", [2, 4])],
                 [value("y", None)])


def conv_channels():
    return model([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], [value("x", [1, 4, 8, 8])],
                 [value("y", None)], [tensor("w", np.zeros((6, 3, 3, 3)))])


def two_wrong_shapes():
    nodes = [helper.make_node("Add", ["x", "z"], ["a"], name="one"), helper.make_node("Mul", ["z", "x"], ["b"], name="two"),
             helper.make_node("Neg", ["a"], ["c"], name="fed by one")]
    return model(nodes, [value("x", [2, 3]), value("z", [2, 4])], [value("b", None), value("c", None)])


def reshape_size():
    return model([helper.make_node("Reshape", ["x", "s"], ["y"], name="reshape")], [value("x", [2, 3])],
                 [value("y", None)], [tensor("s", [4, 2], np.int64)])


def short_tensor():
    made = small()
    made.graph.initializer[0].raw_data = made.graph.initializer[0].raw_data[:-1]
    return made


def unknown_rank():
    return model([helper.make_node("Neg", ["x"], ["y"], name="n")], [value("x", None)], [value("y", None)])


def external(location, offset=None, length=None):
    """w of small.onnx, 48 bytes, in the file `location`."""
    made = small()
    weight = made.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, text in [("location", location), ("offset", offset), ("length", length)]:
        if text is not None:
            weight.external_data.add(key=key, value=str(text))
    return made


MODELS = [small, cache, two_inputs, half, heavy, odd_names, types, shape_input, frozen, no_ir_version, new_ir_version, no_opset,
          new_opset, old_opset, unknown_operator, unknown_domain, unsupported_operators, many_unsupported,
          unsupported_type, refused_type, cycle, missing_input, missing_output, duplicate_output, duplicate_input,
          duplicate_weight, too_few_inputs, too_many_inputs, too_many_outputs, absent_input, attribute_type,
          attribute_unknown, attribute_missing, attribute_range, attribute_word, attribute_twice, inner_dims,
          broadcast_dims, conv_channels, two_wrong_shapes, reshape_size, short_tensor, unknown_rank]


def external_models():
    return {
        "external_good": external("weights/w.data", 16, 48),
        "external_missing": external("nowhere.data"),
        "external_short": external("weights/short.data", 0, 48),
        "external_offset": external("weights/w.data", 1 << 40, 48),
        "external_wrong_length": external("weights/w.data", 0, 47),
        "external_parent": external("../w.data"),
        "external_absolute": external("/etc/passwd", 0, 48),
        "external_link": external("weights/link.data", 0, 48),
        "external_linked_folder": external("weights/folder/w.data", 0, 48),
        "external_folder": external("weights"),
        "external_fifo": external("weights/fifo", 0, 48),
        "external_negative": external("weights/w.data", -16, 48),
        "external_no_number": external("weights/w.data", "16x", 48),
        "external_no_location": external(""),
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in MODELS:
        (folder / f"{make.__name__}.onnx").write_bytes(make().SerializeToString())
    for name, made in external_models().items():
        (folder / f"{name}.onnx").write_bytes(made.SerializeToString())
    whole = small().SerializeToString()
    weight = small().graph.initializer[0].raw_data
    files = {
        "empty.onnx": b"",
        "text.onnx": b"This is a text and no model.\n" * 20,
        "cut.onnx": whole[:len(whole) * 2 // 3],
        "zeros.onnx": bytes(1000),
        "w.data": bytes(16) + weight,
        "short.data": weight[:47],
        "elf.bin": pathlib.Path(sys.executable).resolve().read_bytes()[:100000],
        "scalar.pb": numpy_helper.from_array(np.float32(1)).SerializeToString(),
        "x.pb": numpy_helper.from_array(np.ones((2, 4), np.float32), "x").SerializeToString(),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    linker = folder / "ld.full"
    linker.write_text('#!/bin/sh\ncase $1 in --version) echo "a linker";; *) echo "cannot write: No space left on device"; exit 1;; esac\n')
    linker.chmod(0o755)
    arrays = {
        "x": np.ones((2, 4), np.float32), "x_double": np.ones((2, 4)), "x_rank": np.ones((2, 4, 1), np.float32),
        "x_dim": np.ones((2, 5), np.float32), "x_fortran": np.asfortranarray(np.ones((2, 4), np.float32)),
        "ids": np.array([0, 5, 3], np.int64), "a": np.ones((2, 3), np.float32), "b": np.ones((4, 5), np.float32),
        "x_complex": np.ones((2, 4), np.complex64), "shape": np.array([2, 3], np.int64),
        "shape_bad": np.array([2, 7], np.int64), "one_three": np.ones((1, 3), np.float32),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    whole = (folder / "x.npy").read_bytes()
    (folder / "x_cut.npy").write_bytes(whole[:-4])
    (folder / "x_header.npy").write_bytes(whole[:40])


if __name__ == "__main__":
    main()
