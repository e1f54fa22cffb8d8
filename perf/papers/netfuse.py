# SPDX-License-Identifier: Apache-2.0
"""Many fine-tuned copies of one network: workers of their own beside workers that they share, and ONNX Runtime with a session for each.

    netfuse.py [--copies 32] [--seconds 1] [--rounds 5] [--out FILE.json] [--program FILE]

Sources: NetFuse (Jeong et al., 2020), section 5: models of one architecture with other weights and other inputs, 1 to 32 of them. There
they are merged into one graph on a GPU; here they share workers (`fuse: auto`) on this host's cores, which merges no kernels. Live: each
copy has weights of its own; a native client (bench-lanes) keeps one request of one sample in flight for each of the first so many
copies. Both ways in turns, medians of the rounds; one thread of ONNX Runtime asks its sessions one after another.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import experiment
from runtime import Runtime

DIGITS = os.path.join(experiment.HERE, "..", "..", "client", "examples", "digits", "models")
NETWORKS = ["mlp", "lenet", "mobilenet"]
GOALS = {"all": 3.0, "few": 1.5}  # of requests a second, beside separate workers
FEW = 4


def write_copies(name, count, folder):
    """{name of a copy: its file}: weights of their own, a little off the network's."""
    files = {}
    for number in range(count):
        model = onnx.load(os.path.join(DIGITS, name, "1", "model.onnx"))
        random = np.random.default_rng(number)
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor)
            if values.dtype == np.float32:
                values = (values * random.normal(1, 0.01, values.shape)).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        files[f"{name}{number}"] = os.path.join(folder, f"{name}{number}.onnx")
        onnx.save(model, files[f"{name}{number}"])
    return files


def serve(options, files, fuse, occupied):
    """What one runtime answers with so many copies occupied: [{requests a second, latencies}], and its resident memory at the end."""
    runtime = Runtime(options.program, files, configs={name: f"fuse: {fuse}\n" for name in files})
    lanes = os.path.join(os.path.dirname(options.program), "bench-lanes")
    try:
        runtime.connect().close()
        said = [json.loads(subprocess.run([lanes, runtime.socket, str(options.seconds), str(n), *files], check=True, capture_output=True, text=True).stdout)
                for n in occupied]  # fmt: skip
        return said, runtime.resident_bytes()
    finally:
        runtime.close()


def ask_sessions(files, seconds):
    """Requests a second of one thread of ONNX Runtime over a session for each copy."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    sessions = [onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"]) for path in files.values()]
    feed = {port.name: np.full([1 if isinstance(dim, str) or dim is None else dim for dim in port.shape], 0.5, np.float32)
            for port in sessions[0].get_inputs()}  # fmt: skip
    begun, done = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        for session in sessions:
            session.run(None, feed)
        done += len(sessions)
    return done / (time.perf_counter() - begun)


def measure(options, name, folder):
    files = write_copies(name, options.copies, folder)
    occupied = [options.copies, FEW, 1]
    rounds = {"never": [], "auto": []}
    memory = {"never": [], "auto": []}
    peer = []
    for _ in range(options.rounds):
        for fuse, said in rounds.items():
            figures, bytes_resident = serve(options, files, fuse, occupied)
            said.append(figures)
            memory[fuse].append(bytes_resident)
        peer.append(ask_sessions(files, options.seconds))
    rows = []
    for i, n in enumerate(occupied):
        pairs = [fused[i]["per_second"] / separate[i]["per_second"] for fused, separate in zip(rounds["auto"], rounds["never"])]
        row = {"network": name, "copies": options.copies, "occupied": n, "ratio": round(statistics.median(pairs), 3), "ratios": [round(r, 3) for r in pairs]}
        for fuse, key in (("never", "separate"), ("auto", "fused")):
            row[key] = {field: statistics.median(figures[i][field] for figures in rounds[fuse]) for field in ("per_second", "p50_us", "p99_us")}
            row[key]["resident_bytes"] = int(statistics.median(memory[fuse]))
        if n == options.copies:
            row["onnxruntime_per_second"] = round(statistics.median(peer), 1)
        goal = GOALS["all"] if n == options.copies else GOALS["few"] if n == FEW else None
        if goal:
            row["goal"], row["met"] = goal, row["ratio"] >= goal
        rows.append(row)
        print(f"{name:10} {n:2} of {options.copies}: separate {row['separate']['per_second']:9.0f}/s, fused {row['fused']['per_second']:9.0f}/s, "
              f"{row['ratio']:.2f} x{'' if not goal else f', goal {goal} x ' + ('met' if row['met'] else 'missed')}"
              + (f"; ONNX Runtime {row['onnxruntime_per_second']:.0f}/s" if n == options.copies else ""), flush=True)  # fmt: skip
    return rows


def main():
    options = experiment.read_arguments(__doc__, copies=32, seconds=1.0, rounds=5, networks_of_digits=",".join(NETWORKS))
    rows = []
    for name in options.networks_of_digits.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows += measure(options, name, folder)
    experiment.write({**experiment.head("netfuse"), "seconds": options.seconds, "rounds": options.rounds, "rows": rows}, options.out)


if __name__ == "__main__":
    main()
