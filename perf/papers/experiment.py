# SPDX-License-Identifier: Apache-2.0
"""What every experiment has: options, the head of its result, and the file that this goes into."""

import argparse
import json
import os
import subprocess

from origin import origin

HERE = os.path.dirname(os.path.abspath(__file__))


def read_arguments(usage, networks=None, program="starling", **others):
    """--out and --program; with `networks`, which are those by default, --zoo and --only; `others`: {name: default}, of the default's type."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    if networks:
        parser.add_argument("--zoo", required=True, metavar="DIR", help="take the networks from DIR, as NAME.onnx (required)")
        parser.add_argument("--only", default=networks, metavar="NAMES", help="measure the networks NAMES (default: %(default)s)")
    for name, default in others.items():
        parser.add_argument(
            f"--{name}", type=type(default), default=default, metavar="VALUE",
            help=f"set the experiment's {name} to VALUE (default: %(default)s)",
        )
    parser.add_argument("--out", metavar="FILE", help="write the result to FILE as JSON (default: none)")
    parser.add_argument(
        "--program", default=os.path.join(HERE, "..", "..", "build", "release", "bin", program), metavar="FILE",
        help="run the build FILE of the program (default: %(default)s)",
    )
    return parser.parse_args()


def run_json(command):
    """What a command prints, as JSON."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(ended.stderr.strip())
    return json.loads(ended.stdout)


LONGEST_SATURATED = 8.0  # seconds


def answered(measure, seconds):
    """What measure(seconds) says; where that is nothing, since a busy machine answered nothing, it is asked again for four times as long."""
    while True:
        try:
            said = measure(seconds)
        except RuntimeError as error:
            if "no request was answered" not in str(error):
                raise
            said = None
        if said:
            return said
        if seconds > LONGEST_SATURATED:
            raise RuntimeError(f"no request was answered in {seconds:g} s")
        seconds *= 4


def head(name, live=True):
    """What a result of NAME.py begins with."""
    return {"benchmark": name, **origin(f"perf/papers/papers.sh {name}"), "cpus": sorted(os.sched_getaffinity(0)), "live": live}


def write(result, path):
    """Nowhere without a path."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(result, indent=1) + "\n")
