# SPDX-License-Identifier: Apache-2.0
"""One peer on one workload, as the first process of its namespaces: starts it, measures the points that it is told, prints one line of JSON.

    cell.py PEER FOLDER ORDER     ORDER: {"samples": [...], "clients": [...], "seconds": S, "cpus": [A, B],
                                          "ensemble": bool, "rates": {samples: rate} or null}
"""

import importlib
import json
import os
import sys
import traceback

import numpy as np

import sandbox
from clients import Clients
from registry import PEERS


def measure_samples(clients, samples, order):
    n, seconds = max(order["clients"]), order["seconds"]
    if order["rates"]:
        return [clients.point(n, seconds, "open", order["rates"][str(samples)])]
    points = [clients.point(n, seconds) for n in order["clients"]]
    if order["ensemble"]:
        point = clients.point(1, seconds, "beside")
        points.append({"mode": "beside", "clients": 1, "beside_us": point.get("p50_us")})
    return points


def measure(peer, folder, order):
    """{samples: [points]}: closed loops, or open ones at the rates that are given."""
    points = {}
    for samples in order["samples"]:
        x = np.load(os.path.join(folder, f"input-{samples}.npy"))
        expected = np.load(os.path.join(folder, f"expected-{samples}.npy"))
        clients = Clients(peer, max(order["clients"]), x, expected, order["cpus"])
        points[samples] = measure_samples(clients, samples, order)
        clients.close()
    return points


def main():
    name, folder, order = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is no answer
    try:
        sandbox.settle()
        os.sched_setaffinity(0, order["cpus"])
        with importlib.import_module(PEERS[name].module).start(folder, PEERS[name].variant, order) as peer:
            reply = {"points": measure(peer, folder, order)}
    except BaseException as error:  # the cell of the table says it
        traceback.print_exc()
        reply = {"why": f"{type(error).__name__}: {error}".replace("\n", " ")[:300]}
    print(json.dumps(reply), file=answers, flush=True)
    os._exit(0)  # the kernel ends everybody else of this namespace


if __name__ == "__main__":
    main()
