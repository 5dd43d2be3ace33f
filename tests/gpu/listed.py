"""Every kernel of the tests is listed: in verified.txt when it ran on a GPU and was right (tests/gpu/run), in pending.txt
when that is still to be done. A kernel in neither has changed without anyone saying so.

    listed.py --gpucc PROGRAM --pack PROGRAM --work DIR [--fetched DIR] [--update]

--update writes pending.txt anew: what is not verified. Exit status 77 without NVRTC.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import half  # noqa: E402
import models  # noqa: E402

TARGET = "sm_90a"
MODELS = ["magika", "open_nsfw", "espcn_subpixel", "mnist_cntk", "resnet18.script", "mobilenetv2.script"]
SKIPPED = 77


def read_list(name):
    path = HERE / name
    if not path.exists():
        return {}
    lines = [line.split(None, 1) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {line[0]: line[1] if len(line) > 1 else "" for line in lines}


def case_kernels(pack):
    result = subprocess.run([pack, "hashes", TARGET], capture_output=True, text=True, check=True)
    return {line: "strategy case" for line in result.stdout.splitlines() if re.fullmatch("[0-9a-f]{64}", line)}


def model_kernels(name, options, facts):
    path = models.model_path(name, facts, options.work, options.fetched)
    folder = options.work / "cuda" / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [options.gpucc, path, f"--target={TARGET}", f"--emit-cuda={folder}", "-o", folder / "bundle.so"]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if "E0502" in result.stderr:
        print("no NVRTC here: skipped")
        sys.exit(SKIPPED)
    if result.returncode != 0:
        raise SystemExit(f"{name}: {result.stderr}")
    lines = [line.split() for line in (folder / "kernels.hash").read_text().splitlines()]
    return {digest: f"{name} {kernel}" for digest, kernel in lines}


def block_kernels(name, options):
    folder = options.work / "cuda" / name
    half.compile_block(options.gpucc, name, options.work, TARGET, folder / "bundle.so", folder)
    lines = [line.split() for line in (folder / "kernels.hash").read_text().splitlines()]
    return {digest: f"{name} {kernel}" for digest, kernel in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--pack", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    table = json.loads((HERE.parent / "models" / "models.json").read_text())
    kernels = case_kernels(options.pack)
    for name in MODELS:
        kernels.update(model_kernels(name, options, table[name]))
    for name in half.BLOCKS:
        kernels.update(block_kernels(name, options))
    verified = read_list("verified.txt")
    missing = {digest: what for digest, what in kernels.items() if digest not in verified}
    if options.update:
        lines = "".join(f"{digest} {what}\n" for digest, what in sorted(missing.items()))
        (HERE / "pending.txt").write_text(lines)
        print(f"{len(kernels)} kernels, {len(missing)} pending")
        return 0
    pending = read_list("pending.txt")
    unlisted = {digest: what for digest, what in missing.items() if digest not in pending}
    for digest, what in sorted(unlisted.items()):
        print(f"in neither list: {digest} {what}")
    print(f"{len(kernels)} kernels: {len(kernels) - len(missing)} verified, {len(missing) - len(unlisted)} pending")
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
