# SPDX-License-Identifier: Apache-2.0
"""What an administrator waits for, in two builds of starling in turns: starts, reloads, applies, and what traffic hears of them.

    control.py --trees BEFORE,AFTER --out FILE [--rounds N] [--build NAME] [--models DIR] [--seconds SECONDS]

A tree is a folder of sources with its build in TREE/build/NAME. Each round runs every measurement once for each tree, in a process of its own
with that tree's command and Python package; the next round begins with the other tree. Models are copies of the smallest network of the digits,
their plans in a cache.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTS = (1, 20, 100)
NETWORK = "mlp"
CHANGES = 20  # reloads, and applies, of one measurement


# ---- one measurement of one tree, in a process of its own ----


def fill(repository, names, file):
    from starts import add_model

    for name in names:
        add_model(repository, name, file)


def command(options, runtime, *words):
    begun = time.perf_counter()
    answer = subprocess.run([options.program, words[0], "--name", runtime.socket, *words[1:]], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(f"starling {' '.join(words)}: {answer.stderr}")
    return 1000 * (time.perf_counter() - begun)


def start(options, folder, count):
    """Milliseconds to READY with `count` models, their plan in the cache."""
    from starts import Runtime, wait_for_cache

    repository, cache = f"{folder}/repository", f"{folder}/cache"
    os.mkdir(cache)
    fill(repository, [f"model{number}" for number in range(count)], options.file)
    for _ in range(2):
        runtime = Runtime(options.program, repository, cache)
        wait_for_cache(cache)
        log = runtime.log()
        runtime.end()
        if log.count("event=model-ready") < count:
            raise SystemExit(log)
    return {f"start_{count}_ms": 1000 * runtime.ready_seconds}


def change(options, folder):
    """Reloads and applies under traffic: how long each takes, and the 99th percentile of a request meanwhile and before."""
    import starling

    from starts import Runtime, Traffic, percentile, wait_for_cache

    repository, cache, figures = f"{folder}/repository", f"{folder}/cache", {}
    os.mkdir(cache)
    fill(repository, [NETWORK, "other"], options.file)
    runtime = Runtime(options.program, repository, cache)
    wait_for_cache(cache)
    for number, batches in enumerate(("[[1, 0], [0, 1]]", "[[0, 1], [1, 0]]")):
        with open(f"{folder}/{number}.yaml", "w") as file:
            rows = "".join(f"  - {{device: 'cpu:{core}', batches: {row}}}\n" for core, row in zip(options.cores, json.loads(batches)))
            file.write(f"models: [{NETWORK}, other]\nrows:\n{rows}")
    with starling.Client(runtime.socket) as client:
        traffic = Traffic(client, NETWORK)
        time.sleep(options.seconds)
        marks = [time.perf_counter()]
        reloads = [command(options, runtime, "reload", NETWORK) for _ in range(CHANGES)]
        marks.append(time.perf_counter())
        applies = [command(options, runtime, "apply", f"{folder}/{number % 2}.yaml") for number in range(CHANGES)]
        marks.append(time.perf_counter())
        traffic.end()
    runtime.end()
    spans = {"alone": (0, marks[0]), "reload": marks[0:2], "apply": marks[1:3]}
    for name, (begun, ended) in spans.items():
        took = [1e6 * seconds for at, seconds in traffic.requests if begun < at < ended]
        figures[f"p99_{name}_us"] = percentile(took, 0.99)
    return {"reload_ms": statistics.median(reloads), "apply_ms": statistics.median(applies), **figures}


def load(options, folder):
    """The 99th percentile of a request while twenty models are loaded beside it."""
    from starts import measure_loads

    options.loads, options.scratch = 20, folder
    os.link(options.file, f"{folder}/{NETWORK}.onnx")
    row = measure_loads(options, folder, NETWORK, NETWORK)
    return {"loads_20_ms": 1000 * row["loads_s"], "p99_loads_us": 1000 * row["p99_beside_ms"]}


def measure(options):
    cores = sorted(os.sched_getaffinity(0))
    options.cores = [cores[0], cores[-1]]
    with tempfile.TemporaryDirectory(prefix="starling-control-") as folder:
        options.file = f"{folder}/model.onnx"
        with open(f"{options.models}/{NETWORK}/1/model.onnx", "rb") as source, open(options.file, "wb") as copy:
            copy.write(source.read())
        os.mkdir(f"{folder}/work")
        if options.measure.startswith("start"):
            return start(options, f"{folder}/work", int(options.measure[len("start"):]))
        return {"change": change, "load": load}[options.measure](options, f"{folder}/work")


# ---- all of them, in turns ----


def measure_tree(options, tree, what):
    build = f"{tree}/build/{options.build}"
    words = ["--measure", what, "--program", f"{build}/bin/starling", "--models", options.models, "--seconds", str(options.seconds)]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tree}/client/python:{HERE}:{HERE}/../serving",
        "STARLING_LIBRARY": f"{build}/lib/libstarling.so",
        "STARLING_PYTHON": "ctypes",
    }
    answer = subprocess.run([sys.executable, os.path.abspath(__file__), *words], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(answer.stdout)


def compare(options):
    from origin import origin

    measured = [{} for _ in options.trees]
    for round_number in range(options.rounds):
        for what in [f"start{count}" for count in COUNTS] + ["change", "load"]:
            order = list(range(len(options.trees)))
            for index in order if round_number % 2 == 0 else reversed(order):
                for figure, value in measure_tree(options, options.trees[index], what).items():
                    measured[index].setdefault(figure, []).append(value)
        print(f"round {round_number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    rows = []
    for figure in measured[0]:
        values = [[round(value, 4) for value in tree[figure]] for tree in measured]
        ratios = [after / before for before, after in zip(*values)]
        medians = [round(statistics.median(column), 4) for column in values]
        rows.append({"figure": figure, "before": medians[0], "after": medians[1], "ratio": round(statistics.median(ratios), 3),
                     "ratio_low": round(min(ratios), 3), "ratio_high": round(max(ratios), 3), "rounds": values})
        print(f"{figure:16} {medians[0]:12.3f} {medians[1]:12.3f} {rows[-1]['ratio']:8.3f}  ({rows[-1]['ratio_low']} to {rows[-1]['ratio_high']})")
    commits = [subprocess.run(["git", "-C", tree, "describe", "--always", "--dirty=*"], capture_output=True, text=True, check=False).stdout.strip() for tree in options.trees]
    return {**origin("perf/starts/control.sh"), "before": commits[0], "after": commits[1], "load_average": os.getloadavg(), "figures": rows}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", metavar="BEFORE,AFTER", help="compare these two trees (required)")
    parser.add_argument("--out", metavar="FILE", help="write the result to FILE as JSON (required)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="take N rounds (default: %(default)s)")
    parser.add_argument("--build", default="release", metavar="NAME", help="measure TREE/build/NAME (default: %(default)s)")
    parser.add_argument("--models", default="client/examples/digits/models", metavar="DIR", help="take the network from DIR (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=2, metavar="SECONDS", help="send requests for SECONDS seconds before changes (default: %(default)s)"
    )
    parser.add_argument("--measure", metavar="WHAT", help="measure WHAT alone in this process, as each round does (default: none)")
    parser.add_argument("--program", metavar="FILE", help="measure the command FILE, with --measure (default: none)")
    options = parser.parse_args()
    options.models = os.path.abspath(options.models)
    if not options.measure:
        options.trees = [os.path.abspath(tree) for tree in (options.trees or "").split(",")]
        if len(options.trees) != 2 or not options.out:
            parser.error("--trees BEFORE,AFTER and --out FILE are required")
    return options


def main():
    options = read_arguments()
    if options.measure:
        print(json.dumps(measure(options)))
        return
    report = compare(options)
    with open(options.out, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
