"""Host time of one enqueue of resnet50.script on the driver that executes nothing; fails above 10 us.

    enqueue.py --build DIR --work DIR [--record FILE]

--build: a build with the bench and the driver (the release preset). Compiles for sm_90a, so NVRTC is needed.
"""
import argparse
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import models  # noqa: E402

NAME, LIMIT = "resnet50.script", 10.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    facts = json.loads((HERE.parent / "models" / "models.json").read_text())[NAME]
    path = models.model_path(NAME, facts, options.work, None)
    bundle = options.work / "enqueue.so"
    models.run_command([options.build / "frontend/driver/gpucc", path, "-o", bundle, "--target=sm_90a"])
    sizes = [f"{name}={size}" for name, size in facts["dims"][0].items()]
    output = models.run_command([options.build / "tests/perf/enqueue", bundle, *sizes])
    bundle.unlink()
    taken = float(re.match(r"([\d.]+) us", output).group(1))
    print(f"{'ok  ' if taken <= LIMIT else 'OVER'} one enqueue of {NAME}: {output.strip()} (at most {LIMIT:.0f} us)")
    if options.record:
        models.write_record(options.record, {"resnet50_microseconds": taken})
    return 0 if taken <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
