# SPDX-License-Identifier: Apache-2.0
"""Where the members of an ensemble run best on the cores of this machine: the ensemble paper's algorithms beside ours, served and measured.

    live.py [--zoo DIR --only NAME,NAME,...] [--batches N,...] [--seconds S] [--out FILE.json] [--program FILE]

Without --zoo the ensemble is that of the five digits networks. Each core is a device. What a member costs is profiled first, then a runtime
serves the ensemble as it is configured, under ours, WFD (A1) and BGO (A2), each in five rounds of which the median counts. BBS wants a GPU
for each model and says so here. Sources: Pochelu, Petiton, Conche 2022, tables I and II, which are of GPUs: nothing of them is comparable.
"""

import os
import re
import subprocess
import sys
import tempfile

import experiment
from runtime import write_repository

DIGITS = os.path.join(experiment.HERE, "..", "..", "client", "examples", "digits", "models", "digits")
ROW = re.compile(r"^\s*(-|\d+|WFD|BGO)\s+(configured|[\d.]+)\s+([\d.]+)\s+(?:(-?[\d.]+) %\s+)?([\d.]+) %")


def optimize(options, folder):
    command = [options.program, "optimize", folder, "--again", "--baselines", "--confirm", "3", "--batches", options.batches, "--seconds",
               str(options.seconds)]  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=dict(os.environ, XDG_DATA_HOME=home))
    if process.returncode:
        sys.exit(f"live.py: starling optimize ended with status {process.returncode}")
    return process.stdout


def rows_of(output):
    rows = {}
    for line in output.splitlines():
        row = ROW.match(line)
        if row:
            name = {"-": "configured"}.get(row[1], f"ours {row[1]}" if row[1].isdigit() else row[1])
            rows[name] = {"computed_per_s": None if row[2] == "configured" else float(row[2]), "measured_per_s": float(row[3]),
                          "rsd_percent": float(row[5])}  # fmt: skip
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
