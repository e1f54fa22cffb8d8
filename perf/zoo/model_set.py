# SPDX-License-Identifier: Apache-2.0
"""The command line of a set of models: zoo.py, and further.py of perf/further."""

import argparse
import os
import time

import checking


def main(usage, models, write):
    """Acts as the command line says; models are {name: what it is}, write(name, path) makes a file and returns its bytes."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", help="write the models into DIR (default: none)")
    parser.add_argument("--check", metavar="DIR", help="check the models of DIR (default: none)")
    parser.add_argument("--only", metavar="NAMES", help="take the models NAMES alone, separated by commas (default: all)")
    parser.add_argument("--resume", action="store_true", help="leave the files that are there")
    parser.add_argument("--list", action="store_true", help="list the models")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(models)
    unknown = [n for n in names if n not in models]
    if unknown:
        parser.error(f"no model {unknown[0]!r}; --list shows all")
    if options.list:
        for name in names:
            print(f"{name:28}{models[name]}")
        return 0
    if not options.out and not options.check:
        parser.error("--out DIR, --check DIR or --list is wanted")
    failed = 0
    if options.out:
        os.makedirs(options.out, exist_ok=True)
        wanted = [n for n in names if not (options.resume and os.path.exists(_path(options.out, n)))]
        failed += _each(wanted, lambda name: f"{write(name, _path(options.out, name)) / 1e6:.1f} MB")
    if options.check:
        failed += _each(names, lambda name: checking.check(_path(options.check, name)))
    return 1 if failed else 0


def _path(folder, name):
    return os.path.join(folder, name + ".onnx")


def _each(names, act):
    """Runs act on each name and says so; returns how many failed."""
    failed = 0
    for i, name in enumerate(names):
        start = time.monotonic()
        try:
            said = act(name)
        except Exception as error:  # one model's failure is a line, the others go on
            failed += 1
            said = f"FAILED: {type(error).__name__}: {str(error)[:600]}"
        print(f"[{i + 1}/{len(names)}] {name}: {said} ({time.monotonic() - start:.1f} s)", flush=True)
    return failed
