# SPDX-License-Identifier: Apache-2.0
"""How long a model takes to be served, beside ONNX Runtime; and what a served model hears of others that are loaded.

    starts.py --zoo DIR --out FILE [--models A,B] [--rounds N] [--loads N] [--program FILE] [--library FILE]

One round of a model: `starling serve` with an empty cache, the same with the cache that it filled, and ONNX Runtime, each a process of
its own, in turns. Starling's time ends with READY=1, ONNX Runtime's with its first answer.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from origin import origin

PEER = """
import sys, time
begun = time.perf_counter()
import numpy, onnxruntime
imported = time.perf_counter()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, {i.name: numpy.zeros([1] + i.shape[1:], numpy.float32) for i in session.get_inputs()})
print(imported - begun, time.perf_counter() - imported)
"""


class Runtime:
    """`starling serve` over a folder of its own, from the start of the process to its end."""

    def __init__(self, program, repository, cache):
        self.folder = tempfile.mkdtemp(prefix="starling-starts-")
        self.name = os.path.basename(self.folder)
        self.socket = f"{self.folder}/{self.name}.sock"
        config = f"{self.folder}/config.yaml"
        with open(config, "w") as file:
            file.write(f"socket_dir: {self.folder}\nname: {self.name}\ncache: {{directory: {cache}}}\n")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(f"{self.folder}/notify")
        self.manager.settimeout(300)
        with open(f"{self.folder}/log", "w") as log:
            begun = time.perf_counter()
            self.process = subprocess.Popen(
                [program, "serve", repository, "--config", config],
                env={**os.environ, "NOTIFY_SOCKET": f"{self.folder}/notify"},
                stderr=log,
            )
        while b"READY=1" not in self.manager.recv(4096):
            pass
        self.ready_seconds = time.perf_counter() - begun

    def log(self):
        with open(f"{self.folder}/log") as file:
            return file.read()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.manager.close()
        shutil.rmtree(self.folder)


def add_model(repository, name, file):
    os.makedirs(f"{repository}/{name}/1")
    os.link(file, f"{repository}/{name}/1/model.onnx")


def serve_once(program, repository, cache):
    runtime = Runtime(program, repository, cache)
    wait_for_cache(cache)
    runtime.end()
    return runtime.ready_seconds


def wait_for_cache(cache):
    """A plan is copied into the cache behind READY; a start that is measured is not to meet the copy."""
    for _ in range(600):
        if any(name.endswith(".plan") for name in os.listdir(cache)) and not any(n.startswith("new.") for n in os.listdir(cache)):
            return
        time.sleep(0.1)
    raise SystemExit(f"no plan in {cache}")


def run_peer(file, threads):
    begun = time.perf_counter()
    output = subprocess.run([sys.executable, "-c", PEER, file, str(threads)], check=True, capture_output=True, text=True).stdout
    return float(output.split()[1]), time.perf_counter() - begun


def measure_model(options, name, folder):
    file, repository = os.path.join(options.scratch, f"{name}.onnx"), f"{folder}/{name}"
    shutil.copyfile(os.path.join(options.zoo, f"{name}.onnx"), file)
    add_model(repository, name, file)
    times = {"cold": [], "cached": [], "onnxruntime": [], "onnxruntime_process": []}
    for number in range(options.rounds):
        cache = f"{folder}/cache-{name}-{number}"
        os.mkdir(cache)
        times["cold"].append(serve_once(options.program, repository, cache))
        times["cached"].append(serve_once(options.program, repository, cache))
        answer, process = run_peer(file, options.threads)
        times["onnxruntime"].append(answer)
        times["onnxruntime_process"].append(process)
        shutil.rmtree(cache)
    medians = {f"{key}_s": round(statistics.median(values), 4) for key, values in times.items()}
    best = {f"{key}_best_s": round(min(values), 4) for key, values in times.items()}
    medians["onnxruntime_over_cached"] = round(medians["onnxruntime_s"] / medians["cached_s"], 2)
    medians["onnxruntime_process_over_cached"] = round(medians["onnxruntime_process_s"] / medians["cached_s"], 2)
    return {"model": name, **medians, **best}


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


class Traffic:
    """One request after the other in a thread, each with the time at which it began and how long it took."""

    def __init__(self, client, model):
        import numpy

        port = client.model(model).inputs[0]
        self.client, self.model, self.ends, self.requests = client, model, False, []
        self.input = client.empty([n or 1 for n in port.shape], port.dtype)
        self.input[...] = numpy.ones(self.input.shape, self.input.dtype)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ends:
            begun = time.perf_counter()
            self.client.infer(self.model, self.input)
            self.requests.append((begun, time.perf_counter() - begun))

    def end(self):
        self.ends = True
        self.thread.join()


def measure_loads(options, folder, served, loaded):
    """p99 of a served model by itself, and while others are loaded beside it."""
    import starling

    repository, cache = f"{folder}/loads", f"{folder}/cache-loads"
    os.mkdir(cache)
    add_model(repository, served, os.path.join(options.scratch, f"{served}.onnx"))
    runtime = Runtime(options.program, repository, cache)
    with starling.Client(runtime.socket) as client:
        traffic = Traffic(client, served)
        time.sleep(options.seconds)
        asked = time.perf_counter()
        for number in range(options.loads):
            add_model(repository, f"other{number}", os.path.join(options.scratch, f"{loaded}.onnx"))
        runtime.process.send_signal(signal.SIGHUP)
        while runtime.log().count("model-ready") < 1 + options.loads:
            if "model-failed" in runtime.log():
                raise SystemExit(runtime.log())
            time.sleep(0.05)
        ended = time.perf_counter()
        traffic.end()
    runtime.end()
    alone = [took for begun, took in traffic.requests if begun + took < asked]
    beside = [took for begun, took in traffic.requests if begun > asked and begun < ended]
    row = {"served": served, "loaded": f"{options.loads} x {loaded}", "loads_s": round(ended - asked, 3)}
    for key, times in (("alone", alone), ("beside", beside)):
        row[f"requests_{key}"] = len(times)
        row[f"p50_{key}_ms"] = round(1000 * percentile(times, 0.5), 3)
        row[f"p99_{key}_ms"] = round(1000 * percentile(times, 0.99), 3)
    row["p99_ratio"] = round(row["p99_beside_ms"] / row["p99_alone_ms"], 2)
    return row


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", required=True, metavar="DIR", help="take the models from DIR, as NAME.onnx (required)")
    parser.add_argument("--out", required=True, metavar="FILE", help="write the result to FILE as JSON (required)")
    parser.add_argument("--models", default="resnet18,resnet50,resnet152", metavar="NAMES", help="start with the models NAMES (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="take N rounds of each model (default: %(default)s)")
    parser.add_argument("--loads", type=int, default=20, metavar="N", help="load N other models beside a served one (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=5, metavar="SECONDS",
        help="send requests for SECONDS seconds before these loads (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="give ONNX Runtime N threads (default: %(default)s)")
    parser.add_argument("--program", default="build/release/bin/starling", metavar="FILE", help="measure the command FILE (default: %(default)s)")
    parser.add_argument("--library", default="build/release/lib/libstarling.so", metavar="FILE", help="load the library FILE (default: %(default)s)")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    os.environ["STARLING_LIBRARY"] = os.path.abspath(options.library)
    options.cpus = sorted(os.sched_getaffinity(0))
    return options


def main():
    options = read_arguments()
    models = options.models.split(",") if options.models else []
    report = {
        **origin("perf/starts/starts.sh"),
        "cpus": len(options.cpus),
        "load_average_before": os.getloadavg(),
        "starts": [],
        "loads": [],
    }
    with tempfile.TemporaryDirectory(prefix="starling-starts-") as folder:
        options.scratch = folder
        for model in models:
            report["starts"].append(measure_model(options, model, folder))
            print(json.dumps(report["starts"][-1]), flush=True)
        if options.loads and models:
            report["loads"].append(measure_loads(options, folder, models[0], models[0]))
            print(json.dumps(report["loads"][-1]), flush=True)
        report["load_average_after"] = os.getloadavg()
    with open(options.out, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
