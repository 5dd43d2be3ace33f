"""Sizes that the model computes, in whole models against ONNX Runtime: chains of them, every kind of kernel over them, bounds
that are stated, that grow, that are passed, and a detector followed by NonMaxSuppression and Gather.

    computed_sizes.py --gpucc PROGRAM --work DIR [--device cpu|cuda:0] [--targets LIST]
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
CONSTANTS = {"zero": 0, "one": 1, "two": 2, "zeros": [0], "ones": [1], "fours": [4], "minus": [-1]}


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(","), outputs.split(","), **attributes)


def model(nodes, inputs, outputs, constants=None, opset=17):
    def info(text):
        name, rest = text.split(":")
        letter, _, dims = rest.partition("[")
        shape = [int(d) if d.isdigit() else d for d in dims.rstrip("]").split(" ") if d] if "[" in rest else None
        return helper.make_tensor_value_info(name, {"f": F, "i": I, "b": B}[letter], shape)

    used = {name for n in nodes for name in n.input}
    values = {k: np.asarray(v) for k, v in (CONSTANTS | (constants or {})).items() if k in used}
    graph = helper.make_graph(nodes, "g", [info(x) for x in inputs], [info(x) for x in outputs],
                              [numpy_helper.from_array(v, k) for k, v in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def chain():
    """NonZero, Range, Reshape and Expand, Slice, ConstantOfShape; sizes of sizes."""
    nodes = [node("NonZero", "x", "nz"), node("Shape", "nz", "shape"), node("Gather", "shape,one", "n"),
             node("Range", "zero,n,one", "r"), node("Unsqueeze", "n,zeros", "n1"), node("Concat", "n1,ones", "column", axis=0),
             node("Reshape", "r,column", "c"), node("Concat", "n1,n1", "square", axis=0), node("Expand", "c,square", "e"),
             node("Slice", "e,ones,n1,zeros", "s"), node("ConstantOfShape", "square", "k"), node("Cast", "s", "sf", to=F),
             node("Mul", "sf,sf", "y"), node("Tile", "k,twos", "t"), node("NonZero", "s", "again")]
    return model(nodes, ["x:f[a b]"], ["y:f", "k:f", "nz:i", "n:i[]", "t:f", "again:i"], {"twos": [2, 1]})


def layers():
    """Every kind of kernel over rows of which the model says how many they are."""
    generator = np.random.default_rng(3)
    weights = {"w": generator.standard_normal((24, 40)).astype(np.float32), "v": generator.standard_normal((40, 24)).astype(np.float32),
               "s": np.ones(24, np.float32), "b": generator.standard_normal(24).astype(np.float32),
               "k": generator.standard_normal((6, 1, 3, 3)).astype(np.float32)}
    nodes = [node("Compress", "x,keep", "rows", axis=0), node("MatMul", "rows,w", "h"), node("Relu", "h", "a"),
             node("MatMul", "a,v", "p"), node("Add", "p,b", "q"), node("LayerNormalization", "q,s,b", "l", axis=-1),
             node("Transpose", "l", "turned", perm=[1, 0]), node("MatMul", "l,turned", "scores"),
             node("Softmax", "scores", "soft", axis=-1), node("MatMul", "soft,l", "mixed"),
             node("ReduceMean", "mixed", "mean", axes=[0], keepdims=0), node("ReduceMax", "mixed", "top", axes=[1], keepdims=0),
             node("ArgMax", "mixed", "best", axis=1, keepdims=0), node("CumSum", "mixed,zero", "running"),
             node("Unsqueeze", "mixed,image", "picture"), node("Conv", "picture,k", "conv", pads=[1, 1, 1, 1]),
             node("Concat", "mixed,l", "both", axis=0), node("TopK", "top,ones", "largest,place")]
    return model(nodes, ["x:f[n 24]", "keep:b[m]"],
                 ["mean:f", "top:f", "best:i", "running:f", "conv:f", "both:f", "soft:f", "largest:f", "place:i"],
                 weights | {"image": [0, 1]})


def durations():
    """The length comes from predicted numbers, as in speech: rounded, summed, and rows repeated as often."""
    nodes = [node("MatMul", "x,w", "d"), node("Abs", "d", "abs"), node("Ceil", "abs", "up"), node("Cast", "up", "count", to=I),
             node("Squeeze", "count,last", "counts"), node("CumSum", "counts,zero", "ends"), node("ReduceSum", "counts", "total", keepdims=0),
             node("Range", "zero,total,one", "frames"), node("Unsqueeze", "frames,ones", "column"),
             node("Unsqueeze", "ends,zeros", "row"), node("GreaterOrEqual", "column,row", "past"), node("Cast", "past", "past_i", to=I),
             node("ReduceSum", "past_i,ones", "source", keepdims=0), node("Gather", "x,source", "aligned", axis=0)]
    return model(nodes, ["x:f[n 8]"], ["aligned:f", "frames:i", "total:i[]"],
                 {"w": np.linspace(0.5, 2, 8, dtype=np.float32).reshape(8, 1), "last": [1]})


def shape_input():
    """A Reshape whose shape is a graph input, read on the host, and what hangs on both kinds of sizes."""
    nodes = [node("Reshape", "x,shape", "y"), node("NonZero", "y", "nz"), node("Expand", "one_f,shape", "e"), node("Add", "y,e", "z")]
    return model(nodes, ["x:f[n]", "shape:i[2]"], ["z:f", "nz:i"], {"one_f": np.float32(1)})


def detector(boxes_per_cell=3):
    """A small network of the shape of a one-stage detector: boxes and scores of a grid, NonMaxSuppression, Gather."""
    generator = np.random.default_rng(9)
    classes, channels = 4, boxes_per_cell * (4 + 4)
    weights = {"w1": generator.standard_normal((16, 3, 3, 3)).astype(np.float32) / 5,
               "w2": generator.standard_normal((channels, 16, 1, 1)).astype(np.float32) / 3,
               "rows": [0, -1, 4 + classes], "most": np.array([5]), "overlap": np.float32([0.4]), "least": np.float32([0.55]),
               "box_begin": [0], "box_end": [4], "class_end": [4 + classes], "axis2": [2], "third": [2], "third_end": [3], "axis1": [1]}
    nodes = [node("Conv", "image,w1", "c1", strides=[4, 4], pads=[1, 1, 1, 1]), node("LeakyRelu", "c1", "a1", alpha=0.1),
             node("Conv", "a1,w2", "c2"), node("Transpose", "c2", "last", perm=[0, 2, 3, 1]), node("Reshape", "last,rows", "cells"),
             node("Sigmoid", "cells", "all"), node("Slice", "all,box_begin,box_end,axis2", "boxes"),
             node("Slice", "all,box_end,class_end,axis2", "by_box"), node("Transpose", "by_box", "scores", perm=[0, 2, 1]),
             node("NonMaxSuppression", "boxes,scores,most,overlap,least", "kept"),
             node("Slice", "kept,third,third_end,axis1", "places"), node("Squeeze", "places,axis1", "place"),
             node("Squeeze", "boxes,zeros", "flat"), node("Gather", "flat,place", "found", axis=0), node("GatherND", "scores,kept", "score")]
    return model(nodes, ["image:f[1 3 h w]"], ["kept:i", "found:f", "score:f"], weights)


def run(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return result.returncode, result.stderr.strip()


class Checker:
    def __init__(self, options):
        self.options, self.count, self.failed = options, 0, 0

    def note(self, name, problem):
        self.count += 1
        if problem:
            self.failed += 1
            print(f"FAIL  {name}: {problem}")

    def bundle(self, name, graph, level, extra):
        folder = self.options.work / name
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(graph, folder / "model.onnx")
        status, text = run([self.options.gpucc, folder / "model.onnx", "-o", folder / "model.so",
                            f"--target={self.options.targets}", level, *extra])
        return folder, text if status else None

    def outputs(self, folder, feeds, extra):
        arguments = []
        for key, value in feeds.items():
            np.save(folder / f"{key}.npy", value)
            arguments += ["--input", f"{key}={folder / key}.npy"]
        return run([self.options.gpucc, "run", folder / "model.so", f"--device={self.options.device}", f"--output-dir={folder}",
                    *arguments, *extra])

    def check(self, name, graph, feeds, compile_options=(), run_options=(), tolerance=2e-5):
        session_options = onnxruntime.SessionOptions()
        session_options.log_severity_level = 3
        session = onnxruntime.InferenceSession(graph.SerializeToString(), session_options, providers=["CPUExecutionProvider"])
        for level in ("-O3", "-O0"):
            folder, problem = self.bundle(name, graph, level, compile_options)
            for number, feed in enumerate(feeds if isinstance(feeds, list) else [feeds]):
                if not problem:
                    status, text = self.outputs(folder, feed, run_options)
                    problem = text if status else None
                for i, want in enumerate([] if problem else session.run(None, feed)):
                    got = np.load(folder / f"output_{i}.npy")
                    if got.shape != want.shape or got.dtype != want.dtype:
                        problem = f"output {i} is {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
                    elif want.size and not np.allclose(got, want, tolerance, tolerance * float(np.abs(want).max())):
                        problem = f"output {i} differs by {np.abs(got - want).max()}"
                self.note(f"{name} {level}, feed {number}", problem)

    def refuse(self, name, graph, feeds, words, run_options=()):
        folder, problem = self.bundle(name, graph, "-O3", ())
        if not problem:
            status, text = self.outputs(folder, feeds, run_options)
            problem = None if status == 1 and words in text else f"status {status}, {text!r} does not say {words!r}"
        self.note(name, problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu")
    checker = Checker(parser.parse_args())
    generator = np.random.default_rng(1)
    some = lambda *shape: (generator.random(shape) * 3).astype(np.int64).astype(np.float32)
    checker.check("chain", chain(), [{"x": some(5, 7)}, {"x": np.eye(3, dtype=np.float32)}, {"x": np.ones((1, 2), np.float32)}])
    rows = generator.standard_normal((90, 24)).astype(np.float32)
    keeps = [generator.random(90) < share for share in (0.5, 1.1)] + [np.arange(90) == 41, np.arange(90) < 32]
    checker.check("layers", layers(), [{"x": rows, "keep": keep} for keep in keeps])
    speech = [{"x": generator.standard_normal((count, 8)).astype(np.float32)} for count in (1, 7, 40)]
    checker.check("durations", durations(), speech)
    checker.check("durations with a bound", durations(), speech, ["--dim", "total=0:500:60"])
    checker.check("durations, bound at the run", durations(), speech, (), ["--dim", "total=300"])
    checker.check("durations that outgrow the first attempt", durations(), {"x": 100 * speech[2]["x"]})
    checker.refuse("durations beyond the bound", durations(), {"x": 100 * speech[2]["x"]}, 'for the size "total"', ["--dim", "total=300"])
    x = some(24)
    checker.check("a shape from outside", shape_input(), [{"x": x, "shape": np.array(shape)} for shape in ([4, 6], [24, 1], [2, 12])])
    checker.refuse("a shape that does not fit", shape_input(), {"x": x, "shape": np.array([5, 5])}, "must be shape[0] * shape[1] = 25")
    images = [{"image": generator.random((1, 3, *size)).astype(np.float32)} for size in ((32, 32), (40, 24))]
    checker.check("detector", detector(), images)
    print(f"computed sizes: {checker.count - checker.failed} of {checker.count} right")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
