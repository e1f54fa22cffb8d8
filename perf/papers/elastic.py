# SPDX-License-Identifier: Apache-2.0
"""What policies of batching are worth on this processor: latency under Poisson load.

    elastic.py --zoo DIR [--only NAME,NAME] [--loads 0.3,0.6,0.9] [--seconds 8] [--saturated 3] [--warmup 0.5] [--out FILE.json] [--program FILE]

Sources: E2bird, section 3 and figure 13, requests of one sample each. Live: one runtime serves a network once for each way, and each is asked
in turn for the same arrivals; loads are shares of what two workers answer with 32 requests in flight for --saturated seconds. All ways share the same cores.
opt_wait waits for 30 ms of a ResNet152 that takes 93.7 in batches of 32 (section 3), and for the same share of what other networks take here.
No batch is cut to a slice of time here: of a network of 7 ms a sample the usual 10 ms would hold no batch at all, and the policies nothing.
"""

import json
import os
import subprocess

import experiment
from runtime import Runtime

SLICE = "slice_ms: 1000\n"
WAYS = {
    "single": "instances: 2\nbatching: single\n",
    "work_conserving": "instances: 2\n",
    "starling": "instances: 2\nbatching: starling\n",
    "opt_wait": "instances: 2\nbatching: opt_wait\nbatching_delay_us: {opt_wait_us}\n",
    "triton": "instances: 2\nbatching: triton\nbatching_delay_us: 5000\nbatching_sizes: [4, 8]\n",
    "n_ebird": "batch_sizes: [1, 1, 2, 4, 8, 16]\nbatching: n_ebird\n",
}
CAPACITY_OF = "work_conserving"
BATCH_MAX = 32  # of a worker
OPT_WAIT = 30 / 93.7  # of its largest batch


def opt_wait_us(options, path):
    """The paper's for one network, in proportion for this one on this processor."""
    command = [options.program, "profile", path, "--batch", str(BATCH_MAX), "--seconds", str(options.saturated), "--json"]
    batch_ns = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)["run_ns"]
    return max(1, round(OPT_WAIT * batch_ns / 1e3))


def configs_of(ways, wait_us):
    return {way: lines.replace("{opt_wait_us}", str(wait_us)) + SLICE for way, lines in ways.items()}


def bench(options, runtime, name, *arguments):
    command = [options.program, "bench", "load", "--runtime", runtime.socket, "--repeats", "1", "--warmup", str(options.warmup), "--json", *arguments, name]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    point = json.loads(output)["points"][0]
    figures = {key: figure["value"] for key, figure in point["figures"].items()}
    return {"valid": point["valid"], "answered": point["requests"]["answered"], "per_second": figures["requests_per_second"],
            "p50_ms": milliseconds(figures["latency_p50_ns"]), "p99_ms": milliseconds(figures["latency_p99_ns"])}  # fmt: skip


def saturated(options, runtime):
    """What two workers answer a second."""
    return experiment.answered(
        lambda seconds: bench(options, runtime, CAPACITY_OF, "--in-flight", "32", "--seconds", str(seconds))["per_second"], options.saturated
    )


def milliseconds(nanoseconds):
    """None: too few lie beyond that quantile."""
    return None if nanoseconds is None else round(nanoseconds / 1e6, 3)


def measure(options, network):
    path = os.path.join(options.zoo, network + ".onnx")
    wait_us = opt_wait_us(options, path)
    runtime = Runtime(options.program, {way: path for way in WAYS}, configs=configs_of(WAYS, wait_us))
    try:
        runtime.connect().close()
        capacity = saturated(options, runtime)
        rows = []
        for load in map(float, options.loads.split(",")):
            for way in WAYS:
                point = bench(options, runtime, way, "--rate", f"{load * capacity:.6g}", "--seconds", str(options.seconds))
                rows.append({"network": network, "load": load, "way": way, **point})
                print(f"{network:14} {load:4.0%} of {capacity:8.1f}/s {way:14} p50 {shown(point['p50_ms'])} p99 {shown(point['p99_ms'])} ms"
                      + ("" if point["valid"] else "  (not a valid run)"), flush=True)  # fmt: skip
        return {"network": network, "capacity_per_second": capacity, "opt_wait_us": wait_us, "rows": rows}
    finally:
        runtime.close()


def shown(value):
    return "       -" if value is None else f"{value:8.2f}"


def main():
    options = experiment.read_arguments(__doc__, "mobilenetv2,resnet18,resnet50", loads="0.3,0.6,0.9", seconds=8.0, saturated=3.0, warmup=0.5)
    result = {**experiment.head("elastic"), "slice": SLICE, "ways": WAYS}
    result["networks"] = [measure(options, network) for network in options.only.split(",")]
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
