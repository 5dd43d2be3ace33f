"""yolov3.dynamo followed by NonMaxSuppression and Gather: how many boxes are kept hangs on the data.

    detector.py --gpucc PROGRAM --work DIR [--device cpu|cuda:0] [--targets LIST] [--record FILE]

Boxes and scores are compared with ONNX Runtime's within models.py's tolerance. Which of them are kept hangs on comparisons that
the last bit decides, so ONNX Runtime suppresses gpucc's own boxes and scores, and the kept ones must be equal, in their order;
so must the boxes gathered by them.
"""
import argparse
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import models

NAME, BOXES, MOST, LEVEL = "yolov3.dynamo", 10647, 20, 0.7
SUPPRESSION = {"most": np.array([MOST]), "overlap": np.float32([0.45])}


def constant(graph, name, value):
    graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return name


def append_suppression(graph):
    """Scores are objectness times class; the threshold follows the largest, since the weights are random."""
    def node(op, inputs, output, **attributes):
        graph.node.append(helper.make_node(op, inputs, [output], **attributes))
        return output
    two = constant(graph, "axis_2", [2])
    ends = {size: constant(graph, f"end_{size}", [size]) for size in (0, 1, 2, 3, 4, 5, 85)}
    corners = node("Slice", ["boxes", ends[0], ends[4], two], "corners")
    object_score = node("Slice", ["boxes", ends[4], ends[5], two], "object_score")
    classes = node("Slice", ["boxes", ends[5], ends[85], two], "classes")
    scores = node("Transpose", [node("Mul", [classes, object_score], "products")], "scores", perm=[0, 2, 1])
    largest = node("ReduceMax", [scores], "largest", keepdims=1)
    least = node("Mul", [largest, constant(graph, "level", np.float32([[[LEVEL]]]))], "least")
    threshold = node("Reshape", [least, ends[1]], "threshold")
    settings = [constant(graph, key, value) for key, value in SUPPRESSION.items()]
    kept = node("NonMaxSuppression", [corners, scores, *settings, threshold], "kept", center_point_box=1)
    column = node("Squeeze", [node("Slice", [kept, ends[2], ends[3], ends[1]], "last"), ends[1]], "positions")
    node("Gather", [node("Squeeze", [corners, ends[0]], "rows"), column], "found", axis=0)
    del graph.output[:]
    for name, kind in [("corners", TensorProto.FLOAT), ("scores", TensorProto.FLOAT), ("threshold", TensorProto.FLOAT),
                       ("kept", TensorProto.INT64), ("found", TensorProto.FLOAT)]:
        graph.output.append(helper.make_tensor_value_info(name, kind, None))


def suppress(corners, scores, threshold):
    names = ["corners", "scores", *SUPPRESSION, "threshold"]
    values = [corners, scores, *SUPPRESSION.values(), threshold]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in zip(names, values)]
    graph = helper.make_graph([helper.make_node("NonMaxSuppression", names, ["kept"], center_point_box=1)], "suppression", infos,
                              [helper.make_tensor_value_info("kept", TensorProto.INT64, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    run = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return run.run(None, dict(zip(names, values)))[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    filled = models.model_path(NAME, {}, options.work, None)
    model = onnx.load(filled, load_external_data=False)
    append_suppression(model.graph)
    path = filled.with_name("detector.onnx")
    onnx.save(model, path)
    folder = options.work / "detector"
    folder.mkdir(parents=True, exist_ok=True)
    images = np.random.default_rng(0).random((1, 3, 416, 416), dtype=np.float32)
    np.save(folder / "images.npy", images)
    models.run_command([options.gpucc, path, "-o", folder / "model.so", f"--target={options.targets}", "--dim=images[0]=1"])
    models.run_command([options.gpucc, "run", folder / "model.so", f"--device={options.device}",
                        f"--input=images={folder / 'images.npy'}", f"--output-dir={folder}"])
    corners, scores, threshold, kept, found = (np.load(folder / f"output_{i}.npy") for i in range(5))
    (folder / "model.so").unlink()
    run = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = run.run(["corners", "scores"], {"images": images})
    error = max(models.difference(a, b) for a, b in zip((corners, scores), expected))
    same = np.array_equal(kept, suppress(corners, scores, threshold))
    gathered = np.array_equal(found, corners[0][kept[:, 2]])
    right = error <= models.LEAST_TOLERANCE and same and gathered and 0 < len(kept) < BOXES
    print(f"{'ok   ' if right else 'FAIL '} {len(kept)} boxes kept, {'those' if same else 'NOT those'} of ONNX Runtime, "
          f"{'gathered' if gathered else 'NOT gathered'}; boxes and scores: error {error:.2e}, allowed {models.LEAST_TOLERANCE:.0e}")
    if options.record:
        models.write_record(options.record, {"kept": len(kept), "error": error, "wrong": int(not right)})
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
