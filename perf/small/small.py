# SPDX-License-Identifier: Apache-2.0
"""What a small request costs from Python, beside ONNX Runtime in the process and behind a Unix socket, and from C.

    small.py --out FILE [--turns N] [--rounds N] [--seconds S] [--program FILE] [--library FILE] [--digits REPOSITORY]

The perceptron of `starling bench small`, one sample a request, on the first two CPUs. In turns: ONNX Runtime's session in this process,
Starling with an array of NumPy, Starling with an array of its arena, and a server with ONNX Runtime at the other end of a Unix socket.
Then, in turns, four client processes of Starling together and four of that one server. `c` is what `starling bench small` says.
The runtime is as it is by default; ONNX Runtime computes with one thread.
"""

import argparse
import json
import os
import platform
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from origin import origin

MODEL, INPUTS, OUTPUTS = "mlp-64-128-10", 64, 10
CLIENTS = 4
WARM_UP = 500


def open_session(file):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


# ---- the server behind a Unix socket: 64 floats in, 10 floats out


def serve_socket(file, path):
    import numpy

    session = open_session(file)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(16)
    loop = selectors.DefaultSelector()
    loop.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in loop.select():
            if key.fileobj is listener:
                loop.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            request = key.fileobj.recv(4 * INPUTS, socket.MSG_WAITALL)
            if len(request) < 4 * INPUTS:
                loop.unregister(key.fileobj)
                key.fileobj.close()
                continue
            features = numpy.frombuffer(request, numpy.float32).reshape(1, INPUTS)
            key.fileobj.sendall(session.run(None, {"features": features})[0].tobytes())


# ---- the four ways to ask; each returns a function that asks once and returns the scores


def ask_session(file):
    import numpy

    session, features = open_session(file), numpy.full((1, INPUTS), 0.5, numpy.float32)
    return lambda: session.run(None, {"features": features})[0]


def ask_starling(path, in_arena):
    import numpy
    import starling

    client = starling.Client(path)
    model = client.model(MODEL)
    features = client.empty((1, INPUTS), numpy.float32) if in_arena else numpy.empty((1, INPUTS), numpy.float32)
    features[...] = 0.5
    return lambda: client.infer(model, features)


def ask_socket(path):
    import numpy

    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.connect(path)
    features = numpy.full((1, INPUTS), 0.5, numpy.float32)

    def ask():
        peer.sendall(features.tobytes())
        return numpy.frombuffer(peer.recv(4 * OUTPUTS, socket.MSG_WAITALL), numpy.float32).reshape(1, OUTPUTS)

    return ask


# ---- latencies


def time_calls(ask, rounds, ret_times):
    for _ in range(WARM_UP):
        ask()
    for _ in range(rounds):
        begun = time.perf_counter_ns()
        ask()
        ret_times.append(time.perf_counter_ns() - begun)


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def measure_latencies(options, ways):
    times = {name: [] for name in ways}
    for _ in range(options.turns):
        for name, ask in ways.items():
            time_calls(ask, options.rounds, times[name])
    report = {}
    for name, values in times.items():
        for key, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
            report[f"{name}_{key}_us"] = round(percentile(values, share) / 1e3, 2)
    return report


def check_scores(ways):
    import numpy

    wanted = ways["onnxruntime"]()
    for name, ask in ways.items():
        if not numpy.allclose(ask(), wanted, rtol=1e-5, atol=1e-6):
            raise SystemExit(f"{name} has other scores than onnxruntime")


# ---- four clients


def be_client(way, path, begin, seconds):
    """Asks from the time `begin` on, and prints how often it was answered."""
    ask = ask_starling(path, False) if way == "starling" else ask_socket(path)
    for _ in range(WARM_UP):
        ask()
    if time.monotonic() > begin:
        raise SystemExit("a client was not ready in time")
    while time.monotonic() < begin:
        pass
    n = 0
    while time.monotonic() < begin + seconds:
        ask()
        n += 1
    print(n)


def ask_together(options, way, path):
    begin = time.monotonic() + 2
    command = [sys.executable, "-B", __file__, "--client", way, path, str(begin), str(options.seconds)]
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(CLIENTS)]
    return sum(int(client.communicate()[0]) for client in clients) / options.seconds


def measure_together(options, paths):
    rates = {way: [] for way in paths}
    for _ in range(3):
        for way, path in paths.items():
            rates[way].append(ask_together(options, way, path))
    report = {f"{way}_four_clients_per_second": round(statistics.median(values)) for way, values in rates.items()}
    report["starling_over_socket_four_clients"] = round(
        report["starling_four_clients_per_second"] / report["socket_four_clients_per_second"], 2
    )
    return report


# ---- the run


def run_c(options):
    command = [options.program, "bench", "small", "--json"]
    if options.digits:
        command += ["--digits", options.digits]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def start_runtime(options, folder):
    with open(f"{folder}/config.yaml", "w") as file:
        file.write(f"socket_dir: {folder}\nname: small-{os.getpid()}\ncache: {{directory: {folder}/cache}}\n")
    os.mkdir(f"{folder}/cache")
    with open(f"{folder}/log", "w") as log:
        command = [options.program, "serve", f"{folder}/models", "--config", f"{folder}/config.yaml"]
        runtime = subprocess.Popen(command, stderr=log, stdout=log, stdin=subprocess.DEVNULL)
    return runtime, f"{folder}/small-{os.getpid()}.sock"


def start_server(file, folder):
    command = [sys.executable, "-B", __file__, "--server", file, f"{folder}/peer.sock"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL), f"{folder}/peer.sock"


def await_socket(path, process):
    for _ in range(600):
        if os.path.exists(path):
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"no process listens at {path}")


def measure_python(options, folder):
    os.mkdir(f"{folder}/models")
    subprocess.run([options.program, "bench", "small", "--write-model", f"{folder}/models"], check=True)
    file = f"{folder}/models/{MODEL}/1/model.onnx"
    runtime, starling_path = start_runtime(options, folder)
    server, socket_path = start_server(file, folder)
    try:
        await_socket(starling_path, runtime)
        await_socket(socket_path, server)
        ways = {
            "onnxruntime": ask_session(file),
            "starling": ask_starling(starling_path, False),
            "starling_arena": ask_starling(starling_path, True),
            "socket": ask_socket(socket_path),
        }
        check_scores(ways)
        report = measure_latencies(options, ways)
        report |= measure_together(options, {"starling": starling_path, "socket": socket_path})
    finally:
        server.kill()
        server.wait()
        runtime.send_signal(signal.SIGTERM)
        runtime.wait(60)
    return report


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="FILE", help="write the result to FILE as JSON (required)")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="take N turns (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=4000, metavar="N", help="send N requests each way in each turn (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=2, metavar="SECONDS",
        help="run four clients for SECONDS seconds, three times each way (default: %(default)s)",
    )
    parser.add_argument("--program", default="build/release/bin/starling", metavar="FILE", help="measure the command FILE (default: %(default)s)")
    parser.add_argument("--library", default="build/release/lib/libstarling.so", metavar="FILE", help="load the library FILE (default: %(default)s)")
    parser.add_argument(
        "--digits", default="client/examples/digits/models", metavar="DIR",
        help="measure the ensemble of the repository DIR as well, or with an empty DIR none (default: %(default)s)",
    )
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    os.environ["STARLING_LIBRARY"] = os.path.abspath(options.library)
    return options


def main():
    options = read_arguments()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        raise SystemExit("it needs two CPUs")
    os.sched_setaffinity(0, cpus)
    report = {
        **origin("perf/small/small.sh"),
        "cpus": cpus,
        "python": platform.python_version(),
        "c": run_c(options),
    }
    folder = tempfile.mkdtemp(prefix="starling-small-")
    try:
        report |= measure_python(options, folder)
    finally:
        shutil.rmtree(folder)
    with open(options.out, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    print(json.dumps({key: value for key, value in report.items() if key != "c"}, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--server"]:
        serve_socket(*sys.argv[2:4])
    elif sys.argv[1:2] == ["--client"]:
        be_client(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
