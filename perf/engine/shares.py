#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which share of each model's measured time lies outside backend `cpu`: in nodes of `ref` and in the interpreter.

    perf/engine/shares.py build/zoo [FOLDER|FILE ...] [--batch 1] [--limit 2] [--out shares.json]

Runs `starling profile --json` over every ONNX file. Dimensions without a size get one (--size). A step with bodies counts as the
interpreter with the time that is left when the nodes in its bodies are taken off. Ends with 1 when a model is
above the limit or refused.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys


def files_of(paths):
    for path in map(pathlib.Path, paths):
        if path.exists():
            yield from sorted(path.rglob("*.onnx")) if path.is_dir() else [path]
        else:
            print(f"skipped={path}: it is not there")


def name_of(model):
    """The file's, or in a repository, NAME/VERSION/model.onnx, the model's."""
    return model.parts[-3] if model.stem == "model" and len(model.parts) > 2 else model.stem


def command_of(options, model, sizes):
    command = [options.starling, "profile", "--json", "--seconds", str(options.seconds), "--batch", str(options.batch)]
    if sizes:
        command += ["-O", "shapes=" + ",".join(f"{name}={size}" for name, size in sizes.items())]
    return command + [str(model)]


def size_of(name, options):
    given = dict(part.split("=") for part in options.sizes.split(",") if part)
    return given.get(name, options.size)


def profile(options, model):
    """The profile, or the reason why there is none. A size is added for each dimension that is missed."""
    sizes = {}
    while True:
        done = subprocess.run(command_of(options, model, sizes), capture_output=True, text=True, timeout=options.timeout)
        missed = re.search(r'as in (?:"|-O shapes=)([^"=]+)=SIZE', done.stderr)
        if done.returncode == 0:
            return json.loads(done.stdout), None
        if not missed or missed.group(1) in sizes:
            return None, (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        sizes[missed.group(1)] = size_of(missed.group(1), options)


def share_of(measured):
    outside = [step for step in measured["steps"] if step["backend"] != "cpu"]
    total = sum(step["ns"] for step in measured["steps"]) or 1
    kinds = {}
    for step in outside:
        kind = f'{step["operator"]} ({step["backend"]})'
        kinds[kind] = kinds.get(kind, 0) + 100 * step["ns"] / total
    return {
        "ms": measured["run_ns"] / 1e6,
        "outside_percent": 100 * sum(step["ns"] for step in outside) / total,
        "outside": dict(sorted(kinds.items(), key=lambda item: -item[1])[:4]),
    }


def measure(options, model):
    try:
        measured, reason = profile(options, model)
    except subprocess.TimeoutExpired:
        measured, reason = None, f"not done after {options.timeout} s"
    return share_of(measured) if measured else {"refused": reason}


def line_of(name, row):
    if "refused" in row:
        return f"| {name} | - | - | {row['refused'][:120]} |"
    most = ", ".join(f"{kind} {percent:.2f}" for kind, percent in row["outside"].items() if percent >= 0.05)
    return f"| {name} | {row['ms']:.3f} | {row['outside_percent']:.2f} | {most} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", metavar="PATH", help="profile each PATH, an ONNX file or a folder of them")
    parser.add_argument("--starling", default="build/release/bin/starling", metavar="FILE", help="measure the command FILE (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="run batches of N samples (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.5, metavar="SECONDS", help="run each model for SECONDS seconds (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="give up a model after SECONDS seconds (default: %(default)s)")
    parser.add_argument("--size", type=int, default=64, metavar="N", help="give N to a dimension without a size (default: %(default)s)")
    parser.add_argument("--sizes", default="", metavar="NAME=N,...", help="give N to the dimension NAME (default: none)")
    parser.add_argument(
        "--limit", type=float, default=2, metavar="PERCENT",
        help="fail where more than PERCENT %% of the time lies outside of backend cpu (default: %(default)s)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the rows to FILE as JSON (default: none)")
    options = parser.parse_args()
    rows = {}
    print("| model | ms | % outside cpu | most of it |\n|---|---|---|---|")
    for model in files_of(options.paths):
        name = name_of(model)
        rows[name] = measure(options, model)
        print(line_of(name, rows[name]), flush=True)
    above = [name for name, row in rows.items() if row.get("outside_percent", 0) > options.limit]
    refused = [name for name, row in rows.items() if "refused" in row]
    print(f"\n{len(rows)} models, refused: {refused or 'none'}, above {options.limit} %: {above or 'none'}")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if above or refused or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
