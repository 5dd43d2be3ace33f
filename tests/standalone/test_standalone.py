"""What bundles ask of the system, and several of them in one process.

    test_standalone.py --gpucc PROGRAM --check-bundle PROGRAM --several PROGRAM --compiler CC [--fetched DIR]

Compiles models with every kind of target, linker and option that shapes the image and reads the result's ELF
(check_bundle, which the other suites run on their bundles too). Shared objects that break one promise each must be
refused, in the expected words. Then several_bundles runs three bundles, each twice, in one process.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

QUERY = "const void *gpucc_bundle_query(unsigned abi);\nconst void *gpucc_bundle_query(unsigned abi) { return %s; }\n"
PLAIN = QUERY % "(const void *)(unsigned long)abi"
LIBC_CALL = "extern int strcmp(const char *, const char *);\n" + QUERY % "(const void *)(unsigned long)strcmp((char *)&abi, \"\")"
# (source, flags of the compiler, what the checker must say)
BROKEN = [
    (PLAIN, ["-Wl,-z,execstack"], "executable stack"),
    (PLAIN, ["-Wl,-z,norelro"], "no RELRO"),
    (LIBC_CALL, ["-Wl,-z,lazy"], "not bound at load"),
    (PLAIN, ["-Wl,-rpath,/opt", "-Wl,--disable-new-dtags"], "RPATH"),
    (PLAIN, ["-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"], "RUNPATH"),
    (PLAIN + "int other; int other = 1;\n", [], "exports \"other\""),
    ("int x; int x = 1;\n", ["-fvisibility=hidden"], "does not export"),
    (PLAIN, ["-Wl,--no-as-needed", "-l:libm.so.6", "-l:libz.so.1"], "needs the library \"libz.so.1\""),
    ("extern int dlsym(void); int dlsym(void);\nextern void *dlopen(const char *, int);\n" + QUERY % "dlopen(0, 1)", [],
     "needs version \"GLIBC_2.34\""),
    ("extern int mprotect(void *, unsigned long, int);\n" + QUERY % "(const void *)(long)mprotect(&abi, 1, 7)", [],
     "needs \"mprotect\""),
    ("extern int nobody(void);\n" + QUERY % "(const void *)(long)nobody()", ["-Wl,-z,undefs"], "needs \"nobody\" without a version"),
    (PLAIN + "__attribute__((section(\".mixed,\\\"awx\\\",@progbits#\"))) static int mixed = 1;\n"
     "int *gpucc_dummy(void) __attribute__((visibility(\"hidden\"))); int *gpucc_dummy(void) { return &mixed; }\n", [],
     "writable and executable"),
]
BASE = ["-shared", "-fPIC", "-nostartfiles", "-w", "-O1", "-Wl,-z,relro", "-Wl,-z,now"]


def run(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def must(*command):
    done = run(*command)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def variants():
    """Name and options of each way to make an image."""
    yield "cpu", ["--target=cpu"]
    yield "plain", ["--target=cpu", "-O0"]
    yield "weights", ["--target=cpu", "--weights={}.weights"]
    yield "aarch64", ["--target=cpu", "--host=aarch64"]
    for linker in ("ld.lld-19", "ld", "cc", "gcc", "clang-19"):
        if shutil.which(linker):
            yield linker, ["--target=cpu", f"--linker={linker}"]
    yield "cuda", ["--target=cpu,sm_80,sm_90a"]
    yield "cuda alone", ["--target=sm_90a"]


def check_variants(options, model, folder):
    bundles = []
    # What linkers read from their environment must not reach the bundle.
    os.environ["LD_RUN_PATH"] = "/nowhere"
    os.environ["LDEMULATION"] = "elf_i386"
    for name, flags in variants():
        bundle = folder / f"{name}.so"
        done = run(options.gpucc, model, "-o", bundle, *[flag.format(bundle) for flag in flags])
        if done.returncode == 3 and "cuda" in name:
            print(f"{name}: {done.stdout.strip()}")  # no NVRTC
            continue
        if done.returncode:
            sys.exit(f"{name}: exit status {done.returncode}\n{done.stdout}")
        bundles.append(bundle)
    del os.environ["LD_RUN_PATH"], os.environ["LDEMULATION"]
    must(options.check_bundle, *bundles)
    return len(bundles)


def check_refusals(options, folder):
    for number, (source, flags, words) in enumerate(BROKEN):
        text, library = folder / f"broken{number}.c", folder / f"broken{number}.so"
        text.write_text(source)
        must(options.compiler, *BASE, text, "-o", library, *flags)
        done = run(options.check_bundle, library)
        if done.returncode != 1 or words not in done.stdout:
            sys.exit(f"{flags}: exit status {done.returncode}, expected the words `{words}`\n{done.stdout}")
    for content in (b"", b"\x7fELF", (folder / "broken0.so").read_bytes()[:3000], b"\x7fELF" + bytes(200)):
        path = folder / "cut.so"
        path.write_bytes(content)
        if run(options.check_bundle, path).returncode != 1:
            sys.exit(f"{len(content)} bytes of no bundle were taken for one")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--gpucc", "--check-bundle", "--several"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--fetched", type=pathlib.Path, default=ROOT / ".cache" / "models")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpucc-standalone-") as name:
        folder = pathlib.Path(name)
        os.environ["GPUCC_CACHE_DIR"] = str(folder / "cache")
        count = check_variants(options, options.fetched / "mnist_cntk.onnx", folder)
        check_refusals(options, folder)
        bundles = []
        for model in ("magika", "espcn_subpixel", "mnist_cntk"):
            bundles.append(folder / f"{model}.so")
            must(options.gpucc, options.fetched / f"{model}.onnx", "-o", bundles[-1], "--target=cpu")
        must(options.check_bundle, *bundles)
        # The same bytes under another name are another bundle.
        copy = shutil.copy(bundles[0], folder / "copy.so")
        print(must(options.several, *bundles, copy).strip())
    print(f"{count} kinds of bundle need only an old C library; {len(BROKEN)} kinds of others were refused")


if __name__ == "__main__":
    main()
