# SPDX-License-Identifier: Apache-2.0
"""What a cold load costs: its time beside ONNX Runtime's, in turns, and the memory of the process that compiles.

    cold.py --models PATH... --out FILE [--only A,B] [--rounds N] [--threads N] [--program FILE] [--library FILE]

PATH is an ONNX file or a folder of them. A runtime without a cache of plans serves them; one round of a model is a load by an administrator,
`tune: off` and else by default, from the request to its answer; the same while its children are looked at; and a session of ONNX Runtime in a
process that runs; each of the three after 50 ms in which nothing happens. A load ends when a worker has computed a sample:
`onnxruntime_answer_s` is a session with its first answer, too. Files are in the page cache. Medians of the rounds, after one that does not
count. Rows of a file that is there stay, but for those of the models that are measured.
"""

import argparse
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import time

import starling
from children import Peak
from origin import origin
from runtime import Runtime, write_repository

MEGABYTE = 1000 * 1000
GOAL_SHARE, GOAL_FREE_BYTES = 0.3, 100 * MEGABYTE
PAUSE_SECONDS = 0.05


class Session:
    """ONNX Runtime in a process of its own, which makes sessions when it is told to."""

    def __init__(self, threads):
        self.threads = threads
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "session.py")
        self.process = subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.process.stdout.readline().strip()

    def create(self, path):
        time.sleep(PAUSE_SECONDS)
        self.process.stdin.write(f"{path} {self.threads}\n")
        self.process.stdin.flush()
        made, answered = self.process.stdout.readline().split()
        return float(made), float(answered)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed_load(client, name):
    time.sleep(PAUSE_SECONDS)
    begun = time.perf_counter()
    client.load(name)
    seconds = time.perf_counter() - begun
    client.unload(name)
    return seconds


def plan_bytes(options, path):
    """As `starling compile` writes it."""
    plan = f"{options.out}.plan"
    subprocess.run([options.program, "compile", path, "-o", plan, "-O", "tune=off"], check=True, stderr=subprocess.DEVNULL)
    size = os.path.getsize(plan)
    os.unlink(plan)
    return size


def measure_model(options, runtime, client, session, name, path):
    ours, theirs, answers, peaks, samples = [], [], [], [], 0
    for number in range(options.rounds + 1):
        made, answered = session.create(path)
        theirs.append(made)
        answers.append(answered)
        ours.append(timed_load(client, name))
        with Peak(runtime.process.pid) as peak:
            timed_load(client, name)
        peaks.append(peak.bytes)
        samples += peak.samples
        if not number:
            ours, theirs, answers = [], [], []
    plan, weights = plan_bytes(options, path), os.path.getsize(path)
    bound = plan + GOAL_SHARE * weights + GOAL_FREE_BYTES
    row = {"model": name, "file_mb": round(weights / MEGABYTE, 1), "plan_mb": round(plan / MEGABYTE, 1), "private_peak_mb": round(max(peaks) / MEGABYTE, 1)}  # fmt: skip
    row |= {"peak_mb": round((max(peaks) + plan) / MEGABYTE, 1), "peak_goal_mb": round(bound / MEGABYTE, 1), "samples": samples}
    row |= {"load_s": round(statistics.median(ours), 4), "onnxruntime_s": round(statistics.median(theirs), 4)}
    row |= {"load_best_s": round(min(ours), 4), "onnxruntime_best_s": round(min(theirs), 4)}
    row["onnxruntime_over_load"] = round(row["onnxruntime_s"] / row["load_s"], 2)
    answer = statistics.median(answers)
    if not math.isnan(answer):
        row |= {"onnxruntime_answer_s": round(answer, 4), "onnxruntime_answer_over_load": round(answer / row["load_s"], 2)}
    row["missed"] = [goal for goal, met in (("memory", max(peaks) + plan <= bound), ("time", row["load_s"] <= row["onnxruntime_s"])) if not met]
    return row


def find_models(options):
    files = [file for path in options.models for file in (sorted(glob.glob(os.path.join(path, "*.onnx"))) if os.path.isdir(path) else [path])]
    named = {os.path.splitext(os.path.basename(file))[0]: os.path.abspath(file) for file in files}
    return {name: path for name, path in named.items() if not options.only or name in options.only.split(",")}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", required=True, metavar="PATH", help="load each PATH, an ONNX file or a folder of them (required)")
    parser.add_argument("--out", required=True, metavar="FILE", help="write the result to FILE as JSON (required)")
    parser.add_argument("--only", default="", metavar="NAMES", help="measure the models NAMES alone, separated by commas (default: all)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="take medians of N rounds (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="give ONNX Runtime N threads (default: %(default)s)")
    parser.add_argument("--program", default="build/release/bin/starling", metavar="FILE", help="measure the command FILE (default: %(default)s)")
    parser.add_argument("--library", default="build/release/lib/libstarling.so", metavar="FILE", help="load the library FILE (default: %(default)s)")
    options = parser.parse_args()
    options.program, options.out = os.path.abspath(options.program), os.path.abspath(options.out)
    os.environ["STARLING_LIBRARY"] = os.path.abspath(options.library)
    return options


def rows_before(options, models):
    if not os.path.exists(options.out):
        return []
    with open(options.out, encoding="utf-8") as file:
        return [row for row in json.load(file)["models"] if row["model"] not in models]


def measure(options, models):
    config = f"{options.out}.yaml"
    with open(config, "w", encoding="utf-8") as file:
        file.write("cache: {bytes: 0}\n")
    session = Session(options.threads)
    runtime = Runtime(options.program, {}, arguments=("--config", config))
    try:
        client = runtime.connect(role="admin")
        write_repository(os.path.join(runtime.folder, "models"), models, {}, configs={name: "" for name in models})
        yield {"onnxruntime": session.version}
        for name, path in models.items():
            yield measure_model(options, runtime, client, session, name, path)
    finally:
        session.close()
        runtime.close()
        os.unlink(config)


def write(path, report):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


def main():
    options = read_arguments()
    models = find_models(options)
    report = {**origin("perf/cold/cold.sh"), "rounds": options.rounds, "threads": options.threads}
    rows = measure(options, models)
    report |= next(rows) | {"models": rows_before(options, models)}
    for row in rows:
        row |= {"date": origin("")["date"], "load_average": os.getloadavg()}
        report["models"].append(row)
        print(json.dumps(row), flush=True)
        write(options.out, report)


if __name__ == "__main__":
    main()
