# SPDX-License-Identifier: Apache-2.0
"""Starling and its peers side by side: the same models, inputs, clients and cores.

    run.py [--out build/peers.json] [--only noop,digits] [--peers triton,onnxruntime] [--passes native,closed,open] [--seconds S]

Cells that --out has already stay in it unless they are measured again, so that a whole result can be put together from parts. A table in
Markdown is written beside it. Exit status 1 when nothing could be measured.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import result
import sandbox
from native import NATIVE
from preparing import prepare
from registry import PEERS, chosen, why_not
from workloads import WORKLOADS, samples_of

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
PASSES = ("native", "closed", "open")
CELL_SECONDS = 300  # beyond what is measured, for loading and connecting
LOAD = 0.7  # of the slowest server's capacity, in the open pass


def python_of(packages):
    return os.path.join(ROOT, "build", f"peers-{packages}-venv", "bin", "python")


def environment(options):
    path = [HERE, os.path.join(ROOT, "client", "python"), os.path.join(ROOT, "perf", "serving")]
    return {**os.environ, "PYTHONPATH": ":".join(path), "STARLING_PROGRAM": options.program, "STARLING_LIBRARY": options.library,
            "PEERS_BIN": os.path.dirname(options.program), "PEERS_ROOT": ROOT, "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip


def ask_cell(program, folder, order, options, log):
    """The reply of a cell, in namespaces of its own; {"why": ...} when there is none."""
    work = os.path.join(folder, "cell")
    os.makedirs(work)
    for name in os.listdir(folder):
        if name != "cell":
            os.symlink(os.path.join(folder, name), os.path.join(work, name))
    limit = CELL_SECONDS + 4 * order["seconds"] * len(order["samples"]) * len(order["clients"])
    command = sandbox.command([*program, work, json.dumps(order)])
    process = subprocess.Popen(command, env={**environment(options), "TMPDIR": work}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=log, text=True, preexec_fn=sandbox.end_with_parent)  # fmt: skip
    try:
        text = process.communicate(timeout=limit)[0]
        return json.loads(text.strip().splitlines()[-1]) if text.strip() else {"why": f"ended with status {process.returncode}"}
    except subprocess.TimeoutExpired:
        return {"why": f"no answer within {limit:.0f} s"}
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(work, ignore_errors=True)


def say(text, end="\n"):
    print(text, end=end, file=sys.stderr, flush=True)


def _brief_point(point):
    head = f"{point.get('clients', '')} {point['mode']}: "
    if "why" in point:
        return head + point["why"]
    if point["mode"] == "beside":
        return head + f"{point['beside_us']} us beside the models"
    return head + f"p50 {point['p50_us']:.0f} p99 {point['p99_us']:.0f} us, {point['per_second']:.0f}/s"


def brief(points):
    """One line of progress."""
    return "; ".join(map(_brief_point, points))


class Run:
    def __init__(self, options):
        self.options = options
        self.found = result.load(options.out)
        self.log = open(os.path.splitext(options.out)[0] + ".log", "a", encoding="utf-8")
        self.measured = 0

    def _order(self, name, rates=None):
        options = self.options
        return {"samples": [n for n in samples_of(name) if not options.samples or n in options.samples], "clients": options.clients,
                "seconds": options.seconds if not rates else options.seconds * 2, "cpus": options.cpus, "rates": rates,
                "ensemble": len(WORKLOADS[name].models) > 1}  # fmt: skip

    def _keep(self, workload, peer, order, reply, mode):
        for samples in order["samples"]:
            points = reply.get("points", {}).get(str(samples)) or [{"mode": mode, "why": reply.get("why", "not measured")}]
            result.put(self.found, workload, samples, peer, mode, points)
            self.measured += "why" not in points[0]
            say(f"    {samples} samples: {brief(points)}")
        result.save(self.found, self.options.out)

    def peers(self, name, folder, mode, rates=None):
        for peer in chosen(self.options.peers):
            order = self._order(name, rates)
            say(f"{name:10}{mode:8}{PEERS[peer].title}")
            why = why_not(peer, name)
            program = [python_of(PEERS[peer].packages), "-B", os.path.join(HERE, "cell.py"), peer]
            reply = {"why": why} if why else ask_cell(program, folder, order, self.options, self.log)
            self._keep(name, peer, order, reply, mode)

    def natives(self, name, folder):
        for peer in NATIVE.get(name, ()):
            say(f"{name:10}native  {peer}")
            program = [python_of("engines"), "-B", os.path.join(HERE, "native.py"), peer]
            reply = ask_cell(program, folder, self._order(name), self.options, self.log)
            for row in reply.get("rows", [{"peer": peer, "samples": 1, "why": reply.get("why")}]):
                result.put_native(self.found, name, row)
                self.measured += "why" not in row
                say(f"    {row['peer']}: " + (row.get("why") or f"p50 {row['p50_us']:.3f} us"))
            result.save(self.found, self.options.out)

    def workload(self, name):
        folder = tempfile.mkdtemp(prefix="peers-")
        try:
            prepare(name, folder, self.options)
            if "native" in self.options.passes:
                self.natives(name, folder)
            if "closed" in self.options.passes:
                self.peers(name, folder, "closed")
            if "open" in self.options.passes:
                rates = {str(n): LOAD * capacity for n in self._order(name)["samples"]
                         if (capacity := result.slowest_capacity(self.found, name, n))}  # fmt: skip
                if len(rates) == len(self._order(name)["samples"]):
                    self.peers(name, folder, "open", rates)
                else:
                    say(f"{name}: no open load, as no capacities are known: --passes closed first")
        finally:
            shutil.rmtree(folder)

    def all(self):
        for name in self.options.only:
            begun, floor = time.time(), result.floor_ns(self.options.program)
            try:
                self.workload(name)
            finally:  # also of what was broken off: its cells stay
                result.add_part(self.found, name, self.options, floor, result.floor_ns(self.options.program), time.time() - begun)
                result.finish(self.found, self.options.out)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", default=os.path.join(ROOT, "build", "peers.json"), metavar="FILE",
        help="write the result to FILE as JSON, and keep what it has already (default: %(default)s)",
    )
    parser.add_argument("--only", metavar="NAMES", help=f"measure the workloads NAMES of {', '.join(WORKLOADS)} (default: all)")
    parser.add_argument("--peers", metavar="NAMES", help="measure the peers NAMES; triton means every way to Triton (default: all)")
    parser.add_argument("--passes", default=",".join(PASSES), metavar="NAMES", help="make the passes NAMES (default: %(default)s)")
    parser.add_argument("--samples", metavar="N,...", help="send N samples in a request, of those numbers that the workload has (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=2, metavar="SECONDS",
        help="measure each point for SECONDS seconds, and twice that in the open pass (default: %(default)s)",
    )
    parser.add_argument(
        "--clients", default="1,4", metavar="N,...",
        help="start N clients in the closed pass, and the most of them in the open pass (default: %(default)s)",
    )
    parser.add_argument(
        "--zoo", default=os.path.join(ROOT, "build", "zoo"), metavar="DIR",
        help="take the zoo's models from DIR (default: %(default)s)",
    )
    parser.add_argument(
        "--digits", default=os.path.join(ROOT, "client", "examples", "digits", "models"), metavar="DIR",
        help="take the digits networks from the repository DIR (default: %(default)s)",
    )
    parser.add_argument(
        "--program", default=os.path.join(ROOT, "build", "release", "bin", "starling"), metavar="FILE",
        help="measure the command FILE (default: %(default)s)",
    )
    parser.add_argument(
        "--library", default=os.path.join(ROOT, "build", "release", "lib", "libstarling.so"), metavar="FILE",
        help="load the library FILE (default: %(default)s)",
    )
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else list(WORKLOADS)
    options.passes = options.passes.split(",")
    for what, given, known in (("--only", options.only, WORKLOADS), ("--passes", options.passes, PASSES)):
        if unknown := [word for word in given if word not in known]:
            parser.error(f"{what}: {', '.join(unknown)}: wants some of {', '.join(known)}")
    try:
        chosen(options.peers)
    except ValueError as error:
        parser.error(str(error))
    options.clients = [int(n) for n in options.clients.split(",")]
    options.samples = [int(n) for n in options.samples.split(",")] if options.samples else None
    options.cpus = sorted(os.sched_getaffinity(0))[:2]
    options.out, options.program, options.library = map(os.path.abspath, (options.out, options.program, options.library))
    if len(options.cpus) < 2:
        parser.error("it needs two CPUs")
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what a cell has is ended and removed on the way out
    run = Run(read_arguments())
    run.all()
    return 0 if run.measured else 1


if __name__ == "__main__":
    sys.exit(main())
