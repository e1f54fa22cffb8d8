# SPDX-License-Identifier: Apache-2.0
"""Where the members of an ensemble run best on the cores of this machine: the ensemble paper's algorithms beside ours, served and measured.

    live.py [--zoo DIR --only NAME,NAME,...] [--batches N,...] [--seconds S] [--out FILE.json] [--program FILE]

Without --zoo the ensemble is that of the five digits networks. Each core is a device. What a member costs is profiled first, then a runtime
serves the ensemble as it is configured, under ours, WFD (A1) and BGO (A2), in turns: all are candidates, and the median of their turns counts,
with its 95 % interval. BBS wants a GPU for each model and says so here. Nothing of it is kept for the user's own runtime. Sources: Pochelu,
Petiton, Conche 2022, tables I and II, which are of GPUs: nothing of them is comparable.
"""

import os
import re
import subprocess
import sys
import tempfile

import experiment
from runtime import write_repository

DIGITS = os.path.join(experiment.HERE, "..", "..", "client", "examples", "digits", "models", "digits")
ROW = re.compile(r"^(configured|[\dA-Z][\dA-Z, ]*?)\s+(-|[\d.]+)\s+([\d.]+)\s+(?:([\d.]+) - +([\d.]+)|too few turns)\s+(\d+)\b")


def optimize(options, folder):
    command = [options.program, "optimize", folder, "--again", "--confirm", "3", "--batches", options.batches, "--seconds",
               str(options.seconds)]  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        own = dict(os.environ, XDG_DATA_HOME=home, XDG_CACHE_HOME=home)
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=own)
    if process.returncode:
        sys.exit(f"live.py: starling optimize ended with status {process.returncode}")
    return process.stdout


def rows_of(output):
    """Of each name; an allocation that two have found has a row for both."""
    rows = {}
    for line in output.splitlines():
        row = ROW.match(line)
        if row:
            figures = {"computed_per_s": None if row[2] == "-" else float(row[2]), "measured_per_s": float(row[3]),
                       "interval_per_s": [float(row[4]), float(row[5])] if row[4] else None, "turns": int(row[6])}  # fmt: skip
            for name in row[1].split(", "):
                rows[f"ours {name}" if name.isdigit() else name] = figures
    return rows


def main():
    options = experiment.read_arguments(__doc__, zoo="", only="", batches="1,8,32", seconds=5.0)
    if options.zoo:
        names = options.only.split(",")
        with tempfile.TemporaryDirectory() as repository:
            paths = {name: os.path.join(options.zoo, name + ".onnx") for name in names}
            write_repository(repository, paths, {"ensemble": names})
            output = optimize(options, os.path.join(repository, "ensemble"))
    else:
        names, output = ["digits"], optimize(options, DIGITS)
    print(output, end="")
    rows = rows_of(output)
    ours = max(row["measured_per_s"] for name, row in rows.items() if name.startswith("ours"))
    result = {**experiment.head("live"), "ensemble": names, "batches": options.batches, "rows": rows}
    result["ours_over"] = {name: round(ours / rows[name]["measured_per_s"], 3) for name in ("configured", "WFD", "BGO") if name in rows}
    print("ours over", result["ours_over"])
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
