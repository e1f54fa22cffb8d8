# SPDX-License-Identifier: Apache-2.0
"""Starling against ONNX Runtime, OpenVINO, ncnn and MNN: the same file, the same cores, in turns.

    engine.py --zoo DIR --out FILE.json [--models ...] [--batches 1,8] [--cores 1] [--seconds 5]
    engine.py --zoo DIR --out FILE.json --workers resnet50    memory of six workers of one model

FILE.json and FILE.md are written after every cell. README.md says what the columns mean.
"""

import argparse
import contextlib
import glob
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cell
import table
from process import EngineError

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", folder) for folder in ("zoo", "serving")]
import checking  # noqa: E402
from origin import commit  # noqa: E402

CREW = "1,1,2,4,8,16"
PEAK = 1024
PROGRAM = os.path.join(HERE, "../../build/release/bin/starling-engine")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", required=True, metavar="DIR", help="take the models from DIR, as NAME.onnx (required)")
    parser.add_argument(
        "--out", required=True, metavar="FILE",
        help="write the result to FILE as JSON, and its table beside it as Markdown (required)",
    )
    parser.add_argument("--program", default=PROGRAM, metavar="FILE", help="measure the build FILE of starling-engine (default: %(default)s)")
    parser.add_argument("--models", metavar="NAMES", help="measure the models NAMES alone, separated by commas (default: all)")
    parser.add_argument("--batches", default="1,8", metavar="N,...", help="measure batches of N samples (default: %(default)s)")
    parser.add_argument("--cores", default="1", metavar="N,...", help="measure on N cores (default: %(default)s)")
    parser.add_argument("--cpus", metavar="A,B,...", help="run on the CPUs A, B, ... (default: the first that are allowed)")
    parser.add_argument(
        "--seconds", type=float, default=5, metavar="SECONDS",
        help="take turns for SECONDS seconds in each cell (default: %(default)s)",
    )
    parser.add_argument(
        "--peers", default="onnxruntime,openvino,ncnn,mnn", metavar="NAMES",
        help="compare with the engines NAMES (default: %(default)s)",
    )
    parser.add_argument("-O", "--option", action="append", default=[], metavar="KEY=VALUE", help="set the compiler's KEY; repeatable (default: none)")
    parser.add_argument("--without", metavar="PASSES", help="leave out the graph passes PASSES (default: none)")
    parser.add_argument("--tune", choices=["off", "quick", "full"], help="let Starling time its algorithms or not (default: the compiler's)")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --out that are measured already")
    parser.add_argument(
        "--workers", metavar="NAMES",
        help="measure the memory of workers of several batch sizes of the models NAMES instead (default: none)",
    )
    options = parser.parse_args()
    options.option += [f"without_passes={options.without}"] if options.without else []
    options.option += [f"tune={options.tune}"] if options.tune else []
    return options


def numbers(text):
    return [int(n) for n in text.split(",")]


def peak_model(path):
    """A product of two square matrices, of which one is a weight."""
    weight = np.random.Generator(np.random.PCG64(1)).standard_normal((PEAK, PEAK), np.float32)
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [PEAK, PEAK]) for name in ("a", "c")]
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    graph = helper.make_graph([node], "peak", ports[:1], ports[1:], [numpy_helper.from_array(weight, "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def start_peak(options, folder, cpus):
    """The matrix product as Starling computes it on one core with its default options."""
    own = os.path.join(folder, "peak")
    os.makedirs(own)
    bench = cell.Bench(options.program, [], [], 0, own)
    path = os.path.join(own, "peak.onnx")
    peak_model(path)
    inputs = {"a": np.random.Generator(np.random.PCG64(2)).standard_normal((PEAK, PEAK), np.float32)}
    bench.write_inputs(inputs)
    runner = cell.Runner(bench.starling(path, 1, cpus[:1], inputs), own)
    if runner.error:
        sys.exit(f"engine.py: the matrix product that the peak is measured with: {runner.error}")
    return runner


def check_options(options):
    """A wrong option is said once, not in every row."""
    command = [options.program, "--model", "none", *(word for option in options.option for word in ("--option", option))]
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except OSError as error:
        sys.exit(f"engine.py: {options.program}: {error.strerror}; build the target starling-engine, or name it with --program")
    if result.returncode != 0:
        sys.exit(f"engine.py: {result.stderr.strip()}")


def versions():
    return {name: importlib.metadata.version(name) for name in ("onnxruntime", "openvino", "ncnn", "pnnx", "MNN", "onnx")}


def models_of(options):
    names = options.models.split(",") if options.models else sorted(
        os.path.splitext(os.path.basename(path))[0] for path in glob.glob(os.path.join(options.zoo, "*.onnx"))
    )
    for name in names:
        if not os.path.exists(os.path.join(options.zoo, name + ".onnx")):
            sys.exit(f"engine.py: there is no {options.zoo}/{name}.onnx; perf/zoo/zoo.sh writes it")
    return names


def precision_of(options):
    return next((o.partition("=")[2] for o in reversed(options.option) if o.startswith("precision=")), "fp32")


def earlier(path):
    try:
        with open(path) as file:
            document = json.load(file)
        return document["rows"], document["workers"]
    except (FileNotFoundError, ValueError, KeyError):
        return [], []


def key(row):
    return row["model"], row["precision"], row["batch"], row["cores"]


def say(row, seconds):
    ours = row["starling"]
    if "error" in ours:
        text = "refused: " + ours["error"]
    else:
        figures = f"{ours['ms']:.2f} ms, ratio {row['ratio'] or 0:.2f}, share of peak {row['share_of_peak']:.2f}"
        text = f"{figures}, error {table.error(row)}"
    print(f"{row['model']} batch {row['batch']} cores {row['cores']}: {text} ({seconds:.0f} s)", flush=True)


def say_summary(figures):
    mean, least = figures["geomean_ratio"] or 0, figures["min_ratio"] or 0
    for row in figures["slower"]:
        print(f"slower: {row['model']} batch {row['batch']}: {row['ratio']:.2f} of {row['peer']}")
    print(f"geometric mean {mean:.3f}, least {least:.3f} over {figures['rows_counted']} rows")


def measure_cells(options, cpus, folder, peak, rows, keep):
    origin = {"commit": commit(), "processor": peak.process.order("machine")["cpu"]}
    bench = cell.Bench(options.program, options.peers.split(","), options.option, options.seconds, folder)
    for name in models_of(options):
        path = os.path.join(options.zoo, name + ".onnx")
        model = onnx.load(path, load_external_data=False)
        for cores in numbers(options.cores):
            for batch in numbers(options.batches):
                row = {"model": name, "precision": precision_of(options), "batch": batch, "cores": cores}
                if options.resume and key(row) in map(key, rows):
                    continue
                start = time.monotonic()
                inputs, sizes = checking.inputs_of(model, batch), checking.open_sizes(model)
                row.update(origin, date=time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()))
                row.update(cell.measure(bench, path, batch, cpus[:cores], inputs, sizes, peak))
                rows[:] = [r for r in rows if key(r) != key(row)] + [row]
                keep()
                say(row, time.monotonic() - start)


def measure_crew(options, cpus, folder, name):
    """Resident memory that workers add to a process: together, as copies, and the largest alone."""
    path = os.path.join(options.zoo, name + ".onnx")
    largest = max(numbers(CREW))
    plan = os.path.join(folder, "crew.plan")
    bench = cell.Bench(options.program, [], options.option, 0, folder)
    with bench.starling(path, largest, cpus[:1], {}, keep=plan) as process:
        process.order("load")
    grown = {}
    for label, sizes, flags in (("shared", CREW, []), ("copies", CREW, ["--copies"]), ("one", str(largest), [])):
        with bench.starling(path, largest, cpus[:1], {}, plan=plan, flags=flags) as process:
            reply = process.order(f"workers {sizes}")
        grown[label + "_bytes"] = reply["after_bytes"] - reply["before_bytes"]
    saved = 1 - grown["shared_bytes"] / grown["copies_bytes"]
    return {"model": name, "sizes": CREW, **grown, "weights_bytes": reply["weights_bytes"], "saved": saved}


def measure_crews(options, cpus, folder, crews, keep):
    for name in options.workers.split(","):
        try:
            crew = measure_crew(options, cpus, folder, name)
        except EngineError as error:
            print(f"{name}: {error}", flush=True)
            continue
        crews[:] = [c for c in crews if c["model"] != name] + [crew]
        keep()
        shared, copies = crew["shared_bytes"] / 1e6, crew["copies_bytes"] / 1e6
        print(f"{name}: {shared:.0f} MB, copies {copies:.0f} MB, saved {crew['saved']:.1%}", flush=True)


def main():
    options = parse()
    allowed = sorted(os.sched_getaffinity(0))
    cpus = numbers(options.cpus) if options.cpus else allowed
    wanted = max(numbers(options.cores))
    if len(cpus) < wanted:
        sys.exit(f"engine.py: {wanted} cores are wanted, this process may use {len(cpus)}")
    check_options(options)
    rows, crews = earlier(options.out) if options.resume or options.workers else ([], [])
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        peak = start_peak(options, folder, cpus)
        stack.enter_context(peak.process)
        header = {
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "command": " ".join(["perf/engine/engine.sh", *sys.argv[1:]]),
            "machine": peak.process.order("machine"),
            "versions": versions(),
            "seconds_per_cell": options.seconds,
        }

        def keep():
            table.write(options.out, header, rows, crews)

        if options.workers:
            measure_crews(options, cpus, folder, crews, keep)
        else:
            measure_cells(options, cpus, folder, peak, rows, keep)
            say_summary(table.summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
