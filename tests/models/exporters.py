"""Two exporters' graphs of one model come to the same kernels, or a line says why not.

    exporters.py --gpucc PROGRAM --work DIR [NAME ...]

Compiles NAME.script and NAME.dynamo (tests/models) for one GPU target and compares their lists of kernel hashes. A kernel
that only one of the graphs has must be among those of REASONS, and those must differ: a reason that went is to be deleted.
Exit status 77 without NVRTC.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import models

TARGET = "sm_90a"
SKIPPED = 77
# Name of the model: why it differs, and the operators (the first of the group) whose kernels do.
REASONS = {
    "bert_base": ("the mask is gathered by flat positions in one graph and by GatherND over a grid of indices in the other",
                  {"script": ["where"], "dynamo": ["where"]}),
    "gpt2": ("the mask has dims of its own in the dynamo graph (s86, s12 beside s10, s21), so what it is added to may be wider "
             "than the sequence, and masked elements are the least float there and -infinity in the script graph",
             {"script": ["matmul", "matmul", "softmax", "where"], "dynamo": ["matmul", "matmul", "softmax", "where"]}),
}


def kernels(name, options, facts):
    """hash -> name of each kernel."""
    path = models.model_path(name, facts, options.work, None)
    folder = options.work / "exporters" / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [options.gpucc, path, f"--target={TARGET}", f"--emit-cuda={folder}", "-o", folder / "bundle.so"]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if "E0502" in result.stderr:
        print("no NVRTC here: skipped")
        sys.exit(SKIPPED)
    if result.returncode != 0:
        raise SystemExit(f"{name}: {result.stderr}")
    (folder / "bundle.so").unlink()
    return dict(line.split() for line in (folder / "kernels.hash").read_text().splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", default=["resnet50", "bert_base", "vit_b16", "gpt2"])
    options = parser.parse_intermixed_args()
    table = json.loads((models.HERE / "models.json").read_text())
    failed = 0
    for name in options.names:
        found = {kind: kernels(f"{name}.{kind}", options, table[f"{name}.{kind}"]) for kind in ("script", "dynamo")}
        common = found["script"].keys() & found["dynamo"].keys()
        only = {kind: sorted(kernel for digest, kernel in found[kind].items() if digest not in common) for kind in found}
        reason, expected = REASONS.get(name, ("", {"script": [], "dynamo": []}))
        right = {kind: [kernel.rsplit("_", 1)[0] for kernel in only[kind]] for kind in only} == expected
        failed += not right
        print(f"{'ok   ' if right else 'FAIL '} {name}: {len(common)} kernels of both"
              + "".join(f", {len(only[kind])} of {kind} alone ({' '.join(only[kind])})" for kind in only if only[kind])
              + (f": {reason}" if reason else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
