"""One model for tests/gpu/run: its bundle, the hashes of its kernels, inputs and references, and a command file.

    prepare_model.py --gpucc PROGRAM --work DIR --target TARGET --out FOLDER [--fetched DIR] NAME
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import models  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("name")
    options = parser.parse_args()
    facts = json.loads((HERE.parent / "models" / "models.json").read_text())[options.name]
    path = models.model_path(options.name, facts, options.work, options.fetched)
    options.out.mkdir(parents=True, exist_ok=True)
    cuda = options.work / "cuda" / options.name
    cuda.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(part) for part in [options.gpucc, path, f"--target={options.target}", f"--emit-cuda={cuda}", "-o",
                                           options.out / "bundle.so"]], check=True)
    shutil.copy(cuda / "kernels.hash", options.out / "kernels.hash")
    for number, (_, folder, record) in enumerate(models.references(options.name, facts, path, options.work)):
        out = options.out / f"set{number}"
        out.mkdir(exist_ok=True)
        for file in folder.glob("*.npy"):
            shutil.copy(file, out / file.name)
        inputs = "".join(f"{name}=input_{i}.npy\n" for i, name in enumerate(record["inputs"]))
        (out / "inputs").write_text(inputs)
        allowed = "".join(f"{i} {models.tolerance(noise):.9g}\n" for i, noise in enumerate(record["noise"]))
        (out / "outputs").write_text(allowed)


if __name__ == "__main__":
    main()
