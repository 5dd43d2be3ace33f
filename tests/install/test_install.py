"""The installed tree, used as a stranger would: samples/file_type, built by find_package and by pkg-config.

    test_install.py --build DIR --cmake PROGRAM --compiler CC --check-bundle PROGRAM [--model FILE --labels FILE]

Installs the build to a folder, moves the tree elsewhere (nothing may remember its first place), compares the list of files
with what README.md promises, builds the sample both ways from a copy of its folder, compiles the model with the installed
gpucc and compares what both programs print with ONNX Runtime's scores.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = {"frontend/reader.c": "c", "tests/install/test_install.py": "python", "tests/models/graphs/resnet18.script.onnx": "onnx",
         "scripts/setup": "shell", "CMakePresets.json": "json"}
HALF, BLOCK, PADDING = 1024, 4096, 256
TOLERANCE = 2e-4  # of a score; the programs print four digits
INSTALLED = ["bin/gpucc", "include/gpucc/runtime.h", "lib*/libgpucc.a", "lib*/libgpucc.so", "lib*/libgpucc.so.1",
             "lib*/libgpucc.so.*.*.*", "lib*/cmake/gpucc/gpuccConfig.cmake", "lib*/cmake/gpucc/gpuccConfigVersion.cmake",
             "lib*/cmake/gpucc/gpuccTargets.cmake", "lib*/cmake/gpucc/gpuccTargets-*.cmake", "lib*/pkgconfig/gpucc.pc",
             "share/doc/gpucc/*"]


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def check_files(prefix):
    """Every file is one that the list names, and the list names none in vain."""
    libraries = [path for path in prefix.rglob("gpucc.pc")]
    if len(libraries) != 1:
        sys.exit(f"expected one gpucc.pc, found {libraries}")
    library = libraries[0].parent.parent  # lib, or lib/<architecture>
    patterns = [pattern.replace("lib*", str(library.relative_to(prefix))) for pattern in INSTALLED]
    known = {path for pattern in patterns for path in prefix.glob(pattern)}
    known |= {path for path in prefix.glob("share/doc/gpucc/**/*") if path.is_file()}
    found = {path for path in prefix.rglob("*") if not path.is_dir()}
    vain = [pattern for pattern in patterns if not list(prefix.glob(pattern))]
    if vain or found - known:
        sys.exit(f"not installed: {vain}; not expected: {sorted(map(str, found - known))}")
    for path in found:
        if path.suffix in (".cmake", ".pc", ".h") and str(ROOT) in path.read_text():
            sys.exit(f"{path} names the source tree")
    return library


def scores_of(session, path):
    data = path.read_bytes()
    begin, end = data[:BLOCK].lstrip()[:HALF], data[-BLOCK:].rstrip()[-HALF:]
    values = np.full((1, 2 * HALF), PADDING, np.int32)
    values[0, :len(begin)] = np.frombuffer(begin, np.uint8)
    values[0, 2 * HALF - len(end):] = np.frombuffer(end, np.uint8)
    return session.run(None, {session.get_inputs()[0].name: values})[0][0]


def check_output(text, expected):
    lines = dict(re.fullmatch(r"(.+): (\S+ \([\d.]+\))", line).groups() for line in text.splitlines())
    for path, (label, score) in expected.items():
        name, value = re.fullmatch(r"(\S+) \(([\d.]+)\)", lines[str(path)]).groups()
        if name != label or not abs(float(value) - score) <= TOLERANCE:
            sys.exit(f"{path}: {lines[str(path)]}, expected {label} ({score:.4f})")
    if len(lines) != len(expected):
        sys.exit(f"expected {len(expected)} lines:\n{text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--check-bundle", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".cache" / "models" / "magika.onnx")
    parser.add_argument("--labels", type=pathlib.Path, default=ROOT / ".cache" / "models" / "magika.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpucc-install-") as name:
        folder = pathlib.Path(name)
        run(options.cmake, "--install", options.build, "--prefix", folder / "first")
        prefix = folder / "a moved tree"
        (folder / "first").rename(prefix)
        library = check_files(prefix)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CMAKE_", "GPUCC_", "LD_"))}
        environment.update(CC=options.compiler, PKG_CONFIG_PATH=str(folder / "pc"), GPUCC_CACHE_DIR=str(folder / "cache"))
        sample = shutil.copytree(ROOT / "samples" / "file_type", folder / "sample")

        run(options.cmake, "-S", sample, "-B", folder / "by_cmake", f"-DCMAKE_PREFIX_PATH={prefix}", env=environment)
        run(options.cmake, "--build", folder / "by_cmake", env=environment)
        # make splits its words at blanks, wherever they come from: a link without one leads to the tree.
        (folder / "plain").symlink_to(prefix)
        environment["PKG_CONFIG_PATH"] = str(folder / "plain" / library.relative_to(prefix) / "pkgconfig")
        run("make", "-C", sample, "CFLAGS=-O2 -Wall -Wextra -Wpedantic -Werror", env=environment)

        bundle = folder / "magika.so"
        run(prefix / "bin" / "gpucc", options.model, "-o", bundle, "--target=cpu", env=environment)
        run(options.check_bundle, bundle)
        session = onnxruntime.InferenceSession(options.model, providers=["CPUExecutionProvider"])
        labels = json.loads(options.labels.read_text())["target_labels_space"]
        expected = {}
        for file, label in FILES.items():
            scores = scores_of(session, ROOT / file)
            if labels[scores.argmax()] != label:
                sys.exit(f"{file}: ONNX Runtime says {labels[scores.argmax()]}, expected {label}")
            expected[ROOT / file] = (label, float(scores.max()))
        for program in (folder / "by_cmake" / "file_type", sample / "file_type"):
            check_output(run(program, bundle, options.labels, *expected, env=environment), expected)
        refused = subprocess.run([folder / "by_cmake" / "file_type", options.labels, options.labels, __file__],
                                 capture_output=True, text=True, env=environment)
        if refused.returncode != 1 or len(refused.stderr.splitlines()) != 1:
            sys.exit(f"a file that is no bundle: exit status {refused.returncode}, {refused.stderr}")
    print(f"{len(FILES)} files named rightly by both builds of samples/file_type")


if __name__ == "__main__":
    main()
