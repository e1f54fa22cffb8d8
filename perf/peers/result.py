# SPDX-License-Identifier: Apache-2.0
"""The result file: cells by workload, samples and peer, put together from parts; written whole after every cell."""

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys

import goals
import table
from origin import commit, processor
from registry import PEERS


def load(path):
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return {"benchmark": "peers", "triton_over_starling_noop": None, "goals": [], "machine": machine(), "versions": {}, "parts": [], "native": [],
            "cells": []}  # fmt: skip


def save(found, path):
    found["versions"] = versions()
    found["goals"] = goals.of(found)
    found["triton_over_starling_noop"] = goals.triton_over_starling_noop(found)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def finish(found, path):
    save(found, path)
    with open(os.path.splitext(path)[0] + ".md", "w", encoding="utf-8") as file:
        file.write(table.markdown(found))


# ---- cells


def put(found, workload, samples, peer, mode, points):
    """Points of another pass stay: the open one's, or all others."""
    key = {"workload": workload, "samples": samples, "peer": peer}
    cell = next((cell for cell in found["cells"] if {name: cell[name] for name in key} == key), None)
    if cell is None:
        cell = {**key, "points": []}
        found["cells"].append(cell)
    cell["points"] = [point for point in cell["points"] if (point["mode"] == "open") != (mode == "open")] + points


def put_native(found, workload, row):
    key = (workload, row["peer"], row["samples"])
    found["native"] = [old for old in found["native"] if (old["workload"], old["peer"], old["samples"]) != key]
    found["native"].append({"workload": workload, **row})


def slowest_capacity(found, workload, samples):
    """Requests a second of the slowest server in closed loops of the most clients; None: nobody was measured."""
    rates = [capacity for cell in found["cells"] if cell["workload"] == workload and cell["samples"] == samples
             and PEERS[cell["peer"]].server and (capacity := capacity_of(cell))]  # fmt: skip
    return min(rates, default=None)


def capacity_of(cell):
    rates = [point["per_second"] for point in cell["points"] if point["mode"] == "closed" and "why" not in point]
    return max(rates, default=None)


# ---- the environment


def machine():
    return {**processor(), "cpus": os.cpu_count(), "kernel": platform.release(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}  # fmt: skip


def _pinned():
    """{package: version} of every requirements file, but what they need only by way of others."""
    wanted = ("onnxruntime", "openvino", "iceoryx2", "nvidia-pytriton", "tritonclient", "ray", "litserve")
    folder, found = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requirements"), {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for package, _, version in (line.strip().partition("==") for line in file):
                if package in wanted and version not in found.setdefault(package, version):
                    found[package] += f", {version}"
    return found


def versions():
    return {**_pinned(), "python": platform.python_version(), "numpy": importlib.metadata.version("numpy"),
            "aeron": os.environ.get("AERON_BUILD") and "a build of the user's"}  # fmt: skip


def floor_ns(program):
    """A cache line's way there and back now; None where it cannot be measured."""
    done = subprocess.run([program, "bench", "floor", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return json.loads(done.stdout).get("floor_ns") if done.returncode == 0 else None


def add_part(found, workload, options, floor_before, floor_after, seconds):
    """What was measured when, and whether the machine was the same before and after."""
    found["parts"].append({
        "workload": workload, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit(),
        "command": ["perf/peers/run.sh", *sys.argv[1:]], "passes": options.passes, "point_seconds": options.seconds,
        "floor_before_ns": floor_before, "floor_after_ns": floor_after, "load_average": round(os.getloadavg()[0], 2),
        "seconds": round(seconds, 1),
    })  # fmt: skip
