"""Pages of docs/ that the program's own tables make: docs/diagnostics.md and docs/operators.md.

    generated.py --gpucc PROGRAM --diagnostics PROGRAM [--update]

Compares them with what the programs print now; --update writes them.
"""
import argparse
import difflib
import pathlib
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"

OPERATORS = """# Operators

What `gpucc ops` prints; made by `tests/docs/generated.py --update`. A row holds from the opset in `since` up to the next
row of its operator. `gpucc check model.onnx` says what of a model is not supported.

```
{}```
"""


def output_of(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--diagnostics", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    pages = {
        DOCS / "diagnostics.md": output_of(options.diagnostics),
        DOCS / "operators.md": OPERATORS.format(output_of(options.gpucc, "ops")),
    }
    stale = 0
    for path, wanted in pages.items():
        if options.update:
            path.write_text(wanted)
            continue
        found = path.read_text() if path.exists() else ""
        if found != wanted:
            stale += 1
            sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), str(path), "now"))
            print(f"{path.name} is stale: run this with --update")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
