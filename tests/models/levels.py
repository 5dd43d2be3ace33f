"""One bundle, every instruction set level: the same bits.

    levels.py --gpucc PROGRAM --work DIR [--fetched DIR] [--emulator COMMAND] [--all-sets] NAME...

The x86-64 levels 2, 3 and 4 of a bundle are run one after the other on the same inputs; all outputs must equal those of
level 3 byte for byte. A level that this processor lacks must be refused, with exit status 3. With an emulator (a command
that runs a program on a processor of level 2, such as "qemu-x86_64 -cpu Nehalem"): its run without a wish for a level
gives the same bytes, and level 3 is refused there.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402

LEVELS, REFERENCE = (2, 3, 4), 3


def outputs(options, prefix, bundle, device, folder, record, out, refusal="lacks level"):
    """Bytes of all output files; None: the level was refused."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("output_*.npy"):
        old.unlink()
    command = prefix + [str(options.gpucc), "run", str(bundle), f"--device={device}", f"--output-dir={out}"]
    command += [f"--input={key}={folder / f'input_{i}.npy'}" for i, key in enumerate(record["inputs"])]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 3 and refusal in result.stderr:
        return None
    if result.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}\nexit status {result.returncode}\n{result.stderr.strip()}")
    return [path.read_bytes() for path in sorted(out.glob("output_*.npy"))]


def flags_of_this_processor():
    return pathlib.Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split()


def has_level(level):
    """By what the kernel says, so that the runtime's own answer is checked."""
    flags = set(flags_of_this_processor())
    needs = {2: {"sse4_2", "popcnt"}, 3: {"avx2", "fma", "bmi2", "f16c", "movbe", "abm"},
             4: {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}
    return all(needs[lower] <= flags for lower in needs if lower <= level)


def check(name, facts, options):
    path = models.model_path(name, facts, options.work, options.fetched)
    bundle = options.work / "levels" / f"{name}.so"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    models.run_command([options.gpucc, path, "-o", bundle, "--target=cpu"])
    said = []
    for dims, folder, record in models.references(name, facts, path, options.work)[: None if options.all_sets else 1]:
        out = options.work / "levels" / "outputs" / name
        expected = outputs(options, [], bundle, f"cpu:{REFERENCE}", folder, record, out / "reference")
        if not expected:
            raise RuntimeError(f"no outputs at level {REFERENCE}")
        for level in LEVELS:
            got = outputs(options, [], bundle, f"cpu:{level}", folder, record, out / str(level))
            if (got is not None) != has_level(level):
                raise RuntimeError(f"level {level} was {'refused' if got is None else 'taken'} on this processor")
            if got is not None and got != expected:
                raise RuntimeError(f"level {level} gives other bits than level {REFERENCE} at {dims}")
            said.append(f"v{level} {'equal' if got is not None else 'compiled only'}")
        if outputs(options, [], bundle, "cpu:1", folder, record, out / "none", "has no code of level 1") is not None:
            raise RuntimeError("a level that the bundle lacks was taken")
        if options.emulator:
            prefix = shlex.split(options.emulator)
            if outputs(options, prefix, bundle, "cpu", folder, record, out / "emulated") != expected:
                raise RuntimeError(f"{options.emulator} gives other bits than level {REFERENCE} at {dims}")
            if outputs(options, prefix, bundle, f"cpu:{REFERENCE}", folder, record, out / "refused") is not None:
                raise RuntimeError(f"{options.emulator} was given code of level {REFERENCE}")
            said.append("emulated equal")
    return ", ".join(dict.fromkeys(said))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=models.HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--emulator")
    parser.add_argument("--all-sets", action="store_true", help="every set of dims, not only the first")
    parser.add_argument("names", nargs="+")
    options = parser.parse_intermixed_args()
    options.work = options.work.resolve()
    table = json.loads((models.HERE / "models.json").read_text())
    failed = 0
    for name in options.names:
        try:
            print(f"ok    {name}: {check(name, table[name], options)}", flush=True)
        except RuntimeError as problem:
            failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
