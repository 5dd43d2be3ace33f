"""Runs the command line cases of .toml files.

    run_cases.py --gpucc PROGRAM --models FOLDER --work FOLDER [--parse PROGRAM] [--fake FOLDER] [--only NAME] FILE...

A case is a table [[case]]:

    name        says what is shown, in words joined by _
    run         the command: words as a shell would split them, without a shell; `gpucc` is the program under test,
                `python` this Python, `ir_text` the reader of the Graph IR's text; @models@ and @folder@ are the models' and the case's folder
    files       of the models' folder, copied into the case's own, where the command runs; "a -> b" copies a as b
    links       "a -> b" makes b, a symbolic link to a; "fifo -> b" makes a fifo
    before      commands that must succeed first
    into        a command that reads the first one's standard output and whose own is looked at; it must succeed
    status      exit status, default 0
    stdout      all lines of standard output; <*> in a line stands for any text; lines "..." for any number of lines
    stderr      the same of standard error; neither given: nothing may be printed
    json        conditions in Python on `info`, standard output read as JSON; each must be true
    leaves      files that the command makes (<*> as above); all others must be as before, and no other may be there
    env         variables to set; the value false unsets one; @fake@ is the folder of the fake driver
    stdout_to   a file for standard output
    file_limit  no file may grow beyond so many bytes
    read_only   the case's folder may not be written; root, whom nothing stops, runs the command as nobody, and skips the
                case where nobody may not reach the program
    needs       nvrtc, nvcc, lld, ld or cc: skipped where it is missing

Beside what a case says, nothing may stay in the folder for temporary files.
"""
import argparse
import ctypes.util
import hashlib
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tomllib

KEYS = {"name", "run", "files", "links", "before", "into", "status", "stdout", "stderr", "json", "leaves", "env",
        "stdout_to", "file_limit", "read_only", "needs"}


NOBODY = 65534


def there(need):
    if need == "nvrtc":
        known = ["/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12"]
        wish = os.environ.get("GPUCC_NVRTC")
        return bool(wish or ctypes.util.find_library("nvrtc") or any(os.path.exists(path) for path in known))
    return shutil.which({"lld": "ld.lld-19"}.get(need, need)) is not None


def snapshot(folder):
    """What stands in the folder: path -> kind and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = "link " + os.readlink(path)
        elif path.is_file():
            found[name] = "file " + hashlib.sha256(path.read_bytes()).hexdigest()
        elif not path.is_dir():
            found[name] = "other"
        else:
            found[name] = "folder"
    return found


def matches(pattern, line):
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("<*>")), line) is not None


def compare(expected, lines):
    """Whether lines are as expected; "..." stands for any number of lines."""
    if not expected:
        return not lines
    if expected[0] == "...":
        return any(compare(expected[1:], lines[i:]) for i in range(len(lines) + 1))
    return bool(lines) and matches(expected[0], lines[0]) and compare(expected[1:], lines[1:])


class Runner:
    def __init__(self, options):
        self.options = options

    def words(self, command):
        programs = {"gpucc": self.options.gpucc, "python": sys.executable, "ir_text": self.options.parse}
        words = shlex.split(command.replace("@folder@", str(self.folder)).replace("@models@", str(self.options.models)))
        return [str(programs.get(words[0], words[0]))] + words[1:]

    def environment(self, case):
        environment = dict(os.environ, TMPDIR=str(self.temporary), GPUCC_CACHE_DIR=str(self.options.work / "cache"),
                           LC_ALL="C")
        for name, text in case.get("env", {}).items():
            environment.pop(name, None)
            if text is not False:
                environment[name] = text.replace("@folder@", str(self.folder)).replace("@fake@", str(self.options.fake))
        return environment

    def prepare(self, case):
        self.folder = self.options.work / "case"
        self.temporary = self.options.work / "tmp"
        for folder in (self.folder, self.temporary):
            if folder.exists():
                folder.chmod(0o700)
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
        for item in case.get("files", []):
            source, _, target = item.partition(" -> ")
            path = self.folder / (target or source)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.options.models / source, path)
        for item in case.get("links", []):
            target, _, name = item.partition(" -> ")
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            if target == "fifo":
                os.mkfifo(self.folder / name)
            else:
                os.symlink(target, self.folder / name)
        for command in case.get("before", []):
            result = subprocess.run(self.words(command), cwd=self.folder, env=self.environment({}), capture_output=True,
                                    text=True)
            if result.returncode != 0:
                raise RuntimeError(f"{command}: status {result.returncode}\n{result.stderr}")

    def execute(self, case):
        def limit():
            if "file_limit" in case:
                resource.setrlimit(resource.RLIMIT_FSIZE, (case["file_limit"], case["file_limit"]))
            if case.get("read_only") and os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
        output = open(case["stdout_to"], "wb") if "stdout_to" in case else subprocess.PIPE
        if case.get("read_only"):
            self.folder.chmod(0o555)
            self.temporary.chmod(0o777)
        result = subprocess.run(self.words(case["run"]), cwd=self.folder, env=self.environment(case), stdout=output,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, preexec_fn=limit, timeout=300)
        self.folder.chmod(0o700)
        if output is not subprocess.PIPE:
            output.close()
        stdout, stderr = result.stdout or b"", result.stderr
        if "into" in case:
            second = subprocess.run(self.words(case["into"]), cwd=self.folder, env=self.environment({}), input=stdout,
                                    capture_output=True)
            if second.returncode != 0:
                raise RuntimeError(f"{case['into']}: status {second.returncode}\n{second.stderr.decode()}")
            stdout = second.stdout
        return result.returncode, stdout.decode("utf-8", "backslashreplace"), stderr.decode("utf-8", "backslashreplace")

    def check(self, case):
        """The reasons why the case fails, or None when it is skipped."""
        unknown = set(case) - KEYS
        if unknown:
            return [f"unknown fields {unknown}"]
        if any(not there(need) for need in case.get("needs", [])):
            return None
        self.prepare(case)
        before = snapshot(self.folder)
        try:
            status, stdout, stderr = self.execute(case)
        except PermissionError:
            return None
        after = snapshot(self.folder)
        wrong = []
        if status != case.get("status", 0):
            wrong.append(f"exit status {status}, not {case.get('status', 0)}")
        if "json" in case:
            info = json.loads(stdout)
            wrong += [f"not true: {text}" for text in case["json"] if not eval(text, {"info": info})]
        elif not compare(case.get("stdout", []), stdout.splitlines()):
            wrong.append("standard output is not as stated")
        if not compare(case.get("stderr", []), stderr.splitlines()):
            wrong.append("standard error is not as stated")
        made = {name for name in after if before.get(name) != after[name]} | {name for name in before if name not in after}
        leaves = case.get("leaves", [])
        if not all(any(matches(leaf, name) for leaf in leaves) for name in made) or \
           not all(any(matches(leaf, name) for name in made) for leaf in leaves):
            wrong.append(f"files made or changed: {sorted(made)}, not {sorted(leaves)}")
        left = snapshot(self.temporary)
        if left:
            wrong.append(f"temporary files stay: {sorted(left)}")
        if wrong:
            wrong.append(f"--- standard output\n{stdout[:4000]}--- standard error\n{stderr[:4000]}---")
        return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--parse", type=pathlib.Path)
    parser.add_argument("--fake", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    for name in ("gpucc", "models", "work"):
        setattr(options, name, getattr(options, name).resolve())
    for name in ("parse", "fake"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    runner, failed, skipped, done = Runner(options), 0, 0, 0
    for path in options.cases:
        for case in tomllib.loads(path.read_text())["case"]:
            if options.only and options.only not in case["name"]:
                continue
            try:
                wrong = runner.check(case)
            except Exception as problem:
                wrong = [f"{type(problem).__name__}: {problem}"]
            done += 1
            skipped += wrong is None
            failed += bool(wrong)
            print(f"{'skipped' if wrong is None else 'FAILED' if wrong else 'OK'} {case['name']}")
            if wrong:
                print("      " + case["run"], *wrong, sep="\n      ")
    for folder in (options.work / "case", options.work / "tmp"):
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{done} cases, {failed} failed, {skipped} skipped")
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
