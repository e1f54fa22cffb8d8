# SPDX-License-Identifier: Apache-2.0
"""MLPerf's own LoadGen asks Starling through the Python client: SingleStream, MultiStream, Offline and Server, in this order.

    mlperf.py --zoo DIR --out FILE [--models resnet50,minilm-trained] [--scenarios NAME,...] [--seconds S] [--bound-ms MS] [--qps R]

LoadGen's verdict (VALID or INVALID) and its whole summary are in the result. The rules want 600 seconds of each scenario, and 24,576 samples
of Offline; a run that is shorter asks LoadGen for less and says so (`shortened`). None is a result of MLPerf: the inputs are generated and
nothing looks at the accuracy. The bound of Server's 99th percentile is ours: ten times the 90th percentile of SingleStream, or --bound-ms;
its rate is --qps, or what --load (0.6) of Offline's rate is.
"""

import argparse
import importlib.metadata
import json
import os
import queue
import re
import shutil
import tempfile
import threading
import time

import mlperf_loadgen as loadgen
import numpy as np

import starling
from origin import origin
from runtime import Runtime

HERE = os.path.dirname(os.path.abspath(__file__))
RULE_SECONDS, RULE_SAMPLES = 600, 24576
MULTI_STREAM_SAMPLES = 8
LIBRARY_SAMPLES = 64  # of the query sample library: all of them lie in the arena
OPEN_SIZE = 128  # of a dimension that is open beside the batch: the tokens of a sequence
TOKENS = 1000  # every vocabulary of the zoo is at least as large
SCENARIOS = ["SingleStream", "MultiStream", "Offline", "Server"]


def shape_of(port, samples):
    shape = [OPEN_SIZE if size is None else size for size in port.shape]
    if port.batch_axis is not None:
        shape[port.batch_axis] = samples
    return shape


def generated(client, model, samples, random):
    """{name: array of the arena}: normal pixels, token ids, masks that hide nothing."""
    inputs = {}
    for port in model.inputs:
        array = client.empty(shape_of(port, samples), port.dtype)
        if np.issubdtype(port.dtype, np.floating):
            array[...] = random.standard_normal(array.shape)
        else:
            array[...] = 1 if "mask" in port.name else 0 if "type" in port.name else random.integers(0, TOKENS, array.shape)
        inputs[port.name] = array
    return inputs


class System:
    """What LoadGen asks: a query becomes requests of up to `batch` samples, of which at most `in_flight` are with the runtime. A query that
    finds room is sent by LoadGen's own thread, others by one that waits for room."""

    def __init__(self, client, model, batch, in_flight):
        self.client, self.model, self.batch = client, model, batch
        self.room = threading.Semaphore(in_flight)
        self.waiting = queue.SimpleQueue()
        self.failures = []
        random = np.random.default_rng(1)
        self.library = [generated(client, model, 1, random) for _ in range(LIBRARY_SAMPLES)]
        self.batches = [self._gathered(batch) for _ in range(in_flight)] if batch > 1 else []
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._send_waiting, daemon=True)
        self.thread.start()

    def _gathered(self, samples):
        return {port.name: self.client.empty(shape_of(port, samples), port.dtype) for port in self.model.inputs}

    def issue(self, samples):
        samples = [(sample.id, sample.index) for sample in samples]
        for first in range(0, len(samples), self.batch):
            part = samples[first : first + self.batch]
            if self.waiting.empty() and self.room.acquire(blocking=False):
                self._send(part)
            else:
                self.waiting.put(part)

    def _send_waiting(self):
        while (part := self.waiting.get()) is not None:
            self.room.acquire()
            self._send(part)

    def _inputs(self, part):
        """One sample is sent from where it lies; several are gathered into a place of their own, which comes back with the answer."""
        if len(part) == 1:
            return self.library[part[0][1]], None
        with self.lock:
            place = self.batches.pop()
        views = {}
        for port in self.model.inputs:
            view = place[port.name][: len(part)]
            for i, (_, index) in enumerate(part):
                view[i] = self.library[index][port.name][0]
            views[port.name] = view
        return views, place

    def _send(self, part):
        inputs, place = self._inputs(part)
        future = self.client.submit(self.model, inputs)
        future.add_done_callback(lambda future: self._done(future, part, place))

    def _done(self, future, part, place):
        if future.exception():
            self.failures.append(str(future.exception()))
        if place is not None:
            with self.lock:
                self.batches.append(place)
        self.room.release()
        loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(sample, 0, 0) for sample, _ in part])

    def close(self):
        self.waiting.put(None)
        self.thread.join()


def settings_of(scenario, seconds, expected):
    """`expected`: what earlier scenarios have found. Shortened runs ask LoadGen for less time and fewer samples."""
    settings = loadgen.TestSettings()
    settings.scenario = getattr(loadgen.TestScenario, scenario)
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms = int(seconds * 1000)
    settings.min_query_count = 1
    if scenario == "SingleStream":
        settings.single_stream_expected_latency_ns = int(expected["mean_ns"])
        settings.single_stream_target_latency_percentile = 0.9
    elif scenario == "MultiStream":
        settings.multi_stream_expected_latency_ns = int(expected["mean_ns"] * MULTI_STREAM_SAMPLES)
        settings.multi_stream_samples_per_query = MULTI_STREAM_SAMPLES
        settings.multi_stream_target_latency_percentile = 0.99
        settings.min_query_count = 662
    elif scenario == "Offline":
        settings.offline_expected_qps = expected["per_second"]
        settings.min_query_count = RULE_SAMPLES if seconds >= RULE_SECONDS else 1
    else:
        settings.server_target_qps = expected["qps"]
        settings.server_target_latency_ns = int(expected["bound_ns"])
        settings.server_target_latency_percentile = 0.99
    return settings


def summary_of(folder):
    """{key: value} of LoadGen's summary, whose lines are "key : value" or "key: value"."""
    with open(os.path.join(folder, "mlperf_log_summary.txt"), encoding="utf-8") as file:
        found = (re.match(r"\s*(.+?)\s*: (.+)", line) for line in file)
        return {match[1]: match[2].strip() for match in found if match}


def run_scenario(client, model, scenario, seconds, expected):
    batch = {"SingleStream": 1, "MultiStream": MULTI_STREAM_SAMPLES, "Offline": MULTI_STREAM_SAMPLES, "Server": 1}[scenario]
    system = System(client, model, batch, in_flight=1 if scenario.endswith("Stream") else 32)
    folder = tempfile.mkdtemp(prefix="starling-loadgen-")
    logs = loadgen.LogSettings()
    logs.log_output.outdir = folder
    logs.log_output.copy_summary_to_stdout = False
    logs.enable_trace = False
    sut = loadgen.ConstructSUT(system.issue, lambda: None)
    library = loadgen.ConstructQSL(LIBRARY_SAMPLES, LIBRARY_SAMPLES, lambda samples: None, lambda samples: None)
    try:
        loadgen.StartTestWithLogSettings(sut, library, settings_of(scenario, seconds, expected), logs, "")
        summary = summary_of(folder)
    finally:
        loadgen.DestroyQSL(library)
        loadgen.DestroySUT(sut)
        system.close()
        shutil.rmtree(folder)
    if system.failures:
        raise RuntimeError(f"{len(system.failures)} requests failed, the first with: {system.failures[0]}")
    return summary


def metric_of(scenario, summary):
    """(what, value) of a summary."""
    keys = {
        "SingleStream": "90.0th percentile latency (ns)",
        "MultiStream": "99.0th percentile latency (ns)",
        "Offline": "Samples per second",
        "Server": "Completed samples per second",
    }
    for key in (keys[scenario], keys[scenario].replace(".0th", "th"), "Scheduled samples per second"):
        if key in summary:
            return key, float(summary[key])
    raise RuntimeError(f"{scenario}: no metric in LoadGen's summary: {sorted(summary)}")


def warm_up(client, model):
    """The mean time of one sample, and how many samples a second the runtime brings in batches."""
    random = np.random.default_rng(2)
    inputs, rounds = generated(client, model, 1, random), 10
    for _ in range(3):
        client.infer(model, inputs)
    begun = time.monotonic()
    for _ in range(rounds):
        client.infer(model, inputs)
    mean = (time.monotonic() - begun) / rounds
    batch = generated(client, model, MULTI_STREAM_SAMPLES, random)
    begun = time.monotonic()
    for future in [client.submit(model, batch) for _ in range(rounds)]:
        future.result()
    return {"mean_ns": mean * 1e9, "per_second": rounds * MULTI_STREAM_SAMPLES / (time.monotonic() - begun)}


def run_model(options, name):
    runtime = Runtime(options.command, {name: os.path.join(options.zoo, name + ".onnx")})
    client = runtime.connect(queue_depth=64, arena_bytes=256 << 20)
    rows = []
    try:
        model = client.model(name)
        expected = warm_up(client, model)
        expected["bound_ns"] = options.bound_ms * 1e6 if options.bound_ms else 10 * expected["mean_ns"]
        expected["qps"] = options.qps or options.load * expected["per_second"]
        for scenario in options.scenarios.split(","):
            begun = time.monotonic()
            summary = run_scenario(client, model, scenario, options.seconds, expected)
            what, value = metric_of(scenario, summary)
            if scenario == "SingleStream" and not options.bound_ms:
                expected["bound_ns"] = 10 * value
            if scenario == "Offline" and not options.qps:
                expected["qps"] = options.load * value
            row = {
                "model": name, "scenario": scenario, "verdict": summary.get("Result is", "?"), "metric": what, "value": value,
                "seconds": round(time.monotonic() - begun, 1), "shortened": options.seconds < RULE_SECONDS,
                "bound_ns": round(expected["bound_ns"]) if scenario == "Server" else None,
                "target_qps": round(expected["qps"], 2) if scenario == "Server" else None, "summary": summary,
            }  # fmt: skip
            print(f"{name:16}{scenario:14}{row['verdict']:9}{what}: {value:.6g}" + (", shortened" if row["shortened"] else ""), flush=True)
            rows.append(row)
        client.close()
    finally:
        runtime.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", required=True, metavar="DIR", help="take the models from DIR, as NAME.onnx (required)")
    parser.add_argument("--out", required=True, metavar="FILE", help="write the result to FILE as JSON (required)")
    parser.add_argument("--models", default="resnet50,minilm-trained", metavar="NAMES", help="measure the models NAMES (default: %(default)s)")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), metavar="NAMES", help="follow the scenarios NAMES (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=RULE_SECONDS, metavar="SECONDS",
        help="run each scenario for SECONDS seconds (default: %(default)s)",
    )
    parser.add_argument(
        "--bound-ms", type=float, metavar="MS",
        help="bound Server's 99th percentile by MS milliseconds (default: ten times SingleStream's mean)",
    )
    parser.add_argument("--qps", type=float, metavar="N", help="send N requests a second in Server (default: by --load)")
    parser.add_argument("--load", type=float, default=0.6, metavar="X", help="send X times Offline's rate in Server (default: %(default)s)")
    parser.add_argument(
        "--command", default=os.path.join(HERE, "../../build/release/bin/starling"), metavar="FILE",
        help="measure the command FILE (default: %(default)s)",
    )
    options = parser.parse_args()
    unknown = set(options.scenarios.split(",")) - set(SCENARIOS)
    if unknown:
        parser.error(f"--scenarios: {', '.join(sorted(unknown))}: wants some of {', '.join(SCENARIOS)}")
    rows = []
    for name in options.models.split(","):
        rows += run_model(options, name)
    result = {
        "benchmark": "mlperf", **origin("perf/mlperf/mlperf.sh"), "loadgen": importlib.metadata.version("mlcommons-loadgen"),
        "mlperf_compliant": False, "why_not_compliant": "generated inputs, no accuracy run", "form": starling.form.NAME, "rows": rows,
    }  # fmt: skip
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
