"""The nth call of a kind fails, for every n: the program ends with one clear error and the right status, loses no memory
and leaves no file.

    sweep.py --gpucc PROGRAM --failing LIBRARY --call-runtime PROGRAM --models DIR --work DIR --ours FILE,FILE...
             [--fake DIR] [--kind KIND] [--most N] SCENARIO...

Kinds: failing.c. A call that fails may also be one that is not needed (the kernel cache): then the command must succeed,
and what it makes be the same as without the failure. --most: no more than so many calls of a kind, evenly spread.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ERROR = re.compile(r"[^\n]*: error E(\d\d)\d\d: [^\n]{10,}\n")
SKIPPED = 77
KINDS = ["memory", "write", "fsync", "rename", "read", "open", "truncate", "folder"]

# name: command, the kinds that it meets, files of the models' folder, commands before, outputs
SCENARIOS = {
    "check": (["gpucc", "check", "small.onnx", "--target=cpu,sm_90a"], ["memory", "read", "open"], ["small.onnx"], [], []),
    "check_external": (["gpucc", "check", "external_good.onnx", "--target=cpu"], ["memory", "read", "open"],
                       ["external_good.onnx", "w.data -> weights/w.data"], [], []),
    "compile": (["gpucc", "external_good.onnx", "--target=cpu", "-o", "s.so"], KINDS,
                ["external_good.onnx", "w.data -> weights/w.data"], [], ["s.so"]),
    "compile_weights": (["gpucc", "small.onnx", "--target=cpu", "-o", "s.so", "--weights=s.weights"], KINDS, ["small.onnx"], [],
                        ["s.so", "s.weights"]),
    "compile_gpu": (["gpucc", "small.onnx", "--target=sm_90a", "-o", "s.so", "--emit-cuda=cuda", "--cache=cache"], KINDS,
                    ["small.onnx"], [], ["s.so", "cuda", "cuda/<*>", "cache", "cache/<*>"]),
    "info": (["gpucc", "info", "s.so"], ["memory", "read", "open"], ["small.onnx"],
             [["gpucc", "small.onnx", "--target=cpu", "-o", "s.so"]], []),
    "run": (["gpucc", "run", "s.so", "--input", "x=x.npy", "--output-dir=out", "--device=cpu", "--threads=2"],
            ["memory", "read", "open", "write", "fsync", "rename", "folder"], ["small.onnx", "x.npy"],
            [["gpucc", "small.onnx", "--target=cpu", "-o", "s.so"]], ["out", "out/output_0.npy"]),
    "run_pb": (["gpucc", "run", "s.so", "--input", "x=x.pb", "--output-dir=out", "--output-format=pb", "--threads=1"],
               ["memory", "read", "open", "write", "fsync", "rename", "folder"], ["small.onnx", "x.pb"],
               [["gpucc", "small.onnx", "--target=cpu", "-o", "s.so", "--weights=s.weights"]], ["out", "out/output_0.pb"]),
    "run_gpu": (["gpucc", "run", "s.so", "--dim", "batch=2", "--device=cuda:0"], ["memory", "read", "open"], ["small.onnx"],
                [["gpucc", "small.onnx", "--target=sm_90a", "-o", "s.so"]], []),
    "runtime": (["call_runtime", "s.so"], ["memory", "read", "open"], ["small.onnx"],
                [["gpucc", "small.onnx", "--target=cpu", "-o", "s.so", "--dim", "batch=1:64:8"]], []),
}
STATUSES = {"memory": {3}, "write": {3}, "fsync": {3}, "rename": {3}, "truncate": {3}, "folder": {3}, "read": {1, 3},
            "open": {1, 3}}


def code_symbols(*options):
    lines = subprocess.run(["nm", *options], capture_output=True, text=True, check=True).stdout.splitlines()
    return [(int(line.split()[0], 16), line.split()[2]) for line in lines if re.match(r"[0-9a-f]+ [tTwW] ", line)]


def our_ranges(program, libraries, path):
    """Where the program's code is that of our libraries and not LLVM's or another's."""
    ours = {name.split(".")[0] for library in libraries for _, name in code_symbols(library)}
    symbols = code_symbols("-n", program)
    ranges = []
    for (begin, name), (end, _) in zip(symbols, symbols[1:]):
        if name.split(".")[0] not in ours or begin == end:
            continue
        if ranges and ranges[-1][1] == begin:
            ranges[-1][1] = end
        else:
            ranges.append([begin, end])
    path.write_text("".join(f"{begin:x} {end:x}\n" for begin, end in ranges))


def skip_without_nvrtc(stderr):
    if "E0502" in stderr:
        print("no NVRTC here: skipped")
        sys.exit(SKIPPED)


def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def matches(name, patterns):
    return any(re.fullmatch(".*".join(map(re.escape, pattern.split("<*>"))), name) for pattern in patterns)


def sample(calls, most):
    """All, or `most` of them from the first to the last."""
    if calls <= most:
        return list(range(1, calls + 1))
    return sorted({1 + round(i * (calls - 1) / (most - 1)) for i in range(most)})


class Sweep:
    def __init__(self, options, scenario):
        self.options, self.scenario = options, scenario
        self.command, self.kinds, self.files, self.before, self.outputs = SCENARIOS[scenario]
        self.base = options.work / scenario
        self.programs = {"gpucc": options.gpucc, "call_runtime": options.call_runtime}

    def words(self, command):
        return [str(self.programs[command[0]])] + command[1:]

    def environment(self, folder, **more):
        environment = dict(os.environ, LC_ALL="C", TMPDIR=str(folder / "tmp"), GPUCC_CACHE_DIR=str(self.options.work / "cache"))
        environment.update(more)
        return environment

    def make_start(self):
        """The folder that every run begins with."""
        shutil.rmtree(self.base, ignore_errors=True)
        self.start = self.base / "start"
        self.start.mkdir(parents=True)
        for item in self.files:
            source, _, target = item.partition(" -> ")
            path = self.start / (target or source)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.options.models / source, path)
        (self.base / "tmp").mkdir()
        for command in self.before:
            result = subprocess.run(self.words(command), cwd=self.start, env=self.environment(self.base),
                                    capture_output=True, text=True)
            skip_without_nvrtc(result.stderr)
            if result.returncode != 0:
                raise SystemExit(result.stderr)
        self.ranges = self.base / "ranges"
        our_ranges(self.programs[self.command[0]], self.options.ours, self.ranges)
        self.initial = snapshot(self.start)

    def execute(self, kind, at):
        """Exit status, standard error, what stands in the folder, what is left over, calls, lost."""
        folder = self.base / f"{kind}-{at}"
        shutil.copytree(self.start, folder / "case")
        (folder / "tmp").mkdir()
        report = folder / "report"
        environment = self.environment(folder, LD_PRELOAD=str(self.options.failing), FAILING_KIND=kind, FAILING_AT=str(at),
                                       FAILING_RANGES=str(self.ranges), FAILING_REPORT=str(report))
        if self.scenario == "run_gpu":
            environment["LD_LIBRARY_PATH"] = str(self.options.fake)
        result = subprocess.run(self.words(self.command), cwd=folder / "case", env=environment, capture_output=True,
                                text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=120)
        figures = dict(line.split() for line in report.read_text().splitlines()) if report.exists() else {}
        found = (result.returncode, result.stderr, snapshot(folder / "case"), snapshot(folder / "tmp"),
                 int(figures.get("calls", -1)), int(figures.get("lost", -1)))
        shutil.rmtree(folder)
        return found

    def problems(self, kind, at, expected):
        status, stderr, after, left, _, lost = self.execute(kind, at)
        wrong = []
        made = {name for name in after if name not in self.initial or after[name] != self.initial[name]}
        made |= {name for name in self.initial if name not in after}
        if left:
            wrong.append(f"temporary files stay: {sorted(left)}")
        if lost:
            wrong.append(f"{lost} allocations are lost" if lost > 0 else "it did not end by itself")
        if status == 0:
            optional = {name for name in set(after) ^ set(expected) if matches(name, ["cache", "cache/<*>"])}
            if {k: v for k, v in after.items() if k not in optional} != {k: v for k, v in expected.items() if k not in optional}:
                wrong.append("it succeeds, but makes something else")
        elif self.command[0] == "call_runtime" or status not in STATUSES[kind]:
            wrong.append(f"exit status {status}")
        else:
            if not ERROR.fullmatch(stderr):
                wrong.append("not one clear error")
            if {name for name in made if not matches(name, ["cache", "cache/<*>"])}:
                wrong.append(f"files stay: {sorted(made)}")
        return [f"{self.scenario}, {kind} {at}: {'; '.join(wrong)}\n{stderr}"] if wrong else []

    def run(self):
        self.make_start()
        failures, total = [], 0
        for kind in [kind for kind in self.kinds if self.options.kind in (None, kind)]:
            status, stderr, expected, left, calls, lost = self.execute(kind, 0)
            skip_without_nvrtc(stderr)
            made = {name for name in expected if expected[name] != self.initial.get(name, b"")}
            if status != 0 or left or calls < 1 or lost > 0 or not all(matches(name, self.outputs) for name in made):
                failures.append(f"{self.scenario}, {kind}, no failure: status {status}, {calls} calls, {lost} lost, left {left}, "
                                f"made {sorted(made)}\n{stderr}")
                continue
            chosen = sample(calls, self.options.most)
            total += len(chosen)
            print(f"{self.scenario}: {kind}: {len(chosen)} of {calls} calls", flush=True)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                for wrong in pool.map(lambda at: self.problems(kind, at, expected), chosen):
                    failures += wrong
        shutil.rmtree(self.base, ignore_errors=True)
        for failure in failures:
            print(failure)
        print(f"{'FAILED' if failures else 'OK'} {self.scenario}: {total} failing calls, {len(failures)} wrong")
        return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gpucc", "failing", "call-runtime", "models", "work"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--fake", type=pathlib.Path)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--most", type=int, default=1000000)
    parser.add_argument("--ours", type=lambda text: text.split(","), required=True)
    parser.add_argument("scenarios", nargs="+", choices=sorted(SCENARIOS))
    options = parser.parse_args()
    for name, path in vars(options).items():
        if isinstance(path, pathlib.Path):
            setattr(options, name, path.resolve())
    good = True
    for scenario in options.scenarios:
        good &= Sweep(options, scenario).run()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
