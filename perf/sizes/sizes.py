# SPDX-License-Identifier: Apache-2.0
"""Requests of any size, beside ONNX Runtime and OpenVINO, in turns.

    sizes.py --out FILE [--models A,B] [--peers A,B] [--requests N] [--turns N] [--memory-sizes N] [--program FILE] [--library FILE]

Each stream has a model with open dimensions and as many sizes, drawn with a seed. Starling serves it as it does by default; the peers
compute in this process, with one thread a request and open dimensions. A turn of each sends all requests one after the other, and once
more with 32 in flight, which the peers share among as many threads as there are CPUs. Answers are compared with those of the first peer.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import statistics
import tempfile
import time
import typing

import numpy as np
import onnx
from models import STREAMS
from origin import origin
from runtime import Runtime

IN_FLIGHT = 32
STEADY = 8  # times that a new size is asked for, after the first


@dataclasses.dataclass
class Engine:
    ask: typing.Callable  # (feeds): the first output
    submit: typing.Callable  # (feeds): a future of it
    close: typing.Callable = lambda: None


def pooled(ask, close=lambda: None):
    pool = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))

    def end():
        pool.shutdown()
        close()

    return Engine(ask, lambda feeds: pool.submit(ask, feeds), end)


def open_onnxruntime(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return pooled(lambda feeds: session.run(None, feeds)[0])


def open_openvino(path):
    import openvino

    model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": len(os.sched_getaffinity(0)), "INFERENCE_PRECISION_HINT": "f32"})
    requests = [model.create_infer_request() for _ in os.sched_getaffinity(0)]

    def ask(feeds):
        request = requests.pop()
        try:
            return request.infer(feeds)[0].copy()
        finally:
            requests.append(request)

    return pooled(ask)


PEERS = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}


def open_starling(client, name):
    model = client.model(name)

    def first(answer):
        return next(iter(answer.values())) if isinstance(answer, dict) else answer

    class Future:
        def __init__(self, feeds):
            self.future = client.submit(model, feeds)

        def result(self):
            return first(self.future.result(600))

    return Engine(lambda feeds: first(client.infer(model, feeds, timeout=600)), Future)


def await_any_size(engine, feeds):
    """Until the plan of any size is there, requests wait for plans of their own sizes."""
    for one in feeds:
        engine.ask(one)


def one_by_one(engine, feeds):
    times = []
    for one in feeds:
        begun = time.perf_counter()
        engine.ask(one)
        times.append(time.perf_counter() - begun)
    return times


def many_in_flight(engine, feeds):
    """Seconds of each request, from when it was sent until it was looked at in the order of sending, and of all together."""
    flight, times, begun = [], [], time.perf_counter()

    def take():
        future, sent = flight.pop(0)
        future.result()
        times.append(time.perf_counter() - sent)

    for one in feeds:
        flight.append((engine.submit(one), time.perf_counter()))
        if len(flight) == IN_FLIGHT:
            take()
    while flight:
        take()
    return times, time.perf_counter() - begun


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def in_turns(engines, feeds, turns):
    """Medians over the turns."""
    seen = {name: {key: [] for key in ("p50_us", "p99_us", "per_second", "flight_p99_us", "flight_per_second")} for name in engines}
    for _ in range(turns):
        for name, engine in engines.items():
            times = one_by_one(engine, feeds)
            flight, seconds = many_in_flight(engine, feeds)
            for key, value in (("p50_us", 1e6 * percentile(times, 0.5)), ("p99_us", 1e6 * percentile(times, 0.99)),
                               ("per_second", len(feeds) / sum(times)), ("flight_p99_us", 1e6 * percentile(flight, 0.99)),
                               ("flight_per_second", len(feeds) / seconds)):  # fmt: skip
                seen[name][key].append(value)
    return {name: {key: round(statistics.median(values), 1) for key, values in row.items()} for name, row in seen.items()}


def worst_difference(engines, feeds):
    """The largest error of Starling's answers, as a share of the largest value of each; None: there is no peer."""
    peers = [name for name in engines if name in PEERS]
    if not peers:
        return None
    worst = 0.0
    for one in feeds:
        wanted, got = engines[peers[0]].ask(one), engines["starling"].ask(one)
        if got.shape != wanted.shape:
            raise SystemExit(f"Starling's answer is {list(got.shape)}, that of {peers[0]} {list(wanted.shape)}")
        if wanted.size:
            worst = max(worst, float(np.abs(got - wanted).max() / np.abs(wanted).max()))
    return worst


def first_and_steady(engine, feeds):
    """Medians over sizes that are new: the first answer, and what the same size takes then."""
    first, steady = [], []
    for one in feeds:
        times = one_by_one(engine, [one] * (1 + STEADY))
        first.append(times[0])
        steady.append(statistics.median(times[1:]))
    return {"first_us": round(1e6 * statistics.median(first), 1), "steady_us": round(1e6 * statistics.median(steady), 1)}


def at_fixed_sizes(stream, any_size, compiled, turns):
    """Medians of one request after the other, by the plan of any size and by one that was compiled for the size."""
    rows = []
    for size in stream.fixed:
        feeds = [stream.feeds(np.random.default_rng(7), size)] * 20
        seen = {"any_size": [], "compiled": []}
        for _ in range(turns + 1):
            seen["any_size"] += one_by_one(any_size, feeds)[1:]
            seen["compiled"] += one_by_one(compiled, feeds)[1:]
        rows.append({"size": size, **{f"{name}_us": round(1e6 * statistics.median(times), 1) for name, times in seen.items()}})
    return rows


def compare(row):
    """Ratios to the faster peer: above 1 where Starling is faster."""
    peers = [row["engines"][name] for name in PEERS if name in row["engines"]]
    if not peers:
        return {}
    own, best = row["engines"]["starling"], {key: max(peer[key] for peer in peers) for key in ("per_second", "flight_per_second")}
    return {
        "one_over_peer": round(own["per_second"] / best["per_second"], 3),
        "flight_over_peer": round(own["flight_per_second"] / best["flight_per_second"], 3),
        "flight_p99_over_peer": round(own["flight_p99_us"] / min(peer["flight_p99_us"] for peer in peers), 3),
    }


def write_models(folder, names):
    paths = {}
    for name in names:
        paths[name] = os.path.join(folder, f"{name}.onnx")
        onnx.save(STREAMS[name].model(), paths[name])
    return paths


def configs_of(names):
    """Beside each model as it is by default: one plan of any size alone, and plans of single sizes alone."""
    configs = {}
    for name in names:
        stream = STREAMS[name]
        configs[name] = ""
        configs[f"{name}-any"] = "any_size: true\n"
        configs[f"{name}-compiled"] = f"any_size: false\nprepared_shapes: {[stream.symbols(size) for size in stream.fixed]}\n"
    return configs


def measure_stream(options, name, path, runtime, client):
    stream, random = STREAMS[name], np.random.default_rng(20)
    n = options.requests or stream.requests
    feeds = [stream.feeds(random, size) for size in stream.sizes(random, n)]
    engines = {"starling": open_starling(client, name)} | {peer: PEERS[peer](path) for peer in options.peers}
    any_size, compiled = open_starling(client, f"{name}-any"), open_starling(client, f"{name}-compiled")
    await_any_size(engines["starling"], feeds[:3])
    row = {"stream": name, "requests": n, "worst_difference": worst_difference(engines, feeds[:20])}
    fresh = [stream.feeds(random, size) for size in stream.sizes(np.random.default_rng(21), max(3, n // 30))]
    row["new_sizes"] = {peer: first_and_steady(any_size if peer == "starling" else engine, fresh) for peer, engine in engines.items()}
    row["engines"] = in_turns(engines, feeds, options.turns)
    row |= compare(row)
    row["fixed"] = at_fixed_sizes(stream, any_size, compiled, options.turns)
    before, sizes = runtime.proportional_bytes(), stream.sizes(np.random.default_rng(22), options.memory_sizes)
    one_by_one(any_size, [stream.feeds(random, size) for size in sizes])
    row["memory"] = {"sizes": len(sizes), "model_bytes": os.path.getsize(path), "grown_bytes": runtime.proportional_bytes() - before}
    for engine in engines.values():
        engine.close()
    return row


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="FILE", help="write the result to FILE as JSON (required)")
    parser.add_argument("--models", default=",".join(STREAMS), metavar="NAMES", help="measure the streams NAMES (default: %(default)s)")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAMES", help="measure the engines NAMES beside (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=0, metavar="N", help="send N requests a turn (default: as the stream says)")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="take N turns (default: %(default)s)")
    parser.add_argument("--memory-sizes", type=int, default=500, metavar="N", help="measure the memory that N sizes take (default: %(default)s)")
    parser.add_argument("--program", default="build/release/bin/starling", metavar="FILE", help="measure the command FILE (default: %(default)s)")
    parser.add_argument("--library", default="build/release/lib/libstarling.so", metavar="FILE", help="load the library FILE (default: %(default)s)")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    os.environ.setdefault("STARLING_LIBRARY", os.path.abspath(options.library))
    options.models, options.peers = ([name for name in names.split(",") if name] for names in (options.models, options.peers))
    for name in options.models:
        if name not in STREAMS:
            parser.error(f'no stream "{name}": there are {", ".join(STREAMS)}')
    for name in options.peers:
        if name not in PEERS:
            parser.error(f'no engine "{name}": there are {", ".join(PEERS)}')
    return options


def main():
    options = read_arguments()
    report = {"benchmark": "sizes", **origin("perf/sizes/sizes.sh"), "streams": []}
    with tempfile.TemporaryDirectory(prefix="starling-sizes-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        paths = write_models(folder, options.models)
        configs = configs_of(options.models)
        runtime = Runtime(options.program, {name: paths[name.split("-")[0]] for name in configs}, configs=configs)
        try:
            with runtime.connect() as client:
                for name in options.models:
                    row = {"processor": report["processor"], **measure_stream(options, name, paths[name], runtime, client)}
                    report["streams"].append(row)
                    print(json.dumps(row))
        finally:
            runtime.close()
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
