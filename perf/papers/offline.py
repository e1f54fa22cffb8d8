# SPDX-License-Identifier: Apache-2.0
"""Offline work beside requests (INFaaS, section 6.3.2): what each rule of `starling offline` makes of idle cores, and what requests see.

    offline.py [--seconds S] [--settle S] [--rounds N] [--rate N] [--samples N]
               [--out FILE.json] [--program FILE]

One runtime serves LeNet and ResNet of the digits. Requests for LeNet come as a Poisson process; a latency counts from when a request was
due. In turns nothing runs beside them, or an offline job of ResNet by the rule none, infaas or starling. Each job has --settle seconds
before it is measured. Used of the idle time: what the runtime has computed in the background, of that and what the host's cores were idle.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time

import numpy as np

import experiment
from runtime import Runtime

DIGITS = os.path.join(experiment.HERE, "..", "..", "client", "examples", "digits", "models")
RULES = ["alone", "none", "infaas", "starling"]
TICK = os.sysconf("SC_CLK_TCK")


def host_idle():
    with open("/proc/stat", encoding="utf-8") as file:
        fields = file.readline().split()
    return (int(fields[4]) + int(fields[5])) / TICK


def background(options, runtime):
    """Seconds that lets have computed of it."""
    said = subprocess.run([options.program, "stats", "--json", runtime.name], capture_output=True, text=True, check=True, env=environment(runtime))
    return sum(let["background_ns"] for let in json.loads(said.stdout)["lets"]) / 1e9


def environment(runtime):
    return dict(os.environ, STARLING_SOCKET_DIR=runtime.folder, XDG_STATE_HOME=os.path.join(runtime.folder, "state"))


def ask(client, rate, seconds, dice):
    image, latencies = client.empty((1, 1, 8, 8), np.float32), []
    image[:] = 0.5
    due = time.perf_counter()
    until = due + seconds
    while (due := due + dice.expovariate(rate)) < until:
        if (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        client.infer("lenet", image)
        latencies.append((time.perf_counter() - due) * 1e3)
    return latencies


def offline(options, runtime, *arguments):
    command = [options.program, "offline", "--name", runtime.name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment(runtime)).stdout.strip()


def turn(options, runtime, client, rule, files, dice):
    job = offline(options, runtime, "--rule", rule, "submit", "resnet", *files) if rule != "alone" else None
    ask(client, options.rate, options.settle if job else 1, dice)
    idle, computed = host_idle(), background(options, runtime)
    done = json.loads(offline(options, runtime, "list", "--json"))[0]["done"] if job else 0
    latencies = sorted(ask(client, options.rate, options.seconds, dice))
    idle, computed = host_idle() - idle, background(options, runtime) - computed
    if job:
        state = json.loads(offline(options, runtime, "list", "--json"))[0]
        done = state["done"] - done
        offline(options, runtime, "cancel", job)
        if state["state"] != "running":
            raise RuntimeError(f"the job is {state['state']}: {state['why']}")
    return {"p50_ms": statistics.median(latencies), "p99_ms": latencies[int(0.99 * (len(latencies) - 1))], "requests": len(latencies),
            "used_of_idle": computed / (computed + idle) if computed + idle else 0, "samples_per_s": done / options.seconds}  # fmt: skip


def measure(options, runtime, folder):
    files = [os.path.join(folder, "in.npy"), os.path.join(folder, "out.npy")]
    np.save(files[0], np.full((options.samples, 1, 8, 8), 0.5, np.float32))
    dice, turns = random.Random(1), {rule: [] for rule in RULES}
    with runtime.connect() as client:
        for _ in range(options.rounds):
            for rule in RULES:
                turns[rule].append(turn(options, runtime, client, rule, files, dice))
    result = {}
    for rule in RULES:
        result[rule] = {key: round(statistics.median(t[key] for t in turns[rule]), 4) for key in turns[rule][0]}
        ratios = [mine["p99_ms"] / alone["p99_ms"] for mine, alone in zip(turns[rule], turns["alone"])]
        result[rule]["p99_over_alone"] = round(statistics.median(ratios), 3)
        result[rule]["p99_over_alone_of_turns"] = [round(ratio, 2) for ratio in ratios]
    return result


def main():
    options = experiment.read_arguments(__doc__, seconds=8.0, settle=20.0, rounds=3, rate=200, samples=4_000_000)
    paths = {name: os.path.join(DIGITS, name, "1", "model.onnx") for name in ("lenet", "resnet")}
    runtime, folder = Runtime(options.program, paths), tempfile.mkdtemp(prefix="starling-offline-")
    try:
        result = {**experiment.head("offline"), "rate": options.rate, "seconds": options.seconds, **measure(options, runtime, folder)}
    finally:
        runtime.close()
        shutil.rmtree(folder)
    print(json.dumps(result, indent=1))
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
