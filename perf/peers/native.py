# SPDX-License-Identifier: Apache-2.0
"""What is asked from C, as the first process of its namespaces. One line of JSON: {"rows": [{"peer", "samples", "p50_us", ...}]}.

    native.py NAME FOLDER ORDER     NAME: one of NATIVE
"""

import csv
import glob
import json
import os
import subprocess
import sys
import traceback

import sandbox
from plan import plan_of

MODELS = ("digits", "mobilenet", "resnet50", "ensemble")
NATIVE = {"noop": ("noop", "planes", "triton-native"), **dict.fromkeys(MODELS, ("onnxruntime-c", "starling-c"))}
PLANES = {"unix_socket": "Unix socket", "pipe": "pipe", "eventfd": "eventfd", "aeron_ipc": "Aeron IPC",
          "bare_ring": "bare ring beside Aeron"}  # fmt: skip


def _program(name):
    return os.path.join(os.environ["PEERS_BIN"], name)


def _json_of(command):
    """Also when its exit status says that targets were missed, or that a run was too short to be valid."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    if not done.stdout.strip():
        raise RuntimeError(f"{os.path.basename(command[0])} ended with status {done.returncode}")
    return json.loads(done.stdout)


def _row(peer, p50_ns, p99_ns, **more):
    return {"peer": peer, "samples": 1, "p50_us": p50_ns / 1e3, "p99_us": p99_ns and p99_ns / 1e3, **more}


def _cpus(order):
    return ",".join(map(str, order["cpus"]))


def measure_noop(folder, order):
    """The client on the second CPU, as the dispatcher takes the first; the bare ring's turns lie between the path's."""
    got = _json_of([_program("starling"), "bench", "noop", "--json", "--rounds", str(int(100000 * order["seconds"])), "--cpus",
                    f"{order['cpus'][1]},{order['cpus'][0]}"])  # fmt: skip
    return [
        _row("starling", got["rtt_p50_ns"], got["rtt_p99_ns"], per_second=got["requests_per_second"], mean_us=got["rtt_mean_ns"] / 1e3),
        _row("bare ring", got["ring_rtt_p50_ns"], got["ring_rtt_p99_ns"], mean_us=got["ring_rtt_mean_ns"] / 1e3),
        _row("cache line", got["floor_ns"], None),
        _row("cache line, one for each direction", got["floor_two_lines_ns"], None),
        _row("starling, both sides sleeping", got["sleeping_rtt_p50_ns"], got["sleeping_rtt_p99_ns"]),
        _row("futex, both sides sleeping", got["futex_rtt_p50_ns"], None),
    ]


def measure_planes(folder, order):
    aeron = os.environ.get("AERON_BUILD")
    got = _json_of([_program("bench-planes"), "--rounds", str(int(25000 * order["seconds"])), "--cpus", _cpus(order),
                    *(["--aeron", aeron] if aeron else [])])  # fmt: skip
    rows = []
    for key, name in PLANES.items():
        if (plane := got.get(key)) is None:
            continue
        if "why" in plane:
            rows.append({"peer": name, "samples": 1, "why": plane["why"]})
        else:
            rows.append(_row(name, plane["p50_ns"], plane["p99_ns"], mean_us=plane["mean_ns"] / 1e3))
    return rows


# ---- Triton, asked by its own native client


def _perf_analyzer(model, protocol, shared, folder, order):
    packages = os.path.join(os.environ["PEERS_ROOT"], "build")
    libraries = glob.glob(f"{packages}/peers-triton-venv/lib/python*/site-packages/nvidia_pytriton.libs")[0]
    links = os.path.join(folder, "libraries")
    if not os.path.isdir(links):
        os.mkdir(links)
        for name, pattern in (("libb64.so.0d", "libb64-*"), ("libcudart.so.12", "libcudart-*")):
            os.symlink(glob.glob(os.path.join(libraries, pattern))[0], os.path.join(links, name))
    table = os.path.join(folder, f"{model}-{protocol}-{shared}.csv")
    command = [f"{packages}/peers-perf-analyzer-venv/bin/perf_analyzer", "-m", model, "-i", protocol, "-b", "1", "--concurrency-range", "1",
               f"--shared-memory={shared}", "--output-shared-memory-size", "4096", "--measurement-interval",
               str(int(1000 * order["seconds"])), "--percentile=50", "--stability-percentage", "999", "--max-trials", "3", "-f", table]  # fmt: skip
    subprocess.run(command, check=True, env={**os.environ, "LD_LIBRARY_PATH": f"{links}:{libraries}"}, stdout=sys.stderr,
                   stdin=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, order["cpus"][1:]))  # fmt: skip
    with open(table, newline="", encoding="utf-8") as file:
        return next(csv.DictReader(file))


def measure_triton(folder, order):
    """A backend in C that echoes, and the Python backend that does: each over HTTP and gRPC, without and with system shared memory."""
    command = [os.path.join(os.environ["PEERS_ROOT"], "build", "peers-triton-venv", "bin", "python"), "-B",
               os.path.join(os.path.dirname(os.path.abspath(__file__)), "triton_echoes.py"), folder]  # fmt: skip
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if "ready\n" not in iter(server.stdout.readline, ""):
        raise RuntimeError("tritonserver is not ready; the log says why")
    rows = []
    for model, words in (("echo", "C backend"), ("python_echo", "Python backend")):
        for protocol in ("http", "grpc"):
            for shared in ("none", "system"):
                got = _perf_analyzer(model, protocol, shared, folder, order)
                name = f"Triton, {words}, {protocol}" + (", system shared memory" if shared == "system" else "")
                rows.append(_row(name, 1e3 * float(got["p50 latency"]), 1e3 * float(got["p99 latency"])))
    server.kill()
    return rows


# ---- models: ONNX Runtime in the process, and Starling


def _library():
    import onnxruntime

    return glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so.*"))[0]


def measure_onnxruntime(folder, order):
    plan, rows = plan_of(folder), []
    for samples in order["samples"]:
        shape = "x".join(map(str, [samples, *plan["shape"]]))
        outputs = samples
        for size in plan["outputs"]:
            outputs *= size
        got = _json_of([_program("bench-onnxruntime"), "--input", os.path.join(folder, f"input-{samples}.f32"), "--shape", shape,
                        "--outputs", str(outputs), "--seconds", str(order["seconds"]), "--cpu", str(order["cpus"][1]), _library(),
                        *(model["path"] for model in plan["models"])])  # fmt: skip
        _check(got["answer"], os.path.join(folder, f"expected-{samples}.npy"))
        rows.append({**_row("onnxruntime", got["p50_ns"], got["p99_ns"], per_second=got["per_second"]), "samples": samples})
    return rows


def _check(answer, path):
    import numpy

    expected = numpy.load(path).ravel()
    if not numpy.allclose(answer, expected, rtol=1e-3, atol=1e-4):
        raise ValueError(f"answers something else, off by {numpy.abs(numpy.array(answer) - expected).max()}")


def measure_starling(folder, order):
    """`starling bench load` with one request in flight; what the workers and the client take is on both CPUs, as it is by default."""
    from runtime import write_repository

    plan, rows = plan_of(folder), []
    members = {model["name"]: model["path"] for model in plan["models"]}
    name = "together" if len(members) > 1 else next(iter(members))
    write_repository(os.path.join(folder, "repository"), members, {name: list(members)} if len(members) > 1 else {})
    for samples in order["samples"]:
        got = _json_of([_program("starling"), "bench", "load", "--serve", os.path.join(folder, "repository"), name, "--batch", str(samples),
                        "--seconds", str(order["seconds"]), "--repeats", "1", "--json"])  # fmt: skip
        figures = {key: figure["value"] for key, figure in got["points"][0]["figures"].items()}
        rows.append({**_row("starling", figures["latency_p50_ns"], figures["latency_p99_ns"], per_second=figures["requests_per_second"]),
                     "samples": samples})  # fmt: skip
    return rows


MEASURES = {"noop": measure_noop, "planes": measure_planes, "triton-native": measure_triton, "onnxruntime-c": measure_onnxruntime,
            "starling-c": measure_starling}  # fmt: skip


def main():
    name, folder, order = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        sandbox.settle()
        os.sched_setaffinity(0, order["cpus"])
        reply = {"rows": MEASURES[name](folder, order)}
    except BaseException as error:  # the row of the table says it
        traceback.print_exc()
        reply = {"why": f"{type(error).__name__}: {error}".replace("\n", " ")[:300]}
    print(json.dumps(reply), file=answers, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
