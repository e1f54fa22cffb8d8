# SPDX-License-Identifier: Apache-2.0
"""INFaaS's question inside one host: a load that goes up and down, and queries that say what they need, beside the same requests to one variant.

    infaas.py [--loads 0.5,2,0.5] [--seconds 5] [--repeats 5] [--latency_ms 10] [--saturated 2] [--out FILE.json] [--program FILE]

Sources: INFaaS, sections 6.1 to 6.3 and figures 5 and 6. Live: one runtime serves three of the digits networks with one worker each, and two tasks of
them, by our rule of choice and by the paper's. Loads are shares of what the most accurate network alone answers. The same requests at the same times go
each query's own way, to the most accurate and to the cheapest. A request has one of three wishes at random. Violations are all requests but those that
were right or degraded. Each figure is the median of the repeats, and each ratio that of ratios within one.
"""

import os
import statistics

import experiment
from runtime import Runtime

DIGITS = os.path.join(experiment.HERE, "..", "..", "client", "examples", "digits", "models")
NETWORKS = {"mlp": 0.9783, "lenet": 0.9866, "densenet": 0.9967}  # as client/examples/digits/README.md has them
BEST = "densenet"
ENDS = ("right", "degraded", "poor", "late", "refused", "failed")


def task(rule):
    return f"task:\n  variants: [{', '.join(NETWORKS)}]\n  accuracy: [{', '.join(map(str, NETWORKS.values()))}]\n  load: all\n  choice: {rule}\n"


def wishes(latency_ms):
    return [f"accuracy=0.99,latency_ms={latency_ms}", f"accuracy=0.99,least=0.97,latency_ms={latency_ms}", f"accuracy=0.97,latency_ms={latency_ms}"]


def bench(options, runtime, *words):
    """What `starling bench` says, as JSON."""
    return experiment.run_json([options.program, "bench", words[0], "--runtime", runtime.socket, *words[1:], "--json"])


def capacity_of(options, runtime, name, *words):
    """Requests a second that one variant answers."""
    words = ["model", name, *words, "--warmup", "0.2", "--seconds"]
    return experiment.answered(lambda seconds: bench(options, runtime, *words, str(seconds))["requests_per_second"], options.saturated)


def summary(turn):
    """Of all wishes together."""
    sums = {end: sum(wish[end] for wish in turn["wishes"]) for end in ENDS}
    due, answered = sum(wish["due"] for wish in turn["wishes"]), sum(turn["answered_by"].values())
    accuracy = sum(NETWORKS[name] * n for name, n in turn["answered_by"].items())
    return {"due": due, **sums, "violations": 1 - (sums["right"] + sums["degraded"]) / due, "accuracy": accuracy / answered if answered else None,
            "core_seconds": turn["core_seconds"]}  # fmt: skip


def ask(options, runtime, rates, repeat):
    """One repeat, by way: the same seed for all."""
    words = [word for wish in wishes(options.latency_ms) for word in ("--wish", wish)]
    words += ["--rate", ",".join(f"{rate:.3f}" for rate in rates), "--seconds", str(options.seconds), "--turns", "1", "--seed", str(1 + repeat), "--deadlines"]
    made = {"infaas": bench(options, runtime, "query", "read-infaas", *words, "--ways", "choice")["ways"][0]["turns"][0]}
    for way in bench(options, runtime, "query", "read", *words, "--ways", "choice,accurate,cheapest")["ways"]:
        made[way["way"]] = way["turns"][0]
    return made


def median(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def compare(repeats):
    """By way: the median of each figure, and of those of it over those of `choice`."""
    summaries = [{way: summary(turn) for way, turn in repeat.items()} for repeat in repeats]
    made = {}
    for way in summaries[0]:
        made[way] = {key: median([each[way][key] for each in summaries]) for key in summaries[0][way]}
        for key in ("violations", "core_seconds"):
            made[way][f"{key}_over_choice"] = median([each[way][key] / each["choice"][key] if each["choice"][key] else None for each in summaries])
    return made


def times(ratio):
    return "   none" if ratio is None else f"{ratio:6.2f}x"


def show(ways):
    print(f"{'way':10} {'right':>8} {'degraded':>8} {'late':>8} {'refused':>8} {'poor':>8} {'accuracy':>8} {'violations':>10} {'to choice':>9} "
          f"{'core-s':>8} {'to choice':>9}")  # fmt: skip
    for way, made in ways.items():
        shares = " ".join(f"{made[end] / made['due']:8.2%}" for end in ("right", "degraded", "late", "refused", "poor"))
        print(f"{way:10} {shares} {made['accuracy'] or 0:8.4f} {made['violations']:10.2%} {times(made['violations_over_choice']):>9} "
              f"{made['core_seconds']:8.3f} {times(made['core_seconds_over_choice']):>9}", flush=True)  # fmt: skip


def main():
    options = experiment.read_arguments(__doc__, loads="0.5,2,0.5", seconds=5.0, repeats=5, latency_ms=10.0, saturated=2.0)
    loads = [float(load) for load in options.loads.split(",")]
    tasks = {"read": task("starling"), "read-infaas": task("infaas")}
    runtime = Runtime(options.program, {name: f"{DIGITS}/{name}/1/model.onnx" for name in NETWORKS}, tasks=tasks)
    try:
        runtime.connect().close()
        capacity = capacity_of(options, runtime, BEST, "--concurrency", "32")
        rates = [load * capacity for load in loads]
        print(f"{BEST} alone answers {capacity:.0f}/s; steps of {options.seconds} s at {', '.join(f'{rate:.0f}' for rate in rates)}/s; live")
        repeats = [ask(options, runtime, rates, repeat) for repeat in range(options.repeats)]
    finally:
        runtime.close()
    ways = compare(repeats)
    show(ways)
    result = {**experiment.head("infaas"), "networks": NETWORKS, "wishes": wishes(options.latency_ms), "capacity_per_second": capacity, "loads": loads,
              "step_seconds": options.seconds, "ways": ways, "repeats": repeats}  # fmt: skip
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
