# SPDX-License-Identifier: Apache-2.0
"""check_types.py PACKAGE FOLDER: mypy --strict and pyright report nothing in the package and, of the folder's programs, the lines that say
`# wrong` and no others. Packages: types.txt."""

import json
import os
import pathlib
import subprocess
import sys
import zlib

BIN = os.path.dirname(sys.executable)
PYRIGHT_PATH = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PATH": BIN + os.pathsep + os.environ.get("PATH", "")}


def run(package, *command):
    """What a checker prints, where `import starling` is the package."""
    environment = {**os.environ, **PYRIGHT_PATH, "MYPYPATH": os.path.dirname(package)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=os.path.dirname(package), env=environment)
    if done.returncode not in (0, 1):  # 1: there are errors
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def mypy(package, paths):
    """(path, line, text) of each error."""
    # What is cached names files where they lay: another checkout, or one that was moved, has its own.
    cache = os.path.join(BIN, "..", f"mypy-cache-{zlib.crc32(package.encode()):08x}")
    printed = run(package, sys.executable, "-m", "mypy", "--strict", "--output", "json", "--cache-dir", cache, *paths)
    for entry in map(json.loads, printed.splitlines()):
        if entry["severity"] == "error":
            yield os.path.join(os.path.dirname(package), entry["file"]), entry["line"], entry["message"]


def pyright(package, paths):
    """Likewise."""
    printed = run(package, sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *paths)
    for entry in json.loads(printed)["generalDiagnostics"]:
        if entry["severity"] == "error":
            yield entry["file"], entry["range"]["start"]["line"] + 1, entry["message"]


def wrong_lines(path):
    return {(str(path), n) for n, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# wrong")}


def check(checker, package, programs):
    """How many lines are reported that are right, or are not and should be."""
    found = {(os.path.realpath(path), line): text for path, line, text in checker(package, [package, *map(str, programs)])}
    expected = set().union(*map(wrong_lines, programs))
    for path, line in sorted(expected - set(found)):
        print(f"{checker.__name__}: {path}:{line}: nothing is reported")
    for path, line in sorted(set(found) - expected):
        print(f"{checker.__name__}: {path}:{line}: {found[path, line]}")
    return len(set(found) ^ expected)


if __name__ == "__main__":
    package, folder = map(os.path.realpath, sys.argv[1:3])
    programs = sorted(pathlib.Path(folder).glob("*.py"))
    sys.exit(sum(check(checker, package, programs) for checker in (mypy, pyright)) > 0)
