# SPDX-License-Identifier: Apache-2.0
"""What queries without a model cost and reach, row by row, beside the goals that were set.

    queries.py [--rows choice,added,names,changes,wake,decision,accuracy] [--zoo DIR] [--before FILE] [--seconds 5] [--turns 5]
               [--loads 0.5,1,2,4] [--latency_ms 10] [--saturated 2] [--variants 175] [--per_second 9] [--out FILE.json] [--program FILE]

Live. Each row has a runtime of its own, and is asked by `starling bench query` or this script's client. Ways and states that are compared take turns, and
each figure is the median of the turns, each ratio or difference that of those within one.

    choice     a client's choice among so many variants that suit, whose page is rewritten every millisecond, beside brute force
    added      a query beside a request by name: a perceptron, one request in flight and 32
    names      a request by name, as this program serves it and as the program --before does, which may be older than queries: no-ops, a small perceptron
               and the digits ensemble, by `starling bench small`; without --before nothing
    changes    one of two equal variants leaves or comes so often a second under load, beside the same load without changes
    wake       a variant on standby, and one that is loaded from the cache of plans, until the request that chooses it is answered, less a request when it
               serves; `resnet50` of --zoo
    decision   the load becomes four times as high: until autoscaling decides
    accuracy   violations and mean accuracy at loads that are shares of what the most accurate variant answers, beside that one alone, the fastest alone,
               the rule of INFaaS, and the mix of greatest mean accuracy that the variants could answer
"""

import datetime
import itertools
import json
import os
import re
import statistics
import tempfile
import threading
import time

import numpy as np
import onnx

import experiment
import infaas
from infaas import BEST, DIGITS, NETWORKS, bench, median, summary, task
from mix import best_mix
from runtime import Runtime

WAKES = {"standby": "load: standby\nidle_standby_s: 1\n", "cached": "load: on_request\nidle_unload_s: 1\n"}
LEAST = 0.97
SAMPLES = 16  # of a request of rows that are about a load, so that the client is not what is measured
GOALS = {
    "choice": "p50 1 us, p99 3 us",
    "added": "+0.2 us at p50; 0.97 x with 32 in flight",
    "names": "0.98 to 1.02",
    "changes": "p99 1.3 x; worst one batch + 10 ms",
    "wake": "standby 20 ms, cached 100 ms",
    "decision": "50 ms or 20 requests",
    "accuracy": "violations 1 %; accuracy within 0.2 points of the bound",
}


def digits(name):
    return f"{DIGITS}/{name}/1/model.onnx"


def counts(way, turn):
    return way["turns"][turn]["wishes"][0]


def capacity_of(options, runtime, name):
    """Requests a second of SAMPLES that one variant answers."""
    return infaas.capacity_of(options, runtime, name, "--batch", str(SAMPLES), "--concurrency", "8")


def ways_of(result):
    return {way["way"]: way for way in result["ways"]}


# ---- a choice by itself ----


def choice(options):
    words = ["--choice", str(options.variants), "--turns", str(options.turns), "--seconds", str(options.seconds), "--json"]
    result = experiment.run_json([options.program, "bench", "query", *words])
    quantiles = ("p50_ns", "p99_ns", "p999_ns")
    kinds = {kind: {q: median([turn[kind][q] for turn in result["turns"]]) for q in quantiles} for kind in ("choices", "renewals", "brute_force")}
    return {"variants": options.variants, **kinds, "wrong": sum(turn["wrong"] for turn in result["turns"]), "turns": result["turns"]}


# ---- what a query adds ----


def write_perceptron(path):
    """y [N,10] = x [N,64] times weights, plus a bias."""
    dice = np.random.default_rng(1)
    weights = [onnx.numpy_helper.from_array(dice.standard_normal(shape).astype(np.float32), name) for name, shape in (("w", (64, 10)), ("b", (10,)))]
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["m"]), onnx.helper.make_node("Add", ["m", "b"], ["y"])]
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ("N", columns)) for name, columns in (("x", 64), ("y", 10))]
    graph = onnx.helper.make_graph(nodes, "perceptron", ports[:1], ports[1:], weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)


def added(options):
    made = {}
    with tempfile.TemporaryDirectory(prefix="starling-queries-") as folder:
        path = os.path.join(folder, "perceptron.onnx")
        write_perceptron(path)
        runtime = Runtime(options.program, {"perceptron": path}, tasks={"one": "task:\n  variants: [perceptron]\n  accuracy: [0.9]\n"})
        try:
            runtime.connect().close()
            for flying in (1, 32):
                words = ["--concurrency", str(flying), "--ways", "choice,perceptron", "--turns", str(options.turns), "--seconds", str(options.seconds)]
                ways = ways_of(bench(options, runtime, "query", "one", "--wish", "accuracy=0.9", *words))
                made[str(flying)] = compare_added(ways, options.turns)
        finally:
            runtime.close()
    return made


def figures_of(way, turn):
    made = counts(way, turn)
    return {**made, "per_second": made["right"] / way["turns"][turn]["seconds"]}


def compare_added(ways, turns):
    pairs = [{name: figures_of(way, turn) for name, way in ways.items()} for turn in range(turns)]
    return {
        "query_p50_ns": median([pair["choice"]["p50_ns"] for pair in pairs]),
        "by_name_p50_ns": median([pair["perceptron"]["p50_ns"] for pair in pairs]),
        "added_p50_ns": median([pair["choice"]["p50_ns"] - pair["perceptron"]["p50_ns"] for pair in pairs]),
        "throughput_ratio": median([pair["choice"]["per_second"] / pair["perceptron"]["per_second"] for pair in pairs]),
        "turns": pairs,
    }


# ---- a request by name, in two builds ----


def ask_by_name(options, program):
    words = ["bench", "small", "--digits", DIGITS, "--json", *(["--quick"] if options.seconds < 1 else [])]
    result = experiment.run_json([program, *words])
    return {subject: result[f"{subject}_rtt_p50_ns"] for subject in ("noop", "mlp", "digits")}


def names(options):
    if not options.before:
        return {"left_out": "--before names no program"}
    programs, turns = {"now": options.program, "before": options.before}, []
    for turn in range(options.turns):
        order = list(programs) if turn % 2 == 0 else list(reversed(programs))
        turns.append({build: ask_by_name(options, programs[build]) for build in order})
    ratios = {f"{subject}_ratio": median([turn["now"][subject] / turn["before"][subject] for turn in turns]) for subject in turns[0]["now"]}
    return {**ratios, "turns": turns}


# ---- variants that change under load ----


def change(admin, per_second, until, took):
    """Unloads the variant, or loads it, so often; what takes longer comes as often as it can."""
    due = time.monotonic()
    for turn in itertools.count():
        if time.monotonic() >= until and turn % 2 == 0:
            return
        begun = time.perf_counter()
        admin.unload("second") if turn % 2 == 0 else admin.load("second")
        took.append((time.perf_counter() - begun) * 1e3)
        due += 1 / per_second
        time.sleep(max(0, due - time.monotonic()))


def changes(options):
    config = "task:\n  variants: [first, second]\n  accuracy: [0.9967, 0.9967]\n  cost: [1, 1]\n  load: all\n"
    runtime = Runtime(options.program, {name: digits(BEST) for name in ("first", "second")}, tasks={"read": config})
    turns, took = [], []
    try:
        with runtime.connect(role="admin") as admin:
            capacity = capacity_of(options, runtime, "first")
            words = ["--wish", f"accuracy=0.99,samples={SAMPLES}", "--rate", f"{capacity / 2:.3f}", "--seconds", str(options.seconds)]
            words += ["--turns", "1", "--ways", "choice"]
            for turn in range(options.turns):
                made = {}
                for state in ("calm", "changed") if turn % 2 == 0 else ("changed", "calm"):
                    thread = threading.Thread(target=change, args=(admin, options.per_second, time.monotonic() + options.seconds, took))
                    if state == "changed":
                        thread.start()
                    made[state] = counts(bench(options, runtime, "query", "read", *words, "--seed", str(1 + turn))["ways"][0], 0)
                    if state == "changed":
                        thread.join()
                turns.append(made)
            batch_ms = admin.tasks()["read"][0].latency * 1e3
    finally:
        runtime.close()
    return {
        "rate_per_second": capacity / 2,
        "changes": len(took),
        "changes_per_second": len(took) / (options.turns * options.seconds),
        "change_ms": statistics.median(took),
        "calm_p99_ms": median([turn["calm"]["p99_ns"] for turn in turns]) / 1e6,
        "changed_p99_ms": median([turn["changed"]["p99_ns"] for turn in turns]) / 1e6,
        "p99_ratio": median([turn["changed"]["p99_ns"] / turn["calm"]["p99_ns"] for turn in turns]),
        "sample_ms": batch_ms,
        "calm_max_ms": max(turn["calm"]["max_ns"] for turn in turns) / 1e6,
        "changed_max_ms": max(turn["changed"]["max_ns"] for turn in turns) / 1e6,
        "lost": sum(turn[state]["due"] - turn[state]["right"] for turn in turns for state in turn),
        "turns": turns,
    }


# ---- until a variant serves ----


def wake_once(client, name, inputs, asleep):
    """Milliseconds that the first request takes more than one that follows."""
    while {entry.name: entry.state for entry in client.models()}[name] not in asleep:
        time.sleep(0.01)
    query = client.query("see", accuracy=0.5)
    took = []
    for _ in range(4):
        begun = time.perf_counter()
        client.infer(query, inputs)
        took.append((time.perf_counter() - begun) * 1e3)
    return took[0] - statistics.median(took[1:])


def wake(options):
    path = os.path.join(options.zoo, "resnet50.onnx") if options.zoo else digits(BEST)
    name = "resnet50" if options.zoo else BEST
    made = {"network": name}
    for kind, config in WAKES.items():
        runtime = Runtime(options.program, {name: path}, configs={name: config}, tasks={"see": f"task:\n  variants: [{name}]\n  accuracy: [0.9]\n"})
        try:
            with runtime.connect() as client:
                port = client.model(name).inputs[0]  # which loads what has never been
                inputs = np.zeros([1 if size is None or size < 0 else size for size in port.shape], np.float32)
                client.infer(client.query("see", accuracy=0.5), inputs)
                waits = [wake_once(client, name, inputs, ("standby",) if kind == "standby" else ("available",)) for _ in range(options.turns)]
        finally:
            runtime.close()
        made[kind] = {"ms": median(waits), "turns": waits}
    return made


# ---- until autoscaling decides ----


def decided_at(said, after, before):
    """When the log first says in that time that more workers come, or a faster variant; seconds."""
    for line in said.splitlines():
        found = re.match(r"(\S+) \S+ event=autoscale .*verdict=(grows|lacks|faster) ", line)
        if found:
            at = datetime.datetime.fromisoformat(found.group(1).replace("Z", "+00:00")).timestamp()
            if after <= at < before:
                return at
    return None


def decide(options, config, seed):
    """One turn: a runtime of its own, whose most accurate variant alone is loaded."""
    tasks = {"read": task("starling").replace("  load: all\n", "")}
    runtime = Runtime(options.program, {name: digits(name) for name in NETWORKS}, tasks=tasks, configs=dict.fromkeys(NETWORKS, "{}\n"),
                      arguments=["--config", config])  # fmt: skip
    try:
        runtime.connect().close()
        # More workers come in this loop, and have gone again when the load begins.
        low = 0.5 * capacity_of(options, runtime, BEST)
        time.sleep(3)
        words = ["--wish", f"accuracy=0.99,least={LEAST},latency_ms={options.latency_ms},samples={SAMPLES}", "--rate", f"{low:.3f},{4 * low:.3f}"]
        words += ["--seconds", str(options.seconds), "--turns", "1", "--ways", "choice", "--seed", str(seed)]
        raised = bench(options, runtime, "query", "read", *words)["ways"][0]["turns"][0]["begun_unix_ns"] / 1e9 + options.seconds
        runtime.log.seek(0)
        at = decided_at(runtime.log.read(), raised, raised + options.seconds)
    finally:
        runtime.close()
    return {"low_per_second": low, "decided_ms": (at - raised) * 1e3 if at else None, "requests": (at - raised) * 4 * low if at else None}


def decision(options):
    with tempfile.TemporaryDirectory(prefix="starling-queries-") as folder:
        config = os.path.join(folder, "runtime.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("autoscale: on\nthreads: {inline_us: 0}\n")
        turns = [decide(options, config, 1 + turn) for turn in range(options.turns)]
    known = [turn for turn in turns if turn["decided_ms"] is not None]
    figures = {"ms": median([turn["decided_ms"] for turn in known]), "requests": median([turn["requests"] for turn in known])}
    return {"decided": len(known), "of": len(turns), **figures, "turns": turns}


# ---- accuracy under overload ----


def ask_ways(options, runtime, rate, seed):
    """By way: the same requests at the same times."""
    words = ["--wish", f"accuracy=0.99,least={LEAST},latency_ms={options.latency_ms},samples={SAMPLES}", "--rate", f"{rate:.3f}"]
    words += ["--seconds", str(options.seconds), "--turns", "1", "--deadlines", "--seed", str(seed)]
    made = {"infaas": summary(bench(options, runtime, "query", "read-infaas", *words, "--ways", "choice")["ways"][0]["turns"][0])}
    for way in bench(options, runtime, "query", "read", *words, "--ways", "choice,accurate,cheapest")["ways"]:
        made[way["way"]] = summary(way["turns"][0])
    return made


def ask_load(options, runtime, load, capacities):
    rate = load * capacities[BEST]
    turns = [ask_ways(options, runtime, rate, 1 + turn) for turn in range(options.turns)]
    ways = {way: {key: median([turn[way][key] for turn in turns]) for key in ("violations", "accuracy", "core_seconds")} for way in turns[0]}
    bound = best_mix(capacities, NETWORKS, rate, min(len(NETWORKS), len(os.sched_getaffinity(0))))
    short = None if bound is None or ways["choice"]["accuracy"] is None else 100 * (bound - ways["choice"]["accuracy"])
    return {"load": load, "rate_per_second": rate, "bound": bound, "points_below_bound": short, "ways": ways, "turns": turns}


def accuracy(options):
    tasks = {"read": task("starling"), "read-infaas": task("infaas")}
    runtime = Runtime(options.program, {name: digits(name) for name in NETWORKS}, tasks=tasks)
    try:
        runtime.connect().close()
        capacities = {name: capacity_of(options, runtime, name) for name in NETWORKS}
        rows = [ask_load(options, runtime, float(load), capacities) for load in options.loads.split(",")]
    finally:
        runtime.close()
    return {"capacities_per_second": capacities, "loads": rows}


# ---- all ----

ROWS = {"choice": choice, "added": added, "names": names, "changes": changes, "wake": wake, "decision": decision, "accuracy": accuracy}


def without_turns(value):
    if isinstance(value, dict):
        return {key: without_turns(inner) for key, inner in value.items() if key != "turns"}
    return [without_turns(inner) for inner in value] if isinstance(value, list) else value


def main():
    options = experiment.read_arguments(__doc__, rows=",".join(ROWS), zoo="", before="", seconds=5.0, turns=5, loads="0.5,1,2,4", latency_ms=10.0,
                                        saturated=2.0, variants=175, per_second=9.0)  # fmt: skip
    for name in options.rows.split(","):
        if name not in ROWS:
            raise SystemExit(f"queries.py: no row \"{name}\": {', '.join(ROWS)}")
    made = {}
    for name in options.rows.split(","):
        made[name] = {"goal": GOALS[name], **ROWS[name](options)}
        print(f"{name} (goal: {GOALS[name]})\n{json.dumps(without_turns(made[name]), indent=1)}", flush=True)
    settings = {"seconds": options.seconds, "turns": options.turns, "latency_ms": options.latency_ms}
    experiment.write({**experiment.head("queries"), **settings, "rows": made}, options.out)


if __name__ == "__main__":
    main()
