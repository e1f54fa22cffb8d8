# SPDX-License-Identifier: Apache-2.0
"""E2bird's diurnal load on this processor: 400 requests, 150 at a low rate and then 250 at a high one, for each policy of batching.

    diurnal.py --zoo DIR [--only NAME,NAME] [--low 0.2] [--high 0.9] [--repeats 3] [--saturated 3] [--out FILE.json] [--program FILE]

Sources: E2bird, section 8.2 and figure 13. Live: one runtime serves a network once for each way of elastic.py, and as E-Ebird with the paper's rows; each
is asked in turn, by this process, for the same Poisson arrivals of one sample each. Rates are shares of what two workers answer with 32 requests in
flight. A latency counts from when its request was due. Medians of repeats.
"""

import random
import statistics
import threading
import time

import elastic
import experiment
import memory
import numpy as np
from runtime import Runtime

REQUESTS = (150, 250)
SLOTS = 64  # inputs, reused in turn
QOS_MS = 200
ELASTIC = ("n_ebird", "e_ebird")
WAYS = {
    **elastic.WAYS,
    "e_ebird": 'batch_sizes: [1, 2, 4, 4, 8, 8, 16]\nbatching: e_ebird\nbatching_rows: ["0,0,1", "0,0,0,1", "0,0,2,1", "0,0,0,2,1"]\n',
}


def arrivals(rates, seed):
    """Seconds after the start."""
    dice, at, due = random.Random(seed), 0.0, []
    for rate, n in zip(rates, REQUESTS):
        for _ in range(n):
            at += dice.expovariate(rate)
            due.append(at)
    return due


class Asking:
    """One way's answers to arrivals, in milliseconds."""

    def __init__(self, client, way, shape):
        self.client, self.way, self.left = client, way, threading.Semaphore(0)
        self.inputs = [client.empty((1, *shape), np.float32) for _ in range(SLOTS)]
        for x in self.inputs:
            x[:] = 0.5

    def warm(self):
        for future in [self.client.submit(self.way, x) for x in self.inputs]:
            future.result()

    def run(self, due):
        took, begun = [None] * len(due), time.perf_counter() + 0.05
        for i, at in enumerate(due):
            while (left := begun + at - time.perf_counter()) > 0:
                time.sleep(left)
            self.client.submit(self.way, self.inputs[i % SLOTS]).add_done_callback(self.stamp(took, i, begun + at))
        for _ in due:
            self.left.acquire()
        return took

    def stamp(self, took, i, due):
        def done(future):
            took[i] = None if future.exception() else 1e3 * (time.perf_counter() - due)
            self.left.release()

        return done


def figures(took):
    """Of one phase; one that failed is an error of the whole run."""
    if None in took:
        raise RuntimeError(f"{took.count(None)} of {len(took)} requests failed")
    ordered = sorted(took)
    return {"mean_ms": statistics.mean(took), "p50_ms": ordered[len(took) // 2], "p99_ms": ordered[int(0.99 * len(took) + 0.999) - 1],
            "within_qos": sum(ms <= QOS_MS for ms in took) / len(took)}  # fmt: skip


def phases(took):
    return [figures(took[: REQUESTS[0]]), figures(took[REQUESTS[0] :])]


def median(runs):
    return [{key: round(statistics.median(run[i][key] for run in runs), 3) for key in runs[0][i]} for i in range(2)]


def ask(options, client, path, rates):
    made = {}
    for way in WAYS:
        asking = Asking(client, way, memory.input_shape(path))
        asking.warm()
        took = [asking.run(arrivals(rates, seed)) for seed in range(options.repeats)]
        made[way] = {"phases": median([phases(run) for run in took]), "latencies_ms": " ".join(f"{ms:.1f}" for ms in took[0])}
        low, high = made[way]["phases"]
        print(f"{way:16} | {low['mean_ms']:9.1f} {low['p50_ms']:7.1f} {low['p99_ms']:7.1f} | {high['mean_ms']:10.1f} {high['p50_ms']:7.1f} {high['p99_ms']:7.1f} "
              f"{high['within_qos']:6.1%}", flush=True)  # fmt: skip
    return made


def measure(options, network):
    path = f"{options.zoo}/{network}.onnx"
    wait_us = elastic.opt_wait_us(options, path)
    runtime = Runtime(options.program, {way: path for way in WAYS}, configs=elastic.configs_of(WAYS, wait_us))
    try:
        with runtime.connect() as client:
            capacity = elastic.saturated(options, runtime)
            rates = [options.low * capacity, options.high * capacity]
            print(f"{network}: {REQUESTS[0]} requests at {rates[0]:.1f}/s, {REQUESTS[1]} at {rates[1]:.1f}/s; live, ms\n"
                  f"{'':16} | {'low: mean':>9} {'p50':>7} {'p99':>7} | {'high: mean':>10} {'p50':>7} {'p99':>7} in {QOS_MS} ms")  # fmt: skip
            made = ask(options, client, path, rates)
    finally:
        runtime.close()
    high = {way: figures["phases"][1]["mean_ms"] for way, figures in made.items()}
    best = min(high, key=high.get)
    pays = best in ELASTIC
    print(f"workers of several sizes {'pay' if pays else 'do not pay'} here: the least mean at the high rate is {best}'s")
    return {"network": network, "capacity_per_second": capacity, "rates": rates, "opt_wait_us": wait_us, "elastic_pays": pays, "ways": made}


def main():
    options = experiment.read_arguments(__doc__, "mobilenetv2,resnet18", low=0.2, high=0.9, repeats=3, saturated=3.0, warmup=0.5)
    result = {**experiment.head("diurnal"), "slice": elastic.SLICE, "ways": WAYS, "repeats": options.repeats}
    result["networks"] = [measure(options, network) for network in options.only.split(",")]
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
