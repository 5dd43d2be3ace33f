"""Reads the ELF of every bundle that tests left in the build folder: each *.so that is no library of the build itself and
none of the files that the command line's tests make to be refused (tests/cli/models).

    every_bundle.py --build DIR --check-bundle PROGRAM

Exit status 77 when there is none yet.
"""
import argparse
import pathlib
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--build", type=pathlib.Path, required=True)
parser.add_argument("--check-bundle", type=pathlib.Path, required=True)
options = parser.parse_args()
bundles = sorted(path for path in options.build.rglob("*.so")
                 if path.is_file() and not path.name.startswith("lib") and options.build / "tests/cli/models" not in path.parents)
if not bundles:
    print("no bundles yet")
    sys.exit(77)
sys.exit(subprocess.run([options.check_bundle, *bundles]).returncode)
