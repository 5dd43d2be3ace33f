"""How long it takes to compile kokoro_tts (3,614 nodes) for cpu,sm_90a on two threads, with an empty kernel cache and with a full
one. Prints seconds of the clock and of the processors; fails above 60 and 10 seconds of the clock.

    compile_time.py --gpucc PROGRAM [--fetched DIR] [--targets LIST] [--record FILE]

On a machine that does other work beside, the clock says more than the compile takes: --busy compares half of the processors'
seconds instead. Exit status 77 where the model is not fetched.
"""
import argparse
import pathlib
import resource
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import models  # noqa: E402

THREADS, SKIPPED = 2, 77
LIMITS = {"cold": 60.0, "warm": 10.0}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--targets", default="cpu,sm_90a")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    model, figures, failed = options.fetched / "kokoro_tts.onnx", {}, False
    if not model.is_file():
        print(f"{model.name} is not fetched (scripts/fetch_models): skipped")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="gpucc-compile-") as folder:
        for turn, limit in LIMITS.items():
            clock, processors = time.monotonic(), processor_seconds()
            models.run_command([options.gpucc, model, "-o", f"{folder}/model.so", f"--target={options.targets}",
                                f"--cache={folder}/cache", f"--threads={THREADS}"])
            figures[f"{turn}.seconds"] = time.monotonic() - clock
            figures[f"{turn}.processor_seconds"] = processor_seconds() - processors
            counted = figures[f"{turn}.processor_seconds"] / THREADS if options.busy else figures[f"{turn}.seconds"]
            failed |= counted > limit
            print(f"{turn}: {figures[f'{turn}.seconds']:.1f} s, {figures[f'{turn}.processor_seconds']:.1f} s of processors, "
                  f"{counted:.1f} of {limit:.0f} allowed", flush=True)
        figures["bundle_bytes"] = pathlib.Path(f"{folder}/model.so").stat().st_size
    if options.record:
        models.write_record(options.record, figures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
