# SPDX-License-Identifier: Apache-2.0
"""Forests beside ONNX Runtime, one core, in turns.

    trees.py --forests DIR --out FILE.json [--models A,B] [--batches 1,1000] [--cpu N] [--seconds N] [--program FILE]

A visit is one node that one row passes. Beside each time stand the visits of a row, counted in the file's own trees on the rows that
are measured, the time of a visit, and its two limits: in a batch the rate at which this core does independent loads from its first cache
(two for each visit: the node and the number it compares), at batch 1 the same rate for what the trees of one row give to do at once.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "engine"), os.path.join(HERE, "..", "serving")]

from cell import Bench, Runner, disagreement, in_turns, ratio_interval  # noqa: E402
from origin import origin  # noqa: E402

LOADS_PER_VISIT = 2


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--forests", required=True, metavar="DIR", help="take the forests from DIR, as trees.sh makes it (required)")
    parser.add_argument("--out", required=True, metavar="FILE", help="write the result to FILE as JSON (required)")
    parser.add_argument(
        "--models", default="xgboost-100x6,xgboost-500x8,lightgbm-1000x31,sklearn-rf-100", metavar="NAMES",
        help="measure the forests NAMES (default: %(default)s)",
    )
    parser.add_argument("--batches", default="1,1000", metavar="N,...", help="predict N rows at once (default: %(default)s)")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)), metavar="N", help="run on CPU N (default: the first allowed)")
    parser.add_argument(
        "--seconds", type=float, default=5, metavar="SECONDS",
        help="take turns for SECONDS seconds in each cell (default: %(default)s)",
    )
    parser.add_argument(
        "--program", default=os.path.join(HERE, "..", "..", "build", "release", "bin", "starling-engine"), metavar="FILE",
        help="measure the build FILE of starling-engine (default: %(default)s)",
    )
    return parser.parse_args()


def lists_of(path):
    for node in onnx.load(path).graph.node:
        if node.op_type.startswith("TreeEnsemble"):
            return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    raise SystemExit(f"{path} has no trees")


def visits_per_row(path, rows):
    """Nodes that a row passes in all trees, the leaves not counted: by the file's lists alone."""
    lists = lists_of(path)
    names = np.array([lists["nodes_treeids"], lists["nodes_nodeids"]], np.int64)
    order = np.lexsort(names[::-1])
    place = {(int(tree), int(number)): i for i, (tree, number) in enumerate(names.T)}
    inner = np.array([mode != b"LEAF" for mode in lists["nodes_modes"]])
    child = np.zeros((2, names.shape[1]), np.int64)
    for which, name in ((0, "nodes_falsenodeids"), (1, "nodes_truenodeids")):
        child[which] = [place.get((int(t), int(c)), 0) if b else 0 for t, c, b in zip(names[0], lists[name], inner)]
    reached = np.zeros(names.shape[1], bool)
    reached[child[:, inner].ravel()] = True
    at = np.array([i for i in order if not reached[i]])[None, :].repeat(len(rows), 0)
    feature, value = np.array(lists["nodes_featureids"]), np.array(lists["nodes_values"], np.float32)
    below = np.array([mode == b"BRANCH_LT" for mode in lists["nodes_modes"]])
    visits = 0
    while inner[at].any():
        x = np.take_along_axis(rows, feature[at], 1)
        true = np.where(below[at], x < value[at], x <= value[at])
        visits += int(inner[at].sum())
        at = np.where(inner[at], np.where(true, child[1][at], child[0][at]), at)
    return visits / len(rows)


def loads_per_second(cpu):
    """Independent loads of 4 bytes from the first cache, gathered or not: the best of some runs of a small C program."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "loads")
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, os.path.join(HERE, "loads.c")], check=True)
        output = subprocess.run(["taskset", "-c", str(cpu), program], check=True, capture_output=True, text=True)
    return float(output.stdout)


def cell(bench, path, batch, cpu, seconds, folder):
    random = np.random.Generator(np.random.PCG64(batch))
    model = onnx.load(path).graph
    port = model.input[0]
    rows = random.standard_normal((batch, port.type.tensor_type.shape.dim[1].dim_value), np.float32)
    inputs = {port.name: rows}
    bench.write_inputs(inputs)
    ours = Runner(bench.starling(path, batch, [cpu], inputs), folder)
    peer = Runner(bench.peer("onnxruntime", path, [cpu], inputs), folder)
    in_turns([ours, peer], seconds)
    for runner in (ours, peer):
        if runner.error:
            raise SystemExit(f"{path}: {runner.process.name}: {runner.error}")
    error, text = disagreement(peer.answers[0], ours.answers[0])
    visits = visits_per_row(path, rows[: min(batch, 200)])
    row = {
        "batch": batch,
        "starling_us": ours.milliseconds() * 1e3,
        "onnxruntime_us": peer.milliseconds() * 1e3,
        "ratio": peer.milliseconds() / ours.milliseconds(),
        "ratio_interval": ratio_interval(ours, peer),
        "turns": len(ours.medians),
        "visits_per_row": visits,
        "ns_per_visit": ours.milliseconds() * 1e6 / batch / visits,
        "error": text or error,
    }
    for runner in (ours, peer):
        runner.process.end()
    return row


def main():
    options = arguments()
    result = {
        **origin("perf/trees/trees.sh"),
        "rows": [],
    }
    loads = loads_per_second(options.cpu)
    result["limit_ns_per_visit"] = LOADS_PER_VISIT * 1e9 / loads
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, ["onnxruntime"], [], options.seconds, folder)
        for name in options.models.split(","):
            for batch in map(int, options.batches.split(",")):
                row = cell(bench, os.path.join(options.forests, f"{name}.onnx"), batch, options.cpu, options.seconds, folder)
                result["rows"].append({"model": name, **row})
                print(f"{name} batch {batch}: {row['starling_us']:.1f} us, ONNX Runtime {row['onnxruntime_us']:.1f} us, ratio "
                      f"{row['ratio']:.2f}; {row['ns_per_visit']:.2f} ns a visit, limit {result['limit_ns_per_visit']:.2f}; "
                      f"error {row['error']}", flush=True)
                with open(options.out, "w") as file:
                    json.dump(result, file, indent=2)


main()
