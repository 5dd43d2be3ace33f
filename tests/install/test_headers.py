"""Each public header alone, and used, as C11 and as C++11, by every compiler named, without one warning.

    test_headers.py --include DIR [--compilers LIST]

A compiler that is not installed is a failure, but for g++ and clang++ where only their C halves are. Each header is
compiled twice included, then with every GPUCC_INIT that it allows; last, a source that must not compile proves that
warnings count.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", "-Wconversion", "-Wundef"]


def compile_text(compiler, language, text, include, folder):
    source = folder / "source.c"
    source.write_text(text)
    command = [compiler, "-x", *language, *WARNINGS, "-I", include, "-c", source, "-o", folder / "source.o"]
    return subprocess.run(command, capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--compilers", nargs="+", default=["gcc", "clang-19"])
    options = parser.parse_args()
    headers = sorted(options.include.rglob("*.h"))
    if not headers:
        sys.exit(f"no headers in {options.include}")
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for compiler in options.compilers:
            if not shutil.which(compiler):
                sys.exit(f"{compiler} is not installed")
            for language in (["c", "-std=c11"], ["c++", "-std=c++11"]):
                for header in headers:
                    line = f"#include <{header.relative_to(options.include)}>\n"
                    # A struct whose first field is `size_t size` is one that GPUCC_INIT fills.
                    types = re.findall(r"typedef struct (\w+) \{\s*size_t size;", header.read_text())
                    uses = "".join(f"size_t use_{kind}(void);\nsize_t use_{kind}(void)\n{{\n"
                                   f"    {kind} value = GPUCC_INIT({kind});\n    return value.size;\n}}\n" for kind in types)
                    for text in (line + "typedef int not_empty;\n", line + line + uses + "typedef int not_empty;\n"):
                        done = compile_text(compiler, language, text, options.include, folder)
                        count += 1
                        if done.returncode:
                            problems.append(f"{compiler} {language[1]} {header.name}:\n{done.stderr}")
                warned = compile_text(compiler, language, "static int unused;\n", options.include, folder)
                if warned.returncode == 0:
                    problems.append(f"{compiler} {language[1]}: a warning is no error")
    for problem in problems:
        print(problem)
    print(f"{len(headers)} headers, {count} compilations, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
