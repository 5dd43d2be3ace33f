"""Models of any size, made here: what they take to compile, and whether they run right.

    large.py weights --gpucc PROGRAM --work DIR [--layers N] [--width N] [--record FILE]
    large.py elements --gpucc PROGRAM --run PROGRAM --work DIR [--count N] [--target T] [--device N] [--record FILE]
    large.py bundle   the same, but prints the command that runs it, for another machine
    large.py indices --gpucc PROGRAM --work DIR [--count N]

weights: layers of a MatMul with a weight of width x width in external data; the second one through a Transpose, the third
scaled by a constant, so that one is repacked, one turned first, one computed. 12 layers of 8192 are 3.2 GB. Fails when the
compiler's peak memory passes 400 MB, page cache aside, or the result is wrong (numpy, in float64).
elements: a tensor of `count` bytes, 2^31 + 64 at first, through elementwise kernels, a Slice behind element 2^31, and a
reduction; every byte is compared (large_elements.c). Needs 3 times `count` of memory. --device: -1 is the CPU.
indices: the CUDA C for such a tensor counts in 64 bits, that for a small one in 32. Exit status 77 without NVRTC.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models

MEMORY_LIMIT = 400e6
# A child's peak memory counts its parent's at the time of the fork: a small process stands between.
LAUNCHER = "import os, sys; p = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); _, s, u = os.wait4(p, 0); " \
           "print(u.ru_maxrss * 1024); sys.exit(1 if s else 0)"
ROWS, HALF, SKIPPED = 3, 1 << 31, 77


def external(name, shape, location, offset):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in [("location", location), ("offset", str(offset)), ("length", str(4 * int(np.prod(shape))))]:
        tensor.external_data.add(key=key, value=value)
    return tensor


def save(path, nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, "large", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())


def make_weights(work, layers, width):
    """The model, written one weight at a time."""
    data, path = work / "large.weights", work / "large.onnx"
    generator = np.random.Generator(np.random.PCG64(7))
    weights, nodes, x = [numpy_helper.from_array(np.float32(0.5), "half")], [], "x"
    with open(data, "wb") as out:
        for layer in range(layers):
            values = generator.standard_normal((width, width), dtype=np.float32)
            values *= np.float32(1.4 / np.sqrt(width))
            weights.append(external(f"w{layer}", (width, width), data.name, out.tell()))
            values.tofile(out)
            used = f"w{layer}"
            if layer % 3 == 1:
                nodes.append(helper.make_node("Transpose", [used], [f"t{layer}"], perm=[1, 0]))
                used = f"t{layer}"
            if layer % 3 == 2:
                nodes.append(helper.make_node("Mul", [used, "half"], [f"h{layer}"]))
                used = f"h{layer}"
            nodes.append(helper.make_node("MatMul", [x, used], [f"m{layer}"]))
            nodes.append(helper.make_node("Relu", [f"m{layer}"], [f"y{layer}"]))
            x = f"y{layer}"
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", width])],
         [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["rows", width])], weights)
    return path, data


def expected_of_weights(data, layers, width, x):
    x = x.astype(np.float64)
    for layer in range(layers):
        values = np.memmap(data, np.float32, "r", 4 * width * width * layer, (width, width))
        product = np.empty((len(x), width))
        for begin in range(0, width, 1024):
            part = slice(begin, begin + 1024)
            product[:, part] = x @ (values[part].T if layer % 3 == 1 else values[:, part]).astype(np.float64)
        x = np.maximum(product * (0.5 if layer % 3 == 2 else 1.0), 0)
    return x


def check_weights(options):
    path, data = make_weights(options.work, options.layers, options.width)
    bundle, out = options.work / "large.so", options.work / "large.out"
    start = time.monotonic()
    peak = int(models.run_command([sys.executable, "-c", LAUNCHER, options.gpucc, path, "-o", bundle, "--target=cpu"]))
    seconds = time.monotonic() - start
    x = np.random.Generator(np.random.PCG64(8)).standard_normal((ROWS, options.width), dtype=np.float32)
    np.save(options.work / "large.npy", x)
    models.run_command([options.gpucc, "run", bundle, "--device=cpu", f"--input=x={options.work / 'large.npy'}",
                        f"--output-dir={out}"])
    expected = expected_of_weights(data, options.layers, options.width, x)
    actual = np.load(out / "output_0.npy")
    error = float(np.abs(actual - expected).max() / np.abs(expected).max())
    size = data.stat().st_size
    for file in (path, data, bundle):
        file.unlink()
    good = peak <= MEMORY_LIMIT and error <= 1e-5
    print(f"{'ok  ' if good else 'FAIL'} {size / 1e9:.2f} GB of weights: compiled in {seconds:.1f} s with {peak / 1e6:.0f} MB at "
          f"most, error {error:.1e}")
    if options.record:
        models.write_record(options.record, {"weight_gigabytes": size / 1e9, "compiler_megabytes": peak / 1e6,
                                             "weights_error": error})
    return good


def element_model(options):
    """Where the Slice begins: behind element 2^31 when there are so many."""
    begin = HALF - 16 if options.count > HALF else options.count // 2
    weights = [numpy_helper.from_array(np.array([begin], np.int64), "begin"),
               numpy_helper.from_array(np.array([options.count], np.int64), "end"),
               numpy_helper.from_array(np.uint8(255), "all")]
    nodes = [helper.make_node("Sub", ["all", "x"], ["y"]), helper.make_node("Add", ["x", "x"], ["twice"]),
             helper.make_node("Slice", ["twice", "begin", "end"], ["behind"]),
             helper.make_node("ReduceMax", ["x"], ["most"], axes=[0], keepdims=0)]
    save(options.work / "elements.onnx", nodes, [helper.make_tensor_value_info("x", TensorProto.UINT8, ["n"])],
         [helper.make_tensor_value_info("y", TensorProto.UINT8, ["n"]),
          helper.make_tensor_value_info("behind", TensorProto.UINT8, None),
          helper.make_tensor_value_info("most", TensorProto.UINT8, [])], weights)
    return begin


def check_elements(options):
    begin = element_model(options)
    bundle = options.work / "elements.so"
    models.run_command([options.gpucc, options.work / "elements.onnx", "-o", bundle, f"--target={options.target}",
                        f"--dim=n={options.count}"])
    command = [options.run, bundle, options.device, options.count, begin]
    if options.what == "bundle":
        print(" ".join(map(str, command)))
        return True
    print(models.run_command(command).strip())
    bundle.unlink()
    if options.record:
        models.write_record(options.record, {"elements": options.count})
    return True


def check_indices(options):
    """CUDA C of kernels for as many elements counts in 64 bits, and in 32 where that does."""
    for count, wide in [(options.count, True), (1 << 20, False)]:
        options.count = count
        element_model(options)
        folder = options.work / "indices"
        command = [options.gpucc, options.work / "elements.onnx", "-o", options.work / "elements.so", "--target=sm_90a",
                   f"--dim=n={count}", f"--emit-cuda={folder}"]
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if "E0502" in result.stderr:
            print("no NVRTC here: skipped")
            sys.exit(SKIPPED)
        if result.returncode:
            raise RuntimeError(result.stderr)
        sources = list(folder.glob("*.cu"))
        counted = [bool(re.search(r"long long \w+ = .*(blockIdx|threadIdx)", source.read_text())) for source in sources]
        if not sources or any(found != wide for found in counted):
            print(f"FAIL {count} elements: {sum(counted)} of {len(sources)} files count in 64 bits")
            return False
        print(f"ok   {count} elements: {len(sources)} files count in {64 if wide else 32} bits")
        for source in folder.iterdir():
            source.unlink()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["weights", "elements", "bundle", "indices"])
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=8192)
    parser.add_argument("--count", type=int, default=HALF + 64)
    parser.add_argument("--run", type=pathlib.Path)
    parser.add_argument("--device", type=int, default=-1)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    checks = {"weights": check_weights, "indices": check_indices}
    try:
        return 0 if checks.get(options.what, check_elements)(options) else 1
    except RuntimeError as problem:
        print(f"FAIL {problem}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
