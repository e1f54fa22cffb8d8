# SPDX-License-Identifier: Apache-2.0
"""Many fine-tuned copies of one network: the paper's own experiments, and copies that are served by workers of their own, by workers that
they share, and by plans that are merged besides; and ONNX Runtime with a session for each.

    netfuse.py [--part all|paper|served] [--seconds 1] [--rounds 5] [--out FILE.json]
               of the paper: [--models resnet50,...] [--lanes 1,2,4,...] [--batches 1,2,4,8] [--longest 4] [--hybrids 32] [--cpu 0] [--way paper|neighbours]
                             [--backend cpu|cuda] [--zoo build/zoo] [--peers 1]
               served: [--copies 32] [--inline_us 20] [--networks_of_digits mlp,lenet,resnet,conv4,conv8,mlp64]

The paper's (netfuse_cells.py) run plans without requests: sequential, concurrent, hybrid and fused, 1 to 32 copies with heads of their own, and
what merging takes.

Sources: NetFuse (Jeong et al., 2020), section 5: models of one architecture with other weights and other inputs, 1 to 32 of them, merged
into one graph on a GPU. Three ways on this host's cores, in turns, medians of the rounds: separate workers (`fuse: never`), one job
(`fuse: auto` with `limits.fuse_bytes: 0`), merged (`fuse: auto`), where the runtime measures what pays and merges that, with as many copies of filters as it likes (`merge_copies: 10`). Live: each copy
has weights of its own; a native client (bench-lanes) keeps one request of one sample in flight for each of the first so many copies. conv4
and conv8 are eight convolutions of 3x3, of so many channels, at 8x8. One thread of ONNX Runtime asks its sessions one after another.
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
from onnx import TensorProto, helper, numpy_helper

import experiment
import netfuse_cells
from runtime import Runtime

DIGITS = os.path.join(experiment.HERE, "..", "..", "client", "examples", "digits", "models")
NETWORKS = ["mlp", "lenet", "resnet", "conv4", "conv8", "mlp64"]
GOALS = {"all": 3.0, "few": 1.5}  # of requests a second, beside separate workers
ALL_GOALS = {"mlp64": 2.0}  # where it is another
LEAST = 0.97  # at any occupancy
FEW = 4
WAYS = {"separate": ("never", "64 MiB"), "one_job": ("auto", "0"), "merged": ("auto", "64 MiB")}  # fuse, limits.fuse_bytes
MERGE_SECONDS = 120


def make_convolutions(channels):
    random = np.random.default_rng(channels)
    nodes, constants = [], []
    for i in range(8):
        weights = random.normal(0, 0.2, (channels, channels, 3, 3)).astype(np.float32)
        constants += [numpy_helper.from_array(weights, f"w{i}"), numpy_helper.from_array(np.zeros(channels, np.float32), f"b{i}")]
        nodes.append(helper.make_node("Conv", [f"x{i}", f"w{i}", f"b{i}"], [f"y{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"y{i}"], [f"x{i + 1}"]))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", channels, 8, 8]) for name in ("x0", "x8")]
    graph = helper.make_graph(nodes, f"conv{channels}", ports[:1], ports[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def read_network(name):
    if name.startswith("conv"):
        return make_convolutions(int(name[4:]))
    if name in netfuse_cells.SMALL:
        return netfuse_cells.SMALL[name]()
    return onnx.load(os.path.join(DIGITS, name, "1", "model.onnx"))


def write_copies(name, count, folder):
    """{name of a copy: its file}: weights of their own, a little off the network's."""
    files = {}
    for number in range(count):
        model = read_network(name)
        random = np.random.default_rng(number)
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor)
            if values.dtype == np.float32:
                values = (values * random.normal(1, 0.01, values.shape)).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        files[f"{name}{number}"] = os.path.join(folder, f"{name}{number}.onnx")
        onnx.save(model, files[f"{name}{number}"])
    return files


def wait_for_merge(runtime):
    """What the log says of it. Kernels are made behind that line, in some tenths of a second."""
    until = time.monotonic() + MERGE_SECONDS
    while time.monotonic() < until:
        with open(runtime.log.name, encoding="utf-8") as log:
            for line in log:
                if " event=bundle-merged " in line or " event=bundle-not-merged " in line:
                    time.sleep(1)
                    return line.split(" event=")[1].strip()
        time.sleep(0.1)
    raise RuntimeError(f"nothing is said of a merge: {runtime.said()}")


def serve(options, files, way, occupied, folder):
    """What one runtime answers with so many copies occupied: [{requests a second, latencies}], its memory at the end, and what it
    says of the merge."""
    fuse, fuse_bytes = WAYS[way]
    config = os.path.join(folder, f"{way}.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"limits: {{fuse_bytes: {fuse_bytes}}}\nthreads: {{inline_us: {options.inline_us}}}\nlog_level: debug\n")
    runtime = Runtime(options.program, files, configs={name: f"fuse: {fuse}\nmerge_copies: 10\n" for name in files}, arguments=("--config", config))
    lanes = os.path.join(os.path.dirname(options.program), "bench-lanes")
    try:
        runtime.connect().close()
        merge = wait_for_merge(runtime) if way == "merged" else None
        said = [json.loads(subprocess.run([lanes, runtime.socket, str(options.seconds), str(n), *files], check=True, capture_output=True, text=True).stdout)
                for n in occupied]  # fmt: skip
        return said, runtime.proportional_bytes(), merge
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


def compare(row, way, rounds, i):
    pairs = [ours[i]["per_second"] / separate[i]["per_second"] for ours, separate in zip(rounds[way], rounds["separate"])]
    row[way]["ratio"], row[way]["ratios"] = round(statistics.median(pairs), 3), [round(r, 3) for r in pairs]
    row[way]["no_slower"] = row[way]["ratio"] >= LEAST


def print_row(row):
    words = [f"{row['network']:8} {row['occupied']:2} of {row['copies']}: separate {row['separate']['per_second']:8.0f}/s"]
    for way in ("one_job", "merged"):
        words.append(f"{way} {row[way]['per_second']:8.0f}/s {row[way]['ratio']:.2f} x" + ("" if row[way]["no_slower"] else f" (missed: at least {LEAST})"))
    if "goal" in row:
        words.append(f"goal {row['goal']} x {'met' if row['met'] else 'missed'}")
    if "onnxruntime_per_second" in row:
        words.append(f"ONNX Runtime {row['onnxruntime_per_second']:.0f}/s")
    print("; ".join(words), flush=True)


def measure(options, name, folder):
    files = write_copies(name, options.copies, folder)
    occupied = sorted({options.copies, max(options.copies // 2, 1), min(FEW, options.copies), 1}, reverse=True)
    rounds, memory, merges, peer = {way: [] for way in WAYS}, {way: [] for way in WAYS}, [], []
    for _ in range(options.rounds):
        for way in WAYS:
            figures, bytes_resident, merge = serve(options, files, way, occupied, folder)
            rounds[way].append(figures)
            memory[way].append(bytes_resident)
            merges += [merge] if merge else []
        peer.append(ask_sessions(files, options.seconds))
    print(f"{name}: {merges[-1]}", flush=True)
    rows = []
    for i, n in enumerate(occupied):
        row = {"network": name, "copies": options.copies, "occupied": n, "merges": merges}
        for way in WAYS:
            row[way] = {field: statistics.median(figures[i][field] for figures in rounds[way]) for field in ("per_second", "p50_us", "p99_us")}
            row[way]["proportional_bytes"] = int(statistics.median(memory[way]))
        for way in ("one_job", "merged"):
            compare(row, way, rounds, i)
        if n == options.copies:
            row["onnxruntime_per_second"] = round(statistics.median(peer), 1)
        goal = ALL_GOALS.get(name, GOALS["all"]) if n == options.copies else GOALS["few"] if n == FEW else None
        if goal:
            row["goal"], row["met"] = goal, row["merged"]["ratio"] >= goal
        rows.append(row)
        print_row(row)
    return rows


def measure_served(options):
    rows = []
    for name in options.networks_of_digits.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows += measure(options, name, folder)
    return rows


def main():
    root = os.path.join(experiment.HERE, "..", "..")
    options = experiment.read_arguments(__doc__, part="all", copies=32, seconds=1.0, rounds=5, inline_us=20, networks_of_digits=",".join(NETWORKS),
                                        models=",".join(netfuse_cells.NETWORKS), lanes=",".join(map(str, netfuse_cells.LANES)),
                                        batches=",".join(map(str, netfuse_cells.BATCHES)), longest=4.0, hybrids="32", cpu=0, way="paper", backend="cpu",
                                        zoo=os.path.join(root, "build", "zoo"), digits=DIGITS, peers=1)  # fmt: skip
    result = {**experiment.head("netfuse"), "seconds": options.seconds, "rounds": options.rounds, "inline_us": options.inline_us}
    if options.part in ("all", "paper"):
        with tempfile.TemporaryDirectory() as folder:
            result.update(netfuse_cells.measure(options, folder))
    if options.part in ("all", "served"):
        result["rows"] = measure_served(options)
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
