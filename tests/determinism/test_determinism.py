"""The same model, options, versions and linker give the same bytes; the same bundle and inputs give the same outputs.

    test_determinism.py bytes --gpucc PROGRAM --work DIR [--targets LIST] [--fetched DIR] [--together] [NAME ...]
    test_determinism.py runs --gpucc PROGRAM --work DIR [--device cpu|cuda:0] [--bundle FILE ...] [--record FILE]

bytes: compiles each model again and again, each time changing one thing that must not matter: the folder of the model and
of the program, the name of the output, the working and the temporary folder, threads, locale, time zone, user, umask, the
layout of memory, the kernel cache (none, cold, warm) and the environment that tools read. The bundle, its file of weights
and the emitted CUDA must stay the same (weights inside and beside), and options that must matter must change them: else nothing was compared. --together: for larger models, all of these at
once in a few compilations.

runs: runs each bundle again and again, on one and several threads, and compares the outputs bit by bit. Needs nothing but
Python's own library, so that it runs on a machine with a GPU and nothing else.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REPEATS = 5
NOBODY = 65534


def run(command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest_folder(folder):
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            total.update(f"{path.relative_to(folder)} {digest(path)}\n".encode())
    return total.hexdigest()


class Compilation:
    """One run of the compiler; the keywords are what this run has different."""

    def __init__(self, options, base, model, weights):
        self.options, self.base, self.model, self.weights, self.number = options, base, model, weights, 0

    def __call__(self, *, model=None, gpucc=None, name="model.so", flags=(), environment=(), before=(), where=None, cache=None,
                 relative=False):
        self.number += 1
        folder = self.base / f"run{self.number}"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)  # whatever the umask and the user
        for inner in ("tmp", "home"):
            (folder / inner).mkdir()
            (folder / inner).chmod(0o777)
        path = model or self.model
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "GPUCC_CACHE", "XDG_"))}
        clean.update(TMPDIR=str(folder / "tmp"), HOME=str(folder / "home"), **dict(environment))
        command = [*before, gpucc or self.options.gpucc, os.path.relpath(path, where) if relative else path, "-o", folder / name,
                   f"--emit-cuda={folder / 'cuda'}", f"--target={self.options.targets}",
                   f"--cache={cache or ''}", *([f"--weights={folder / 'weights'}"] if self.weights else []), *flags]
        run(command, env=clean, cwd=where or folder)
        left = list((folder / "tmp").iterdir())
        if left:
            raise RuntimeError(f"left in the temporary folder: {left}")
        parts = {"bundle": digest(folder / name), "CUDA": digest_folder(folder / "cuda")}
        if self.weights:
            parts["weights"] = digest(folder / "weights")
        shutil.rmtree(folder)
        return parts


def locales():
    """Locales whose numbers, letters or order differ from C's, of those that the machine has."""
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    wanted = [name for name in known if name.lower().startswith(("de_de", "tr_tr", "ja_jp", "fr_fr"))]
    return ["POSIX", "C.UTF-8", *wanted[:4], "xx_XX"]  # the last is unknown everywhere


def another_user():
    """Commands that run the rest as another user; none where this user may not."""
    if os.geteuid() == 0 and shutil.which("setpriv"):
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    words = ["unshare", "--user", "--map-root-user"]
    return words if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0 else None


def same_variants(base, options, model):
    """What must not matter: words, keywords of a Compilation."""
    elsewhere = base / "another folder with blanks" / "x"
    elsewhere.mkdir(parents=True)
    for path in (model, *model.parent.glob(f"{model.stem}*.data"), *options.beside):
        if path.exists():
            shutil.copy(path, elsewhere / path.name)
    copy = elsewhere / model.name
    program = shutil.copy(options.gpucc, elsewhere / "compiler")
    yield "again", {}
    yield "another folder", {"model": copy}
    yield "another output name", {"name": "another-name.so"}
    yield "a relative path", {"where": elsewhere, "model": copy, "relative": True}
    yield "another working folder", {"where": "/"}
    yield "the program elsewhere", {"gpucc": program}
    for threads in (1, 2, 5):
        yield f"{threads} threads", {"flags": [f"--threads={threads}"]}
    for locale in locales():
        yield f"locale {locale}", {"environment": {"LC_ALL": locale, "LANG": locale}}
    for zone in ("Pacific/Kiritimati", "America/St_Johns"):
        yield f"time zone {zone}", {"environment": {"TZ": zone}}
    user = another_user()
    if user:
        yield "another user", {"before": user, "model": copy, "gpucc": program}
    else:
        print("no other user: neither root nor user namespaces")
    yield "another umask", {"before": ["sh", "-c", "umask 077; exec \"$@\"", "sh"]}
    if shutil.which("setarch") and subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0:
        yield "fixed addresses", {"before": ["setarch", "-R"]}
    yield "other freed memory", {"environment": {"MALLOC_PERTURB_": "165"}}
    yield "the environment of tools", {"environment": {
        "LD_RUN_PATH": "/nowhere", "LDFLAGS": "-s", "SOURCE_DATE_EPOCH": "1", "NVCC_APPEND_FLAGS": "-O0", "LIBRARY_PATH": "/nowhere",
        "COLUMNS": "20"}}
    cache = base / "cache"
    yield "a cold cache", {"cache": cache}
    yield "a warm cache", {"cache": cache}


def together(variants):
    """The same changes in three compilations: without a cache, with a cold and with a warm one."""
    merged = {"environment": {}, "before": []}
    words = []
    for name, keywords in variants:
        words.append(name)
        for key, value in keywords.items():
            if key == "environment":
                merged["environment"].update(value)
            elif key == "before":
                merged["before"] = [*merged["before"], *value]
            elif key not in ("flags", "relative", "where"):
                merged[key] = value
    cache = merged.pop("cache")
    yield "all at once", {**merged, "flags": ["--threads=1"]}
    yield "another folder, 5 threads, a cold cache", {"model": merged["model"], "cache": cache, "flags": ["--threads=5"]}
    yield "another folder, a warm cache", {"model": merged["model"], "cache": cache}
    print(f"{len(words)} changes at once")


def check_bytes(name, options):
    facts = json.loads((ROOT / "tests" / "models" / "models.json").read_text())[name]
    model = options.models.model_path(name, facts, options.work, options.fetched).resolve()
    options.beside = [path for path in model.parent.iterdir() if path.suffix == ".data" or path.stem == name]
    count = 0
    for weights in (False,) if options.together else (False, True):
        with tempfile.TemporaryDirectory(prefix="gpucc-determinism-") as folder:
            base = pathlib.Path(folder)
            base.chmod(0o755)
            compilation = Compilation(options, base, model, weights)
            first = compilation()
            variants = same_variants(base, options, model)
            for words, keywords in together(variants) if options.together else variants:
                found, count = compilation(**keywords), count + 1
                for part, value in first.items():
                    if found[part] != value:
                        raise RuntimeError(f"{words}: the {part} differs")
            if compilation(flags=["-O0"])["bundle"] == first["bundle"]:
                raise RuntimeError("-O0 gives the bytes of -O3: nothing was compared")
    return f"{count} variations, the same bytes"


def usual_targets(options):
    wanted = "cpu,sm_80,sm_90a"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([options.gpucc, options.fetched / "mnist_cntk.onnx", "-o", f"{folder}/model.so", f"--target={wanted}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "cpu" if done.returncode == 3 else wanted


def inputs_of(bundle, options):
    """Options of `gpucc run`: the sets of inputs that tests/gpu/prepare put beside the bundle, else random ones twice."""
    sets = [[f"--input={name}={path.parent / file}" for name, file in
             (line.rsplit("=", 1) for line in path.read_text().splitlines())]
            for path in sorted(bundle.parent.glob("set*/inputs"))]
    if sets:
        return sets
    sizes = {dim["name"]: max(2, dim["low"]) for dim in json.loads(run([options.gpucc, "info", bundle]))["dims"]}
    sizes.update(options.dims)
    return [[f"--seed={seed}", *(f"--dim={name}={size}" for name, size in sizes.items())] for seed in (1, 2)]


def check_runs(bundle, options):
    digests = set()
    threads = [[]] if options.device != "cpu" else [[], ["--threads=1"], ["--threads=2"], ["--threads=3"]]
    counted = 0
    inputs = inputs_of(bundle, options)
    for flags in threads:
        for seed, given in enumerate(inputs):
            found = set()
            for _ in range(REPEATS):
                with tempfile.TemporaryDirectory() as folder:
                    run([options.gpucc, "run", bundle, f"--device={options.device}", f"--output-dir={folder}", *given, *flags])
                    found.add(digest_folder(pathlib.Path(folder)))
                    counted += 1
            if len(found) != 1:
                raise RuntimeError(f"{len(found)} different outputs of {REPEATS} runs, {' '.join(flags)}")
            digests.add((seed, *found))
    if len(digests) != len(inputs) or len({value for _, value in digests}) != len(inputs):
        raise RuntimeError(f"{len(digests)} different outputs for {len(inputs)} inputs on {len(threads)} numbers of threads")
    return f"{counted} runs, the same outputs"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["bytes", "runs"])
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("determinism-work"))
    parser.add_argument("--fetched", type=pathlib.Path, default=ROOT / ".cache" / "models")
    parser.add_argument("--targets", help="default: as gpucc's; cpu alone where there is no NVRTC")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bundle", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--dim", action="append", default=[], help="NAME=SIZE of a free dim, else 2")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    options.gpucc, options.work = options.gpucc.resolve(), options.work.resolve()
    options.dims = dict(text.split("=", 1) for text in options.dim)
    if options.names:
        sys.path.insert(0, str(ROOT / "tests" / "models"))
        import models
        options.models = models
    if options.targets is None and options.names:
        options.targets = usual_targets(options)
        print(f"targets: {options.targets}")
    jobs = [(name, check_bytes, name) for name in options.names] if options.action == "bytes" else []
    if options.action == "runs":
        for name in options.names:
            facts = json.loads((ROOT / "tests" / "models" / "models.json").read_text())[name]
            bundle = options.work / f"{name}.so"
            options.work.mkdir(parents=True, exist_ok=True)
            run([options.gpucc, options.models.model_path(name, facts, options.work, options.fetched), "-o", bundle,
                 f"--target={options.targets}"])
            options.bundle.append(bundle)
        jobs = [(str(bundle), check_runs, bundle) for bundle in options.bundle]
    wrong = 0
    for name, check, argument in jobs:
        try:
            print(f"ok    {name}: {check(argument, options)}", flush=True)
        except RuntimeError as problem:
            wrong += 1
            print(f"FAIL  {name}: {problem}", flush=True)
    if options.record:
        options.record.parent.mkdir(parents=True, exist_ok=True)
        options.record.write_text(json.dumps({"models": len(jobs), "different": wrong}) + "\n")
    print(f"{len(jobs) - wrong} of {len(jobs)} models the same")
    return 1 if wrong or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
