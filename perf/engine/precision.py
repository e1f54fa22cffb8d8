# SPDX-License-Identifier: Apache-2.0
"""Precisions in turns: float32, int8 and bfloat16 of Starling, int8 of ONNX Runtime and OpenVINO, bfloat16 of OpenVINO.

    precision.py --zoo DIR --variants DIR --out FILE.json [--models ...] [--batches 1,8] [--cores 1,2] [--seconds 5]

What is missing in --variants is written there by `starling quantize`. FILE.json and FILE.md are written after every cell.
"""

import argparse
import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import cell
import precision_table
import variants

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", folder) for folder in ("zoo", "serving")]
import checking  # noqa: E402
from origin import commit  # noqa: E402

PROGRAM = os.path.join(HERE, "../../build/release/bin/starling-engine")
STARLING = os.path.join(HERE, "../../build/release/bin/starling")
MODELS = (
    "bert-base,densenet121,efficientnet-b0,googlenet,inceptionv3,minilm,mobilenetv2,mobilenetv3,"
    "resnet18,resnet50,resnext50,shufflenetv2,squeezenet,vgg16,xception"
)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", required=True, metavar="DIR", help="take the float32 models from DIR, as NAME.onnx (required)")
    parser.add_argument("--variants", required=True, metavar="DIR", help="take the int8 files from DIR, and write those that lack (required)")
    parser.add_argument(
        "--out", required=True, metavar="FILE",
        help="write the result to FILE as JSON, and its table beside it as Markdown (required)",
    )
    parser.add_argument("--program", default=PROGRAM, metavar="FILE", help="measure the build FILE of starling-engine (default: %(default)s)")
    parser.add_argument("--starling", default=STARLING, metavar="FILE", help="measure the command FILE (default: %(default)s)")
    parser.add_argument("--models", default=MODELS, metavar="NAMES", help="measure the models NAMES, separated by commas (default: %(default)s)")
    parser.add_argument("--batches", default="1,8", metavar="N,...", help="measure batches of N samples (default: %(default)s)")
    parser.add_argument("--cores", default="1", metavar="N,...", help="measure on N cores (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=5, metavar="SECONDS",
        help="take turns for SECONDS seconds in each cell (default: %(default)s)",
    )
    parser.add_argument(
        "--max-loss", default=1, metavar="X",
        help="let `starling quantize` lose X of its measure of accuracy (default: %(default)s, everything becomes int8)",
    )
    parser.add_argument("-O", "--option", action="append", default=[], metavar="KEY=VALUE", help="set the compiler's KEY; repeatable (default: none)")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --out that are measured already")
    parser.add_argument("--prepare", action="store_true", help="write the int8 files, and measure nothing")
    return parser.parse_args()


def cosine(ours, theirs):
    """Of all float outputs together; None: the outputs are not of the same shapes."""
    theirs = dict(theirs)
    if any(name not in theirs or theirs[name].shape != array.shape for name, array in ours):
        return None
    pairs = [(a.ravel().astype(np.float64), theirs[name].ravel().astype(np.float64)) for name, a in ours if a.dtype == np.float32]
    a, b = (np.concatenate(side) for side in zip(*pairs))
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30))


class Plan:
    """Who runs what: the engines of a cell, in the order of their turns."""

    def __init__(self, options, folder):
        self.benches = {}
        for precision in ("fp32", "int8", "bf16"):
            own = os.path.join(folder, precision)
            os.makedirs(own)
            more = ["precision=bf16"] if precision == "bf16" else []
            self.benches[precision] = cell.Bench(options.program, [], options.option + more, options.seconds, own)

    def processes(self, paths, batch, cpus, inputs, sizes):
        for precision, bench in self.benches.items():
            bench.write_inputs(inputs)
            path = paths["int8" if precision == "int8" else "fp32"]
            yield f"starling_{precision}", bench, bench.starling(path, batch, cpus, inputs, sizes=sizes)
        for peer, precision in (("onnxruntime", "int8"), ("openvino", "int8"), ("openvino", "bf16")):
            bench = self.benches[precision]
            path = paths["int8" if precision == "int8" else "fp32"]
            flags = ("--precision", "bf16") if precision == "bf16" else ()
            yield f"{peer}_{precision}", bench, bench.peer(peer, path, cpus, inputs, flags)


def measure(plan, paths, batch, cpus, inputs, sizes, seconds):
    with contextlib.ExitStack() as stack:
        runners = {}
        for name, bench, process in plan.processes(paths, batch, cpus, inputs, sizes):
            process.name = name
            runners[name] = cell.Runner(stack.enter_context(process), bench.folder)
        cell.in_turns(list(runners.values()), seconds)
        row = {name: runner.row() for name, runner in runners.items()}
    reference = runners["onnxruntime_int8"]
    for name, runner in runners.items():
        if not runner.error and not reference.error and len(runner.answers) == 1:
            row[name]["cosine_to_onnxruntime_int8"] = cosine(runner.answers[0], reference.answers[0])
    row.update(precision_table.judged(row))
    return row


def prepare(options, name):
    path = os.path.join(options.zoo, name + ".onnx")
    if not os.path.exists(path):
        sys.exit(f"precision.py: there is no {path}; perf/zoo/zoo.sh writes it")
    return {"fp32": path, "int8": variants.make(options.starling, checking, path, options.variants, options.max_loss)}


def measure_cells(options, cpus, folder, header, rows):
    plan = Plan(options, folder)
    for name in options.models.split(","):
        paths = prepare(options, name)
        model = onnx.load(paths["fp32"], load_external_data=False)
        for cores in map(int, options.cores.split(",")):
            for batch in map(int, options.batches.split(",")):
                row = {"model": name, "batch": batch, "cores": cores}
                if options.resume and precision_table.key(row) in map(precision_table.key, rows):
                    continue
                inputs, sizes = checking.inputs_of(model, batch), checking.open_sizes(model)
                row.update(date=time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()), commit=commit(), variant=variants.accuracy(paths["int8"]))
                row.update(measure(plan, paths, batch, cpus[:cores], inputs, sizes, options.seconds))
                rows[:] = [r for r in rows if precision_table.key(r) != precision_table.key(row)] + [row]
                precision_table.write(options.out, header, rows)
                print(precision_table.said(row), flush=True)


def main():
    options = parse()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < max(map(int, options.cores.split(","))):
        sys.exit(f"precision.py: {options.cores} cores are wanted, this process may use {len(cpus)}")
    if options.prepare:
        for name in options.models.split(","):
            print(f"{name}: {variants.accuracy(prepare(options, name)['int8'])}", flush=True)
        return 0
    rows = precision_table.earlier(options.out) if options.resume else []
    with tempfile.TemporaryDirectory() as folder:
        with cell.Bench(options.program, [], [], 0, folder).starling("none", 1, cpus[:1], {}) as process:
            machine = process.order("machine")
        header = {
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "command": " ".join(["perf/engine/precision.sh", *sys.argv[1:]]),
            "machine": machine,
            "versions": {name: importlib.metadata.version(name) for name in ("onnxruntime", "openvino", "onnx")},
            "seconds_per_cell": options.seconds,
        }
        measure_cells(options, cpus, folder, header, rows)
    for line in precision_table.goals_said(precision_table.summary(rows)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
