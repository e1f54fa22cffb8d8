# SPDX-License-Identifier: Apache-2.0
"""NetFuse's own experiments: copies of one network one after the other, in a process each, in some processes of several, and as one plan; and
ONNX Runtime with a session for each, in one process.

A cell is a network, a number of copies and a batch. It is *live on CPU* (one core, bench-netfuse), *live on GPU* where the host has one, *not measured* since
a round takes longer than --longest, or *not to be had here*, with the reason. Of the paper's figures only those that its text states can stand beside: the others are bars without numbers.
"""

import json
import multiprocessing
import os
import statistics
import subprocess
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import checking
import mobile
import sequence
import zoo
from net import Net

MERGE_SECONDS = 0.6  # the paper's largest, of 32 ResNeXt50; weights not counted
GPU = "/dev/nvidia0"
LANES = [1, 2, 4, 8, 16, 32]
BATCHES = [1, 2, 4, 8]

# How many times as fast merged is as one after the other, at most, by the paper's text (batch 1): V100.
PAPER = {"resnet50": 2.6, "resnext50": 3.4, "bert-base": 2.7, "xlnet-base": 3.6}
# Merged over the fastest hybrid of 32 models, at most.
PAPER_HYBRID = {"resnext50": 2.5, "xlnet-base": 7.2}


def make_perceptron(*widths):
    random = np.random.default_rng(widths[0])
    nodes, constants = [], []
    for i, (n, m) in enumerate(zip(widths, widths[1:])):
        constants += [numpy_helper.from_array(random.normal(0, n**-0.5, (n, m)).astype(np.float32), f"w{i}"),
                      numpy_helper.from_array(np.zeros(m, np.float32), f"b{i}")]  # fmt: skip
        nodes.append(helper.make_node("Gemm", [f"x{i}", f"w{i}", f"b{i}"], [f"y{i}"]))
        if i + 2 < len(widths):
            nodes.append(helper.make_node("Relu", [f"y{i}"], [f"x{i + 1}"]))
    last = len(widths) - 2
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", n]) for name, n in (("x0", widths[0]), (f"y{last}", widths[-1]))]
    graph = helper.make_graph(nodes, f"mlp{widths[0]}", ports[:1], ports[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def seeded(name, build):
    net = Net(name)
    build(net)
    return net.model()


MINILM_16 = sequence.Shape(layers=6, width=384, heads=12, inner=1536, length=16)
SMALL = {
    "mlp64": lambda: make_perceptron(64, 64, 64, 64),
    "mlp256": lambda: make_perceptron(256, 256, 256, 256),
    "mlp768": lambda: make_perceptron(768, 768, 768, 768),
    "minilm-16": lambda: seeded("minilm-16", lambda net: sequence.minilm(net, MINILM_16)),
    "mobilenetv2-96": lambda: seeded("mobilenetv2-96", lambda net: mobile.mobilenet_v2(net, 96)),
    "lstm-cell": lambda: seeded("lstm-cell", lambda net: sequence.lstm(net, layers=1, width=64, n_inputs=64, length=1)),
}
DIGITS = ["mlp", "lenet", "resnet", "mobilenet", "densenet"]
NETWORKS = [*PAPER, *(f"digits-{name}" for name in DIGITS), *SMALL]


def find_network(name, options, folder):
    """Its file: of the zoo, of the digits, or written now."""
    if name.startswith("digits-"):
        return os.path.join(options.digits, name.split("-", 1)[1], "1", "model.onnx")
    path = os.path.join(options.zoo if name in zoo.ZOO else folder, f"{name}.onnx")
    if name in zoo.ZOO and not os.path.exists(path):
        os.makedirs(options.zoo, exist_ok=True)
        zoo.write(name, path)
    elif name in SMALL:
        onnx.save(SMALL[name](), path)
    return path


# ONNX Runtime


def proportional_bytes():
    with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))


def time_rounds(sessions, feed, seconds):
    """Of one run of every session: the median of rounds, of which there is at least one behind one that warms."""
    took, until = [], None
    while not took or time.perf_counter() < until:
        begun = time.perf_counter()
        for session in sessions:
            session.run(None, feed)
        if until is None:
            until = time.perf_counter() + seconds
        else:
            took.append(time.perf_counter() - begun)
    return statistics.median(took)


def ask_sessions(path, lanes, batches, seconds, cpu, answers):
    os.sched_setaffinity(0, {cpu})
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    sessions = [onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"]) for _ in range(lanes)]
    model = onnx.load(path, load_external_data=False)
    cells = {batch: time_rounds(sessions, checking.inputs_of(model, batch), seconds) for batch in batches}
    answers.put((cells, proportional_bytes()))


def measure_peer(path, lanes, batches, options):
    """({batch: seconds}, bytes) of a process that has them all."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=ask_sessions, args=(path, lanes, batches, options.seconds, options.cpu, answers))
    process.start()
    answer = answers.get()
    process.join()
    return answer


# cells


def run_bench(name, path, lanes, options):
    """What bench-netfuse says of one number of lanes."""
    bench = os.path.join(os.path.dirname(options.program), "bench-netfuse")
    command = ["taskset", "-c", str(options.cpu), bench, "--lanes", str(lanes), "--batches", options.batches, "--turns", str(options.rounds),
               "--seconds", str(options.seconds), "--longest", str(options.longest), "--way", options.way, "--backend", options.backend]  # fmt: skip
    if name in PAPER:
        command.append("--own-head")
    if str(lanes) in options.hybrids.split(","):
        command.append("--hybrid")
    done = subprocess.run([*command, path], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"cause": done.stderr.strip().splitlines()[-1]}


def seconds_of(cell, way):
    return next((row["seconds"] for row in cell["ways"] if row["way"] == way), None)


def make_cell(name, lanes, said, found, peer, options):
    """One row of the table."""
    cell = {"network": name, "copies": lanes, "batch": found["batch"], "gpu": options.gpu}
    cause = found.get("cause") or said.get("cause") if "ways" not in found else None
    if cause:
        return {**cell, "cpu": f"{'not measured' if 'cells' in said else 'not to be had here'}: {cause}"}
    ways = {"cpu": "live on CPU", "ways": found["ways"]}
    sequential, fused = seconds_of(found, "sequential"), seconds_of(found, "fused")
    if fused:
        ways["fused_over_sequential"] = round(sequential / fused, 3)
        ways["fused_over_concurrent"] = round(seconds_of(found, "concurrent") / fused, 3)
    elif said.get("cause"):
        ways["not_merged"] = said["cause"]
    if peer and found["batch"] in peer[0]:
        ways["onnxruntime_seconds"], ways["onnxruntime_bytes"] = peer[0][found["batch"]], peer[1]
    if found["batch"] == 1 and name in PAPER:
        ways["paper_fused_over_sequential_at_most"] = PAPER[name]
    return {**cell, **ways}


def show(cell):
    words = f"{cell['network']:15} {cell['copies']:2} copies, batch {cell['batch']}: "
    if "ways" not in cell:
        print(words + cell["cpu"], flush=True)
        return
    words += ", ".join(f"{row['way']}{' of ' + str(row['processes']) if row['way'] == 'hybrid' else ''} {1e3 * row['seconds']:.3f} ms" for row in cell["ways"])
    if "fused_over_sequential" in cell:
        words += f"; {cell['fused_over_sequential']:.2f} x sequential"
        if "paper_fused_over_sequential_at_most" in cell:
            words += f" (paper, a GPU: at most {cell['paper_fused_over_sequential_at_most']})"
    if "onnxruntime_seconds" in cell:
        words += f"; ONNX Runtime {1e3 * cell['onnxruntime_seconds']:.3f} ms"
    print(words, flush=True)


def make_merge(name, lanes, said):
    """What merging so many took, and what the plans take."""
    fields = ("common", "merged", "merge_seconds", "laying_seconds", "merged_seconds", "single_seconds", "single_bytes", "merged_bytes", "member_bytes", "off_by")
    row = {"network": name, "copies": lanes, **{field: said[field] for field in fields}}
    row["graph_seconds"] = round(said["merge_seconds"] - said["laying_seconds"], 6)
    row["bytes_beside_single"] = round(1 + said["merged_bytes"] / said["single_bytes"], 3)
    if name == "resnext50" and lanes == 32:
        row["goal_seconds"], row["met"] = MERGE_SECONDS, row["graph_seconds"] < MERGE_SECONDS
    print(f"{name:15} {lanes:2} copies: merged in {row['graph_seconds']:.3f} s and {row['laying_seconds']:.3f} s of writing weights; "
          f"{row['merged']} of {row['common']} nodes; weights {row['bytes_beside_single']:.3f} x the single ones'", flush=True)  # fmt: skip
    return row


def measure_lanes(name, path, lanes, options):
    said = run_bench(name, path, lanes, options)
    batches = [int(n) for n in options.batches.split(",")]
    found = said.get("cells") or [{"batch": batch, "cause": said["cause"]} for batch in batches]
    live = [cell["batch"] for cell in found if "ways" in cell]
    peer = measure_peer(path, lanes, live, options) if live and options.peers else None
    cells = [make_cell(name, lanes, said, cell, peer, options) for cell in found]
    for cell in cells:
        show(cell)
    return cells, [make_merge(name, lanes, said)] if said.get("single_bytes") else []


def measure(options, folder):
    """{cells, merges} of the networks and numbers of copies that are asked for."""
    options.gpu = "live on GPU" if options.backend == "cuda" else "not to be had here: no NVIDIA GPU" if not os.path.exists(GPU) else "ask with --backend cuda"
    result = {"cells": [], "merges": [], "paper": {"fused_over_sequential_at_most": PAPER, "fused_over_hybrid_at_most": PAPER_HYBRID, "merge_seconds": MERGE_SECONDS}}
    for name in options.models.split(","):
        path = find_network(name, options, folder)
        for lanes in map(int, options.lanes.split(",")):
            cells, merges = measure_lanes(name, path, lanes, options)
            result["cells"] += cells
            result["merges"] += merges
    return result
