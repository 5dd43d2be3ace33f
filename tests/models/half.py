"""Blocks of a transformer in f16, free batch and sequence: products on tensor cores with what stands around them in networks.

    half.py check --gpucc PROGRAM --work DIR [--device cpu|cuda:0] [--targets LIST]
    half.py launches --gpucc PROGRAM --work DIR --library LIBGPUCC.so --fake FOLDER
    half.py prepare --gpucc PROGRAM --work DIR --target TARGET --out FOLDER

half_mlp: bias, GELU, residual, and the biased sum as a second output. half_attention: heads by reshaping and transposing,
scores with a scale, softmax, the weighted sum, a projection with residual. `check` compares with float64, each node's result
rounded to f16 as the model says. `launches` runs the sm_90a bundle, and a product of free sizes, on the driver that
executes nothing and looks at which kernel of each pair is launched. `prepare`: what tests/gpu/run takes.

Tolerance, of max |difference| / max |reference|: one unit of f16 in the last place of the largest value, and what sums in
f32 over the longest depth may differ by. Exit status 77 without NVRTC.
"""
import argparse
import ctypes
import math
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "perf")]
import models  # noqa: E402

WIDTH, INNER, HEADS = 256, 1024, 4
HEAD = WIDTH // HEADS
DIMS = ["--dim=batch=1:64:8", "--dim=seq=1:2048:512"]
# Sequences that are multiples of eight and others: both sides of the copy engine's rule.
SIZES = [(1, 1), (2, 7), (3, 64), (1, 300), (2, 130), (4, 24), (5, 1), (1, 8)]
# rows, depth, columns: rows are free, depth and columns decide
PRODUCTS = [(1, 8, 8), (1, 1, 1), (300, 1024, 1536), (299, 1024, 1536), (64, 1023, 1536), (64, 1024, 1535), (64, 1023, 1535),
            (37, 4, 8), (37, 8, 4), (5, 0, 8), (5, 0, 7), (0, 64, 64), (64, 64, 0), (0, 0, 0), (7, 16, 24)]
UNIT, UNIT32 = 2.0**-10, 2.0**-24
TOLERANCE = UNIT + 4 * UNIT32 * math.sqrt(max(INNER, *[seq for _, seq in SIZES])) + 8 * UNIT32
SKIPPED = 77


def weight(generator, name, *shape):
    return name, (generator.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float16)


def mlp():
    g = np.random.Generator(np.random.PCG64(11))
    weights = dict([weight(g, "w1", WIDTH, INNER), weight(g, "b1", INNER), weight(g, "w2", INNER, WIDTH), weight(g, "b2", WIDTH)])
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w1"], ["product1"]), node("Add", ["product1", "b1"], ["inner"]),
             node("Gelu", ["inner"], ["active"]), node("MatMul", ["active", "w2"], ["product2"]),
             node("Add", ["product2", "b2"], ["sum"]), node("Add", ["sum", "x"], ["y"])]
    return nodes, weights, {"y": WIDTH, "inner": INNER}


def attention():
    g = np.random.Generator(np.random.PCG64(12))
    weights = dict(weight(g, name, WIDTH, WIDTH) for name in ("wq", "wk", "wv", "wo"))
    weights.update(heads=np.array([0, 0, HEADS, HEAD]), joined=np.array([0, 0, WIDTH]),
                   scale=np.array(1 / math.sqrt(HEAD), np.float16))
    node, nodes = helper.make_node, []
    for c in "qkv":
        nodes += [node("MatMul", ["x", f"w{c}"], [f"all_{c}"]), node("Reshape", [f"all_{c}", "heads"], [f"split_{c}"]),
                  node("Transpose", [f"split_{c}"], [c], perm=[0, 2, 3, 1] if c == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", ["q", "k"], ["products"]), node("Mul", ["products", "scale"], ["scores"]),
              node("Softmax", ["scores"], ["shares"], axis=-1), node("MatMul", ["shares", "v"], ["mixed"]),
              node("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3]), node("Reshape", ["turned", "joined"], ["whole"]),
              node("MatMul", ["whole", "wo"], ["projected"]), node("Add", ["projected", "x"], ["y"])]
    return nodes, weights, {"y": WIDTH}


BLOCKS = {"half_mlp": mlp, "half_attention": attention}


def write(name, folder):
    nodes, weights, outputs = BLOCKS[name]()
    infos = [helper.make_tensor_value_info(output, TensorProto.FLOAT16, ["batch", "seq", width])
             for output, width in outputs.items()]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["batch", "seq", WIDTH])],
                              infos, [numpy_helper.from_array(value, key) for key, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def rounded(x):
    return x.astype(np.float16).astype(np.float64)


def reference(name, x):
    """In float64; what a node of the model gives is rounded to f16."""
    _, weights, outputs = BLOCKS[name]()
    values = {key: value.astype(np.float64) if value.dtype == np.float16 else value for key, value in weights.items()}
    values["x"] = x.astype(np.float64)
    erf = np.vectorize(math.erf)
    for node in BLOCKS[name]()[0]:
        a = [values[key] for key in node.input]
        if node.op_type == "MatMul":
            result = a[0] @ a[1]
        elif node.op_type in ("Add", "Mul"):
            result = a[0] + a[1] if node.op_type == "Add" else a[0] * a[1]
        elif node.op_type == "Gelu":
            result = 0.5 * a[0] * (1 + erf(a[0] / math.sqrt(2)))
        elif node.op_type == "Softmax":
            powers = np.exp(a[0] - a[0].max(axis=-1, keepdims=True))
            result = powers / powers.sum(axis=-1, keepdims=True)
        elif node.op_type == "Transpose":
            result = a[0].transpose(node.attribute[0].ints)
        else:
            result = a[0].reshape([a[0].shape[i] if size == 0 else size for i, size in enumerate(a[1])])
        values[node.output[0]] = rounded(result)
    return [values[output].astype(np.float16) for output in outputs]


def cases(name):
    """(batch, seq, x, expected outputs)"""
    generator = np.random.Generator(np.random.PCG64(13))
    for batch, seq in SIZES:
        x = generator.standard_normal((batch, seq, WIDTH)).astype(np.float16)
        yield batch, seq, x, reference(name, x)


def compile_block(gpucc, name, work, targets, out, cuda=None):
    """Returns what --explain prints."""
    path = write(name, work / "graphs")
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [gpucc, path, "-o", out, f"--target={targets}", "--explain", *DIMS]
    if cuda:
        cuda.mkdir(parents=True, exist_ok=True)
        for old in cuda.glob("*.cu"):
            old.unlink()
        command.append(f"--emit-cuda={cuda}")
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if "E0502" in result.stderr:
        print("no NVRTC here: skipped")
        sys.exit(SKIPPED)
    if result.returncode != 0:
        raise SystemExit(f"{name}: {result.stderr}")
    return result.stdout


def check(options):
    failed = False
    for name in BLOCKS:
        bundle, folder = options.work / f"{name}.so", options.work / name
        folder.mkdir(parents=True, exist_ok=True)
        compile_block(options.gpucc, name, options.work, options.targets, bundle)
        worst = 0.0
        for batch, seq, x, expected in cases(name):
            np.save(folder / "x.npy", x)
            models.run_command([options.gpucc, "run", bundle, "--input", f"x={folder / 'x.npy'}", f"--output-dir={folder}",
                                f"--device={options.device}"])
            errors = [models.difference(np.load(folder / f"output_{i}.npy"), value) for i, value in enumerate(expected)]
            worst = max(worst, *errors)
            if not max(errors) <= TOLERANCE:
                failed = True
                print(f"FAIL  {name} at batch {batch}, seq {seq}: errors {errors}, allowed {TOLERANCE:.2e}")
        print(f"{name}: {len(SIZES)} sizes on {options.device}, error {worst:.2e}, allowed {TOLERANCE:.2e}")
    return 1 if failed else 0


class FakeLaunch(ctypes.Structure):
    """tests/fake_cuda/fake_cuda.h"""
    _fields_ = [("kernel", ctypes.c_char * 64), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared_bytes", ctypes.c_uint), ("arguments", ctypes.c_uint64 * 8), ("from_graph", ctypes.c_int)]


class FakeControls(ctypes.Structure):
    """The same file; those before `launches` that are not called here have no types."""
    _fields_ = [("reset", ctypes.CFUNCTYPE(None))] + [(f"other{i}", ctypes.c_void_p) for i in range(11)] + \
               [("launches", ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.POINTER(FakeLaunch), ctypes.c_uint))]


def strategies_of(cuda):
    """kernel -> its strategy, of the files of --emit-cuda"""
    return {file.stem: re.search(r"// Strategy (\w+)", file.read_text()).group(1) for file in cuda.glob("*.cu")}


class Device:
    """One bundle on the driver that executes nothing, whose device memory is the host's."""

    def __init__(self, options, path):
        from gpucc_library import Bundle, Library
        driver = ctypes.CDLL(str(options.fake / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
        driver.fake_cuda_controls.restype = ctypes.POINTER(FakeControls)
        self.fake = driver.fake_cuda_controls().contents
        self.bundle = Bundle(Library(options.library), path)

    def launches(self, dims, inputs, outputs):
        """Names of the kernels of one enqueue with tensors of these shapes."""
        class Memory:  # what gpucc_library asks of a tensor
            def __init__(self, *shape):
                self.array = np.zeros(shape, np.float16)
                assert self.array.ctypes.data % 16 == 0
            data_ptr = lambda self: self.array.ctypes.data  # noqa: E731
            dim = lambda self: self.array.ndim  # noqa: E731
            numel = lambda self: self.array.size  # noqa: E731
            element_size = lambda self: self.array.itemsize  # noqa: E731
            shape = property(lambda self: self.array.shape)
        self.bundle.prepare(dims)
        self.bundle.bind([Memory(*shape) for shape in inputs], [Memory(*shape) for shape in outputs], None)
        self.fake.reset()
        self.bundle.enqueue(None)
        rows = (FakeLaunch * 64)()
        return [rows[i].kernel.decode() for i in range(self.fake.launches(rows, 64))]


def product_launches(options):
    """One product whose three sizes are free, empty ones included: which kernel is launched."""
    info = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape)  # noqa: E731
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "product",
                              [info("a", "rows", "depth"), info("b", "depth", "columns")], [info("y", "rows", "columns")])
    path, bundle, cuda = options.work / "product.onnx", options.work / "product.so", options.work / "product_cuda"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    shutil.rmtree(cuda, ignore_errors=True)
    models.run_command([options.gpucc, path, "-o", bundle, "--target=sm_90a", f"--emit-cuda={cuda}",
                        *[f"--dim={name}=0:4096:1024" for name in ("rows", "depth", "columns")]])
    strategies, device, wrong = strategies_of(cuda), Device(options, bundle), 0
    for rows, depth, columns in PRODUCTS:
        kernels = device.launches({"rows": rows, "depth": depth, "columns": columns}, [(rows, depth), (depth, columns)],
                                  [(rows, columns)])
        names = [strategies[kernel] for kernel in kernels]
        takes = depth % 8 == 0 and columns % 8 == 0 and depth > 0
        expected = [] if rows * columns == 0 else ["gpu_matmul_wgmma" if takes else "gpu_matmul_mma"]
        if names != expected:
            wrong += 1
            print(f"FAIL  {rows} x {depth} x {columns}: launches {names}, expected {expected}")
    device.bundle.close()
    print(f"{len(PRODUCTS)} products of free sizes, {wrong} with another launch than the sizes ask for")
    return wrong


def launches(options):
    """The weighted sum's rows are as long as the sequence: the copy engine takes them where that is a multiple of eight."""
    failed, pairs = False, 0
    for name in BLOCKS:
        bundle, cuda = options.work / f"{name}_gpu.so", options.work / f"{name}_cuda"
        said = compile_block(options.gpucc, name, options.work, "sm_90a", bundle, cuda)
        chosen = len(re.findall("^gpu_matmul_wgmma: ", said, re.MULTILINE))
        strategies = strategies_of(cuda)
        device = Device(options, bundle)
        seen, widths = {}, BLOCKS[name]()[2].values()
        for batch, seq in SIZES:
            kernels = device.launches({"batch": batch, "seq": seq}, [(batch, seq, WIDTH)], [(batch, seq, width) for width in widths])
            names = [strategies[kernel] for kernel in kernels]
            seen[seq] = (len(names), names.count("gpu_matmul_wgmma"), names.count("gpu_matmul_mma"))
        device.bundle.close()
        whole = {value for seq, value in seen.items() if seq % 8 == 0}
        odd = {value for seq, value in seen.items() if seq % 8}
        print(f"{name}: {chosen} groups for warpgroups; launches (all, by warpgroups, by warps): {whole} where the sequence is a "
              f"multiple of eight, else {odd}")
        failed |= len(whole) != 1 or len(odd) != 1 or chosen == 0
        (count, groups, warps), (count_odd, groups_odd, warps_odd) = whole.pop(), odd.pop()
        failed |= groups != chosen or count != count_odd or groups + warps != groups_odd + warps_odd or groups < groups_odd
        pairs += groups - groups_odd
    failed |= product_launches(options) > 0
    if failed or pairs == 0:
        print("FAIL  not one launch of each pair, by the sizes")
        return 1
    return 0


def prepare(options):
    for name in BLOCKS:
        out, cuda = options.out / name, options.work / "cuda" / name
        compile_block(options.gpucc, name, options.work, options.target, out / "bundle.so", cuda)
        shutil.copy(cuda / "kernels.hash", out / "kernels.hash")
        for number, (_, _, x, expected) in enumerate(cases(name)):
            folder = out / f"set{number}"
            folder.mkdir(exist_ok=True)
            np.save(folder / "input_0.npy", x)
            (folder / "inputs").write_text("x=input_0.npy\n")
            for i, value in enumerate(expected):
                np.save(folder / f"output_{i}.npy", value)
            (folder / "outputs").write_text("".join(f"{i} {TOLERANCE:.9g}\n" for i in range(len(expected))))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "launches", "prepare"])
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu,sm_90a")
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--fake", type=pathlib.Path)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    options.work = options.work.resolve()
    return {"check": check, "launches": launches, "prepare": prepare}[options.action](options)


if __name__ == "__main__":
    sys.exit(main())
