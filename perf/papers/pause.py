# SPDX-License-Identifier: Apache-2.0
"""What a client sees while an allocation takes the place of another: latencies without and with changes, and what a change takes.

    pause.py [--seconds S] [--every S] [--samples N] [--out FILE.json] [--program FILE]

One runtime serves the five digits networks and their ensemble as it does by default; one client asks the ensemble, one request after the
other, while an administrator moves all workers back and forth between two allocations. New workers are ready before old ones leave, so that
nothing should be lost; how much later answers come shows in the quantiles. The ensemble paper's deploy mode starts anew instead (section II.C).
"""

import json
import os
import statistics
import threading
import time

import numpy as np

import experiment
from runtime import Runtime

DIGITS = os.path.join(experiment.HERE, "..", "..", "client", "examples", "digits", "models")
MEMBERS = ["lenet", "resnet", "densenet", "mobilenet", "mlp"]
ONE = [(name, "cpu", 32) for name in MEMBERS]
OTHER = [(name, "cpu", batch) for name in MEMBERS for batch in (8, 1)]


def ask(client, samples, until):
    """Latencies in milliseconds; any request that fails ends the measurement."""
    images, latencies = client.empty((samples, 1, 8, 8), np.float32), []
    images[:] = 0.5
    while time.monotonic() < until:
        begun = time.perf_counter()
        client.infer("digits", images)
        latencies.append((time.perf_counter() - begun) * 1e3)
    return latencies


def change(admin, every, until, took):
    for turn in range(1 << 30):
        if time.monotonic() >= until:
            return
        begun = time.perf_counter()
        admin.apply(OTHER if turn % 2 == 0 else ONE)
        took.append((time.perf_counter() - begun) * 1e3)
        time.sleep(every)


def figures(values):
    ordered = sorted(values)
    return {"n": len(ordered), "p50_ms": round(statistics.median(ordered), 3), "p99_ms": round(ordered[int(0.99 * (len(ordered) - 1))], 3),
            "max_ms": round(ordered[-1], 3)}  # fmt: skip


def measure(options, runtime):
    with runtime.connect() as client, runtime.connect(role="admin") as admin:
        ask(client, options.samples, time.monotonic() + 1)
        before = ask(client, options.samples, time.monotonic() + options.seconds)
        until, took = time.monotonic() + options.seconds, []
        changer = threading.Thread(target=change, args=(admin, options.every, until, took))
        changer.start()
        during = ask(client, options.samples, until)
        changer.join()
        after = ask(client, options.samples, time.monotonic() + options.seconds)
    return {"before": figures(before), "during": figures(during), "after": figures(after), "change": figures(took)}


def main():
    options = experiment.read_arguments(__doc__, seconds=10.0, every=0.1, samples=32)
    paths = {name: os.path.join(DIGITS, name, "1", "model.onnx") for name in MEMBERS}
    runtime = Runtime(options.program, paths, {"digits": MEMBERS})
    try:
        result = {**experiment.head("pause"), "samples": options.samples, "every_s": options.every, **measure(options, runtime)}
    finally:
        runtime.close()
    print(json.dumps(result, indent=1))
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
