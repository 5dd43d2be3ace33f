"""If, Loop and Scan on the CPU (or another device) against independent references: whole models, since their bodies take values from
around them.

    control_flow.py --gpucc PROGRAM --work DIR [--device cpu|cuda:0] [--targets LIST]
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(","), outputs.split(","), **attributes)


def graph(name, nodes, inputs, outputs, constants=None):
    """inputs, outputs: "name:type" or "name:type[dims]"."""
    def info(text):
        name, rest = text.split(":")
        letter, _, dims = rest.partition("[")
        shape = [int(d) if d.isdigit() else d for d in dims.rstrip("]").split(" ") if d] if "[" in rest else None
        return helper.make_tensor_value_info(name, {"f": F, "i": I, "b": B}[letter], shape)

    constants = [numpy_helper.from_array(np.asarray(value), key) for key, value in (constants or {}).items()]
    return helper.make_graph(nodes, name, [info(x) for x in inputs], [info(x) for x in outputs], constants)


def branches():
    then = graph("then", [node("Relu", "x", "a"), node("Mul", "a,w", "r")], [], ["r:f"])
    other = graph("other", [node("Neg", "x", "a"), node("Softmax", "a", "r", axis=-1)], [], ["r:f"])
    return graph("branches", [node("If", "c", "y", then_branch=then, else_branch=other), node("Add", "y,x", "z")],
                 ["c:b[]", "x:f[n 5]"], ["z:f[n 5]"], {"w": np.arange(5, dtype=np.float32)})


def shape_fact():
    then = graph("then", [node("Relu", "x", "r")], [], ["r:f"])
    other = graph("other", [node("Unsqueeze", "x,zero", "r")], [], ["r:f"])
    return graph("shape_fact", [node("Shape", "x", "s"), node("Gather", "s,one", "n1"), node("Equal", "n1,five", "c"),
                                node("If", "c", "y", then_branch=then, else_branch=other)],
                 ["x:f[n 5]"], ["y:f[n 5]"], {"one": 1, "five": 5, "zero": [0]})


def untouched():
    """Branches that give what they did not make: a value from around them, a weight, one value twice."""
    then = graph("then", [node("Identity", "x", "a"), node("Identity", "w", "b")], [], ["a:f", "b:f", "a:f"])
    other = graph("other", [node("Neg", "x", "a"), node("Identity", "w", "b")], [], ["a:f", "a:f", "b:f"])
    return graph("untouched", [node("If", "c", "p,q,r", then_branch=then, else_branch=other), node("Exp", "p", "e")],
                 ["c:b[]", "x:f[5]"], ["e:f[5]", "q:f[5]", "r:f[5]"], {"w": np.arange(5, dtype=np.float32)})


def counted():
    body = graph("body", [node("MatMul", "s,w", "a"), node("Tanh", "a", "t"), node("Add", "k,half", "k2"),
                          node("Identity", "on", "still")],
                 ["i:i[]", "on:b[]", "s:f", "k:f"], ["still:b", "t:f", "k2:f"])
    weights = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    return graph("counted", [node("Loop", "trips,,x,k0", "y,k", body=body)], ["trips:i[]", "x:f[n 4]"],
                 ["y:f[n 4]", "k:f[]"], {"w": weights, "k0": np.float32(0), "half": np.float32(0.5)})


def scan_outputs():
    # "i" itself as an output: ONNX Runtime 1.32 gives the number of trips for every iteration
    body = graph("body", [node("Gather", "x,i", "xi", axis=1), node("Add", "s,xi", "s2"), node("Mul", "s2,two", "o"),
                          node("Identity", "on", "still"), node("Add", "i,one", "number")],
                 ["i:i[]", "on:b[]", "s:f"], ["still:b", "s2:f", "o:f", "number:i"])
    return graph("scan_outputs", [node("Shape", "x", "shape"), node("Gather", "shape,one", "t"),
                                  node("Loop", "t,yes,z", "y,o,numbers", body=body)],
                 ["x:f[b t 3]", "z:f[b 3]"], ["y:f[b 3]", "o:f[t b 3]", "numbers:i[t]"],
                 {"one": 1, "two": np.float32(2), "yes": True})


def counting_condition():
    """As TensorFlow writes `for`: the condition counts in floats, weights go round as states, scan outputs have a length."""
    body = graph("body", [node("Add", "k,one", "k2"), node("Gather", "x,k", "xk", axis=0), node("Mul", "xk,w", "scaled"),
                          node("Add", "s,scaled", "s2"), node("Cast", "k2", "kf", to=F), node("Cast", "n", "nf", to=F),
                          node("Less", "kf,nf", "inside"), node("Cast", "i", "if", to=F), node("Cast", "n", "mf", to=F),
                          node("Less", "if,mf", "below"), node("And", "inside,below", "still")],
                 ["i:i[]", "on:b[]", "k:i[]", "s:f", "n:i[]", "w:f"], ["still:b", "k2:i", "s2:f", "n:i", "w:f", "s2:f"])
    return graph("counting_condition",
                 [node("Shape", "x", "shape"), node("Gather", "shape,zero", "t"), node("Cast", "t", "tf", to=F),
                  node("Less", "none,tf", "some"), node("Loop", "many,some,zero,z,t,weight", "k,y,m,v,all", body=body)],
                 ["x:f[t 3]", "z:f[3]"], ["y:f[3]", "all:f[t 3]"],
                 {"zero": 0, "one": 1, "none": np.float32(0), "many": 2 ** 31, "weight": np.arange(3, dtype=np.float32)})


def early_exit():
    """States that change places, and a condition that the body computes."""
    body = graph("body", [node("Add", "a,b", "c"), node("ReduceSum", "c", "sum", keepdims=0), node("Less", "sum,limit", "on")],
                 ["i:i[]", "was:b[]", "a:f", "b:f"], ["on:b", "b:f", "c:f"])
    return graph("early_exit", [node("Loop", ",yes,x,x2", "y,o", body=body)], ["x:f[n]", "x2:f[n]", "limit:f[]"],
                 ["y:f[n]", "o:f[n]"], {"yes": True})


def early_scan():
    """Scan outputs of a loop that may end before its trip count, or not begin: their length comes with the data."""
    body = graph("body", [node("Mul", "a,two", "b"), node("ReduceSum", "b", "sum", keepdims=0), node("Less", "sum,limit", "on")],
                 ["i:i[]", "was:b[]", "a:f"], ["on:b", "b:f", "b:f", "sum:f"])
    return graph("early_scan", [node("Less", "zero,limit", "begins"), node("Loop", "most,begins,x", "y,all,sums", body=body),
                                node("ReduceSum", "all", "total", keepdims=0)],
                 ["x:f[n]", "limit:f[]"], ["y:f[n]", "all:f[k n]", "sums:f[k]", "total:f[]"],
                 {"two": np.float32(2), "most": 9, "zero": np.float32(0)})


def backward_scan():
    body = graph("body", [node("Add", "s,e", "s2"), node("Mul", "s2,e", "o")], ["s:f", "e:f"], ["s2:f", "o:f"])
    scan = node("Scan", "z,x", "y,o", body=body, num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
                scan_output_axes=[1], scan_output_directions=[1])
    return graph("backward_scan", [scan], ["x:f[b t 3]", "z:f[b 3]"], ["y:f[b 3]", "o:f[b t 3]"])


def branch_in_loop():
    """Names that mean one thing in each body, and captures across two of them."""
    then = graph("then", [node("Mul", "s,two", "r")], [], ["r:f"])
    other = graph("other", [node("Add", "s,two", "r")], [], ["r:f"])
    body = graph("body", [node("Mod", "i,pair", "m"), node("Cast", "m", "odd", to=B),
                          node("If", "odd", "r", then_branch=then, else_branch=other), node("Identity", "on", "still")],
                 ["i:i[]", "on:b[]", "s:f"], ["still:b", "r:f", "r:f"])
    return graph("branch_in_loop", [node("Loop", "trips,,x", "y,all", body=body)], ["x:f[n]"], ["y:f[n]", "all:f[7 n]"],
                 {"trips": 7, "pair": 2, "two": np.float32(2)})


def loop_in_loop():
    inner = graph("inner", [node("Add", "q,p", "q2"), node("Identity", "on2", "still2")], ["j:i[]", "on2:b[]", "q:f"],
                  ["still2:b", "q2:f"])
    body = graph("body", [node("Loop", "i,,p", "p2", body=inner), node("Mul", "p2,half", "p3"), node("Identity", "on", "still")],
                 ["i:i[]", "on:b[]", "p:f"], ["still:b", "p3:f"])
    return graph("loop_in_loop", [node("Loop", "trips,,x", "y", body=body)], ["trips:i[]", "x:f[n]"], ["y:f[n]"],
                 {"half": np.float32(0.5)})


def sized_branches():
    """Sizes choose, and the result has the dims of the branch that runs."""
    then = graph("then", [node("Concat", "x,x", "a", axis=0), node("Mul", "a,two", "r")], [], ["r:f"])
    other = graph("other", [node("Softmax", "x", "r", axis=-1)], [], ["r:f"])
    return graph("sized_branches", [node("Shape", "x", "s"), node("Gather", "s,zero", "n0"), node("Less", "n0,five", "c"),
                                    node("If", "c", "y", then_branch=then, else_branch=other), node("Exp", "y", "z")],
                 ["x:f[n 4]"], ["z:f[m 4]"], {"zero": 0, "five": 5, "two": np.float32(2)})


def squeezed():
    """As torch.jit writes squeeze: the branches differ in rank, and only one of them fits what follows."""
    then = graph("then", [node("Squeeze", "h,first", "r")], [], ["r:f"])
    other = graph("other", [node("Identity", "h", "r")], [], ["r:f"])
    return graph("squeezed", [node("Shape", "x", "s"), node("Gather", "s,zero", "n0"), node("Div", "n0,many", "q"),
                              node("Add", "q,one", "rows"), node("Unsqueeze", "rows,first", "r1"),
                              node("Concat", "r1,four", "shape", axis=0), node("Expand", "v,shape", "h"),
                              node("Equal", "rows,one", "c"), node("If", "c", "y", then_branch=then, else_branch=other),
                              node("Concat", "y,v", "z", axis=0)],
                 ["x:f[n]", "v:f[4]"], ["z:f[8]"], {"zero": 0, "one": 1, "many": 10, "first": [0], "four": [4]})


def by_integer():
    """An integer input chooses, and each branch needs another length: the input is read on the host."""
    def branch(size):
        rows = [node("Shape", "x", f"s{size}"), node("Gather", f"s{size},zero", f"n{size}"),
                node("Sub", f"n{size},c{size}", f"d{size}"), node("Div", f"d{size},many", f"q{size}"),
                node("Add", f"q{size},one", f"k{size}"), node("Unsqueeze", f"k{size},first", f"u{size}"),
                node("Concat", f"u{size},four", f"shape{size}", axis=0), node("Expand", "v", f"_") ]
        rows[-1] = node("Expand", f"v,shape{size}", f"e{size}")
        return graph(f"branch{size}", rows + [node("Equal", f"k{size},one", f"is{size}"),
                                              node("If", f"is{size}", f"r{size}", then_branch=graph(
                                                  "then", [node("Squeeze", f"e{size},first", "t")], [], ["t:f"]),
                                                  else_branch=graph("other", [node("Identity", f"e{size}", "t")], [], ["t:f"])),
                                              node("MatMul", f"r{size},w{size}", f"y{size}")], [], [f"y{size}:f"])
    generator = np.random.default_rng(1)
    return graph("by_integer", [node("Equal", "mode,five", "c"), node("If", "c", "y", then_branch=branch(0), else_branch=branch(1))],
                 ["mode:i[]", "x:f[n]", "v:f[4]"], ["y:f[3]"],
                 {"zero": 0, "one": 1, "five": 5, "many": 10, "first": [0], "four": [4], "c0": 0, "c1": 1,
                  "w0": generator.standard_normal((4, 3)).astype(np.float32), "w1": generator.standard_normal((4, 3)).astype(np.float32)})


def by_integer_on_the_device():
    """Branches that ask nothing of the sizes: whole networks, chosen where the data is."""
    generator = np.random.default_rng(2)
    then = graph("then", [node("Conv", "x,k", "a", pads=[1, 1]), node("Relu", "a", "b"), node("Conv", "b,k2", "r", pads=[1, 1])], [], ["r:f"])
    other = graph("other", [node("Transpose", "x", "xt", perm=[0, 2, 1]), node("MatMul", "xt,w", "a"), node("Transpose", "a", "r", perm=[0, 2, 1])],
                  [], ["r:f"])
    return graph("by_integer_on_the_device", [node("Equal", "mode,five", "c"),
                                              node("If", "c", "y", then_branch=then, else_branch=other), node("Tanh", "y", "z")],
                 ["mode:i[]", "x:f[b 3 t]"], ["z:f[b 2 t]"],
                 {"five": 5, "k": generator.standard_normal((4, 3, 3)).astype(np.float32),
                  "k2": generator.standard_normal((2, 4, 3)).astype(np.float32), "w": generator.standard_normal((3, 2)).astype(np.float32)})


def four_deep():
    """Conditions on computed data, each around the next, with captures from every level and a loop inside."""
    loop = graph("loop", [node("Mul", "s,half", "s2"), node("Add", "s2,d3", "s3"), node("Identity", "on", "still")],
                 ["i:i[]", "on:b[]", "s:f"], ["still:b", "s3:f"])
    deepest = node("If", "c4", "r4", then_branch=graph("t4", [node("Loop", "three,,d1", "l", body=loop), node("Add", "l,d2", "q4")], [], ["q4:f"]),
                   else_branch=graph("e4", [node("Sub", "d3,x", "q4")], [], ["q4:f"]))
    level3 = node("If", "c3", "r3", then_branch=graph("t3", [node("Mul", "d2,two", "d3"), node("ReduceMax", "d3", "m3", keepdims=0),
                                                             node("Less", "m3,limit", "c4"), deepest], [], ["r4:f"]),
                  else_branch=graph("e3", [node("Neg", "d2", "q3")], [], ["q3:f"]))
    level2 = node("If", "c2", "r2", then_branch=graph("t2", [node("Add", "d1,x", "d2"), node("ReduceMin", "d2", "m2", keepdims=0),
                                                             node("Less", "zero,m2", "c3"), level3], [], ["r3:f"]),
                  else_branch=graph("e2", [node("Abs", "d1", "q2")], [], ["q2:f"]))
    level1 = node("If", "c1", "r1", then_branch=graph("t1", [node("Exp", "x", "d1"), node("ReduceSum", "d1", "m1", keepdims=0),
                                                             node("Less", "zero,m1", "c2"), level2], [], ["r2:f"]),
                  else_branch=graph("e1", [node("Identity", "x", "q1")], [], ["q1:f"]))
    return graph("four_deep", [node("ReduceSum", "x", "m0", keepdims=0), node("Less", "zero,m0", "c1"), level1, node("Mul", "r1,two", "z")],
                 ["x:f[n]", "limit:f[]"], ["z:f[n]"], {"zero": np.float32(0), "two": np.float32(2), "half": np.float32(0.5), "three": 3})


def loop_in_sized_branch():
    """Sizes choose a branch that holds a loop."""
    body = graph("body", [node("Tanh", "s", "s2"), node("Identity", "on", "still")], ["i:i[]", "on:b[]", "s:f"], ["still:b", "s2:f"])
    then = graph("then", [node("Loop", "trips,,x", "r", body=body)], [], ["r:f"])
    other = graph("other", [node("Neg", "x", "r")], [], ["r:f"])
    return graph("loop_in_sized_branch", [node("Shape", "x", "s"), node("Gather", "s,zero", "n0"), node("Less", "n0,five", "c"),
                                          node("If", "c", "y", then_branch=then, else_branch=other)],
                 ["trips:i[]", "x:f[n]"], ["y:f[n]"], {"zero": 0, "five": 5})


# ONNX Runtime 1.32 never writes the first of two results that are one value of a branch: the onnx package says what is right.
BY_REFERENCE = {"untouched"}
MODELS = [branches, shape_fact, untouched, counted, scan_outputs, counting_condition, early_exit, early_scan, backward_scan, branch_in_loop, loop_in_loop,
          sized_branches, squeezed, by_integer, by_integer_on_the_device, four_deep, loop_in_sized_branch]
# Sizes at which the branch that runs cannot be right: refused, naming the node. (model, sizes, turn, node)
REFUSED = [("squeezed", {"n": 17}, 0, "If #8"), ("by_integer", {"n": 10}, 0, "If #9"), ("by_integer", {"n": 11}, 1, "If #9")]
ALLOWED = [("by_integer", {"n": 10}, 1)]
SIZES = [{"n": 3, "b": 2, "t": 5}, {"n": 1, "b": 1, "t": 1}, {"n": 6, "b": 3, "t": 9}]


def inputs_of(session, sizes, turn, generator):
    inputs = {}
    for item in session.get_inputs():
        shape = [sizes[d] if isinstance(d, str) else d for d in item.shape]
        if item.type == "tensor(bool)":
            inputs[item.name] = np.array(turn == 0)
        elif item.type == "tensor(int64)":
            inputs[item.name] = np.array([5, 0][turn], np.int64)
        elif item.name == "limit":
            inputs[item.name] = np.array([100, -100][turn], np.float32)
        else:
            inputs[item.name] = generator.random(shape, dtype=np.float32) + np.float32(0.1)
    return inputs


def run(options, name, bundle, inputs, out):
    command = [options.gpucc, "run", bundle, f"--device={options.device}", f"--output-dir={out}"]
    for key, value in inputs.items():
        np.save(options.work / f"{name}.{key}.npy", value)
        command.append(f"--input={key}={options.work / f'{name}.{key}.npy'}")
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def check(make, options, level):
    model = helper.make_model(make(), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    name = make.__name__
    path, bundle, out = (options.work / f"{name}{end}" for end in (".onnx", ".so", ".out"))
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    subprocess.run([options.gpucc, path, "-o", bundle, f"--target={options.targets}", level], check=True)
    generator, wrong = np.random.default_rng(7), 0
    for sizes, turn in [(sizes, turn) for sizes in SIZES for turn in range(2)] + [case[1:] for case in ALLOWED if case[0] == name]:
        inputs = inputs_of(session, sizes, turn, generator)
        done = run(options, name, bundle, inputs, out)
        if done.returncode:
            sys.exit(f"{name} {level} {sizes} turn {turn}: {done.stderr}")
        expected_by = ReferenceEvaluator(model) if name in BY_REFERENCE else session
        for i, expected in enumerate(expected_by.run(None, inputs)):
            got = np.load(out / f"output_{i}.npy")
            if not expected.size and not got.size and got.dtype == expected.dtype and got.shape[:1] == expected.shape[:1]:
                continue  # of no trip ONNX Runtime does not know the elements' dims
            if got.shape != expected.shape or got.dtype != expected.dtype or not np.allclose(got, expected, 1e-5, 1e-6):
                print(f"{name} {level} {sizes} turn {turn}: output {i} is wrong")
                wrong += 1
    for _, sizes, turn, place in [case for case in REFUSED if case[0] == name]:
        done = run(options, name, bundle, inputs_of(session, sizes, turn, generator), out)
        if done.returncode != 1 or f"needed by {place}" not in done.stderr.replace("(", ""):
            print(f"{name} {level} {sizes} turn {turn}: not refused as it should: {done.returncode} {done.stderr}")
            wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    wrong = sum(check(make, options, level) for make in MODELS for level in ("-O3", "-O0"))
    print(f"{len(MODELS)} models, {wrong} wrong outputs")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
