# SPDX-License-Identifier: Apache-2.0
"""How far the simulator is from the runtime: the same arrivals, replayed on both.

    fidelity.py --zoo DIR --digits DIR [--only WORKLOAD,...] [--loads 0.3,0.6,0.9] [--seconds S] [--repeats N] [--out FILE.json]
    fidelity.py --table FILE.json

For each workload and load: the workers are profiled (`starling profile`, whose export is the simulator's costs), a runtime is started with the
dispatcher and this client on one core and the workers on another, what a request takes beside its networks is measured at a third of the capacity
with arrivals of which none waits, and a Poisson trace is replayed on the runtime as often as --repeats says, and once on the simulator. Load is a share of what
the profile says that the worker core can do. With --out the points that the file has of other workloads and loads stay.

What others on the machine compute meanwhile disturbs both: a profile or a replay beside which they took more than a twentieth of a core is done
again, at most --tries times; the least disturbed one counts, and its share is kept.

The goal: p50, p99 and throughput within 10 % of the live mean at 30 and 60 %, within the 95 % interval of the live repeats (Student's) at 90 %.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

from origin import origin
from runtime import Runtime

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.join(HERE, "..", "..", "build", "release", "bin")
DIGITS = ["lenet", "resnet", "densenet", "mobilenet", "mlp"]
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
DISTURBED = 0.05
FIGURES = ["p50_ms", "p99_ms", "per_second"]
WORKLOADS = {  # served: {name: samples of a request}, asked for alike
    "digits": {"models": DIGITS, "ensembles": {"digits": DIGITS}, "served": {"digits": 32}},
    "mobilenetv2": {"models": ["mobilenetv2"], "ensembles": {}, "served": {"mobilenetv2": 1}},
    "resnet18": {"models": ["resnet18"], "ensembles": {}, "served": {"resnet18": 1}},
    "resnet50": {"models": ["resnet50"], "ensembles": {}, "served": {"resnet50": 1}},
    "mix": {"models": ["mobilenetv2", "resnet18", "resnet50"], "ensembles": {}, "served": {"mobilenetv2": 1, "resnet18": 1, "resnet50": 1}},
}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", metavar="DIR", help="take mobilenetv2, resnet18 and resnet50 from DIR (default: none)")
    parser.add_argument("--digits", metavar="DIR", help="take the digits networks from the repository DIR (default: none)")
    parser.add_argument("--only", default=",".join(WORKLOADS), metavar="NAMES", help="compare on the workloads NAMES (default: %(default)s)")
    parser.add_argument("--loads", default="0.3,0.6,0.9", metavar="X,...", help="offer X times the capacity (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=15, metavar="SECONDS", help="replay for SECONDS seconds (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="replay N times against the runtime (default: %(default)s)")
    parser.add_argument("--requests-max", type=int, default=1000, metavar="N", help="replay at most N requests (default: %(default)s)")
    parser.add_argument("--tries", type=int, default=3, metavar="N", help="try N times where other processes disturb (default: %(default)s)")
    parser.add_argument("--out", metavar="FILE", help="write the result to FILE as JSON (default: none)")
    parser.add_argument("--table", metavar="FILE", help="print the table of the result FILE and measure nothing (default: none)")
    return parser.parse_args()


def path_of(options, model):
    return os.path.join(options.digits, model, "1", "model.onnx") if model in DIGITS else os.path.join(options.zoo, model + ".onnx")


class Bed:
    """A workload's costs, and the command lines of both sides."""

    def __init__(self, options, workload, folder):
        self.options, self.workload, self.folder = options, WORKLOADS[workload], folder
        cpus = sorted(os.sched_getaffinity(0))
        self.near, self.far = cpus[0], cpus[-1]
        self.device = f"cpu:{self.far}"
        self.costs = os.path.join(folder, "costs.yaml")

    def profile(self):
        """Workers are measured alone: of several on one core the simulator says that they share it by time."""
        store, batches = os.path.join(self.folder, "profiles.db"), "1,2,4,8,16,32" if "digits" in self.workload["served"] else "1,2"
        models = [os.path.dirname(os.path.dirname(path_of(self.options, m))) if m in DIGITS else path_of(self.options, m) for m in self.workload["models"]]
        command = [f"{BIN}/starling", "profile", *models, "--devices", self.device, "--batches", batches, "--seconds", "2", "--store", store, "--again"]
        _, self.disturbed = undisturbed(self.options.tries, lambda: run(command))
        run([f"{BIN}/starling", "profile", "export", "--store", store, "-o", self.costs])

    def configuration(self):
        path = os.path.join(self.folder, "runtime.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"threads:\n  dispatcher_cores: [{self.near}]\n  worker_cores: [{self.far}]\n")
        return path

    def simulate(self, trace, own="taken=0"):
        batch = "32" if "digits" in self.workload["served"] else "1"
        return replay(trace, self.folder, ["--costs", self.costs, "--device", self.device, "--own", own,
                      *(word for m in self.workload["models"] for word in ("--worker", f"{m}={batch}")),
                      *(word for name, members in self.workload["ensembles"].items() for word in ("--ensemble", f"{name}={','.join(members)}"))])  # fmt: skip

    def ask(self, runtime, trace):
        return replay(trace, self.folder, ["--runtime", runtime.socket], ["taskset", "-c", str(self.near)])


def busy_seconds():
    """Of all processors; of this process' children that have ended."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    children = os.times()
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"), children.children_user + children.children_system


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def undisturbed(tries, work, pid=None):
    """What @work returns when others took no more than DISTURBED of a core meanwhile, and their share."""
    best = None
    for _ in range(tries):
        begun, (all_before, own_before), theirs = time.monotonic(), busy_seconds(), cpu_seconds(pid) if pid else 0
        result = work()
        all_after, own_after = busy_seconds()
        others = all_after - all_before - (own_after - own_before) - (cpu_seconds(pid) - theirs if pid else 0)
        share = max(0, others) / (time.monotonic() - begun)
        if best is None or share < best[1]:
            best = (result, share)
        if share <= DISTURBED:
            break
    return best


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout


def replay(trace, folder, arguments, before=()):
    """A dictionary for each request."""
    path = os.path.join(folder, "trace")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# starling trace 1\n")
        file.writelines(f"{due} {name} {samples}\n" for due, name, samples in trace)
    lines = run([*before, f"{BIN}/bench-fidelity", "--trace", path, *arguments]).splitlines()
    keys = lines[0].split()
    rows = [dict(zip(keys, line.split())) for line in lines[1:]]
    return [{key: value if key == "model" else int(value) for key, value in row.items()} for row in rows]


def poisson(served, rate, n, seed):
    dice, at, trace = random.Random(seed), 0.0, []
    for _ in range(n):
        at += dice.expovariate(rate)
        name = dice.choice(list(served))
        trace.append((int(at * 1e9), name, served[name]))
    return trace


def apart(served, gap_ns, n):
    """In turns, so far apart that none waits for another."""
    names = list(served)
    return [(gap_ns * (i + 1), names[i % len(names)], served[names[i % len(names)]]) for i in range(n)]


def median_of(rows, name, figure):
    return statistics.median(figure(row) for row in rows if row["model"] == name)


def service_ns(bed):
    """What a request takes as the profile says."""
    served = bed.workload["served"]
    rows = bed.simulate(apart(served, 10**10, len(served)))
    return statistics.mean(row["latency_ns"] for row in rows)


def calibrate(bed, runtime, alone_ns):
    """What a request takes beside its networks, of requests that wait for nobody: medians by model, their means."""
    served = bed.workload["served"]
    trace = apart(served, int(3 * alone_ns), max(12, min(200, int(4e9 / (3 * alone_ns)))))
    live, simulated = bed.ask(runtime, trace), bed.simulate(trace)
    stages = ["queued_ns", "batched_ns", "computing_ns", "combining_ns"]

    def mean(figure):
        return statistics.mean(median_of(live, name, figure) for name in served)

    hop, told = mean(lambda row: row["batched_ns"]), mean(lambda row: row["latency_ns"] - sum(row[stage] for stage in stages))
    beside = mean(lambda row: row["latency_ns"]) - statistics.mean(median_of(simulated, name, lambda row: row["latency_ns"]) for name in served) - hop - told
    jobs = max(len(members) for members in [*bed.workload["ensembles"].values(), [None]])
    return {"hop": round(hop), "wake": max(0, round(beside / jobs)), "told": max(0, round(told)), "wake_not_clamped": round(beside / jobs)}


def quantile(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def figures(rows):
    answered = [row for row in rows if row["status"] == 0]
    latencies = [row["latency_ns"] for row in answered]
    last = max(row["due_ns"] + row["latency_ns"] for row in answered)
    return {"p50_ms": quantile(latencies, 0.5) / 1e6, "p99_ms": quantile(latencies, 0.99) / 1e6,
            "per_second": len(answered) * 1e9 / (last - rows[0]["due_ns"])}  # fmt: skip


def interval(values):
    if len(values) < 2:
        return None
    half = STUDENT[min(len(values) - 2, len(STUDENT) - 1)] * statistics.stdev(values) / math.sqrt(len(values))
    return [statistics.mean(values) - half, statistics.mean(values) + half]


def measure(options, workload, loads):
    """A point for each load, all beside one profile and one runtime."""
    with tempfile.TemporaryDirectory(prefix="starling-fidelity-") as folder:
        bed = Bed(options, workload, folder)
        bed.profile()
        alone_ns = service_ns(bed)
        runtime = Runtime(f"{BIN}/starling", {m: path_of(options, m) for m in bed.workload["models"]}, bed.workload["ensembles"],
                          arguments=["--config", bed.configuration()])  # fmt: skip
        runtime.connect().close()
        try:
            own, _ = undisturbed(options.tries, lambda: calibrate(bed, runtime, alone_ns), runtime.process.pid)
            return [{"workload": workload, "load": load, "request_alone_ms": alone_ns / 1e6, "own_ns": own, "profile_others_share": bed.disturbed,
                     **measure_load(bed, runtime, own, load, load * 1e9 / alone_ns)} for load in loads]  # fmt: skip
        finally:
            runtime.close()


def measure_load(bed, runtime, own, load, rate):
    options = bed.options
    trace = poisson(bed.workload["served"], rate, max(20, min(options.requests_max, int(rate * options.seconds))), 7)
    replays = [undisturbed(options.tries, lambda: bed.ask(runtime, trace), runtime.process.pid) for _ in range(options.repeats)]
    live = [figures(rows) for rows, _ in replays]
    simulated = figures(bed.simulate(trace, ",".join(f"{key}={own[key]}" for key in ("hop", "wake", "told"))))
    return {"requests": len(trace), "rate_per_second": rate, "others_share": [share for _, share in replays],
            "figures": {key: compare(simulated[key], [one[key] for one in live], load) for key in FIGURES}}  # fmt: skip


def compare(simulated, live, load):
    mean, within = statistics.mean(live), interval(live)
    error = simulated / mean - 1
    met = within is not None and within[0] <= simulated <= within[1] if load > 0.75 else abs(error) <= 0.1
    return {"simulated": simulated, "live": live, "interval": within, "error": error, "met": met}


def show(result):
    print("workload      load     n  figure        simulated       live   |error|  95 % interval of the repeats   goal")
    for point in result["points"]:
        for key in FIGURES:
            one = point["figures"][key]
            within = "{:.4g} to {:.4g}".format(*one["interval"]) if one["interval"] else "-"
            print(f"{point['workload']:12} {point['load']:5.0%} {point['requests']:5}  {key:10} {one['simulated']:12.4g} {statistics.mean(one['live']):10.4g} "
                  f"{abs(one['error']):8.1%}   {within:30} {'met' if one['met'] else 'MISSED'}")  # fmt: skip
    met = [one["met"] for point in result["points"] for one in point["figures"].values()]
    print(f"{sum(met)} of {len(met)} goals met")


def main():
    options = read_arguments()
    if options.table:
        with open(options.table, encoding="utf-8") as file:
            return show(json.load(file))
    result = {"benchmark": "fidelity", **origin("perf/fidelity/fidelity.sh"), "points": []}
    for workload in options.only.split(","):
        result["points"] += measure(options, workload, [float(load) for load in options.loads.split(",")])
        if options.out:
            keep_others(result, options.out)
            with open(options.out, "w", encoding="utf-8") as file:
                file.write(json.dumps(result, indent=1) + "\n")
    return show(result)


def keep_others(result, path):
    """Points of earlier calls, in the order of the workloads."""
    new = {(point["workload"], point["load"]) for point in result["points"]}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            result["points"] += [point for point in json.load(file)["points"] if (point["workload"], point["load"]) not in new]
    result["points"].sort(key=lambda point: (list(WORKLOADS).index(point["workload"]), point["load"]))


if __name__ == "__main__":
    main()
