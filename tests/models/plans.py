"""Plans of model graphs, without their weights: no shape arithmetic is left at run time, and the arena is at most 1.1 times
the largest live set at each set of dims. Prints the figures; fails beyond them.

    plans.py --facts PROGRAM --work DIR [--fetched DIR] [--graphs DIR] [--imported] [NAME ...]

--graphs: another folder of NAME.onnx with an inputs.json that names two sets of dims. Weights files are made as holes of
the right size. --imported: graphs before any pass, so that
the check must fail. A model whose operators are not supported yet counts as such in the last line, and fails only when it is one
of tests/models.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import models

ARENA_LIMIT = 1.1
# Figures of small models are granules of 256 bytes: beyond that the factor says nothing.
GRANULE = 4096


def skeleton(source, work):
    """The graph beside a weights file of zeros that takes no room."""
    work.mkdir(parents=True, exist_ok=True)
    path = work / source.name
    path.write_bytes(source.read_bytes())
    fill = source.with_suffix("").with_suffix(source.with_suffix("").suffix + ".fill.json")
    if fill.exists():
        plan = json.loads(fill.read_text())
        if plan["tensors"]:
            with open(work / plan["file"], "wb") as out:
                out.truncate(plan["bytes"])
    return path


def find_models(options):
    """name, path of the graph, sets of dims."""
    if options.graphs:
        table = json.loads((options.graphs / "inputs.json").read_text())
        for name in options.names or table:
            facts = table[name]
            yield name, skeleton(options.graphs / f"{name}.onnx", options.work), [facts["dims"], facts["dims2"]]
        return
    table = json.loads((models.HERE / "models.json").read_text())
    for name in options.names or table:
        facts = table[name]
        if facts.get("fetched"):
            yield name, models.model_path(name, facts, options.work, options.fetched), facts["dims"]
        else:
            yield name, skeleton(models.HERE / "graphs" / f"{name}.onnx", options.work), facts["dims"]


def check(command, name, path, sets):
    """Problems of one model, or None when it is not supported; the worst arena factor."""
    problems, worst = [], 1.0
    for dims in sets:
        arguments = command + [str(path)] + [f"{key}={value}" for key, value in dims.items()]
        result = subprocess.run(arguments, capture_output=True, text=True)
        if result.returncode == 1:
            return None, result.stderr.strip().splitlines()
        if result.returncode != 0:
            raise SystemExit(f"{name}: {result.stdout}{result.stderr}")
        for line in result.stdout.splitlines():
            shapes = re.match(r"(\S+): shapes (\d+)", line)
            if not shapes or int(shapes.group(2)):
                problems.append(line.strip())
            memory = re.search(r"live (\d+), arena (\d+)", line)
            if memory:
                live, arena = int(memory.group(1)), int(memory.group(2))
                worst = max(worst, arena / live if live else 1.0)
                if arena > ARENA_LIMIT * live + GRANULE:
                    problems.append(f"{line.strip()}: {arena / live:.3f} times what is live, at {dims}")
    return problems, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=models.HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--graphs", type=pathlib.Path)
    parser.add_argument("--imported", dest="plain", action="append_const", const="--imported", default=[])
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    counts = {"good": 0, "wrong": 0, "not supported": 0}
    largest = 1.0
    for name, path, sets in find_models(options):
        problems, worst = check([str(options.facts)] + options.plain, name, path, sets)
        if problems is None:
            counts["wrong" if not options.graphs else "not supported"] += 1
            print(f"no   {name}: {worst[0] if worst else 'refused'}", flush=True)
            continue
        largest = max(largest, worst)
        counts["wrong" if problems else "good"] += 1
        print(f"{'FAIL' if problems else 'ok  '} {name:24s} arena {worst:.3f} of live", flush=True)
        for problem in problems:
            print(f"     {problem}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()) + f"; largest arena {largest:.3f} of live")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
