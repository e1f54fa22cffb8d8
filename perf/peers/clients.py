# SPDX-License-Identifier: Apache-2.0
"""Client processes of one peer, and the points that they measure together.

A client connects once, in a process of its own, and then obeys orders: a closed loop, or an open loop whose requests are due at Poisson
times, where a latency counts from when its request was due. Measured is what began, or was due, inside the window that all clients share.
"""

import array
import multiprocessing
import os
import random
import time
import traceback

import numpy as np

WARM_UP = 0.4  # seconds of each point before its window
START = 0.1  # seconds from an order until the clients begin
CONNECT_SECONDS = 120
TICK = os.sysconf("SC_CLK_TCK")


class Client:
    """How a peer is asked: `ask(x)` answers; `span_ns()` says how long the models computed for the last answer, if nobody else asks."""

    def ask(self, x):
        raise NotImplementedError

    def span_ns(self):
        raise NotImplementedError

    def beside_us(self, x, until):
        """Asks until then. Returns the median time beside the models, and of how many requests."""
        besides = []
        while time.monotonic() < until:
            taken = timed(self, x)
            besides.append((taken - self.span_ns()) / 1e3)
        return quantile(besides, 0.5), len(besides)


def timed(client, x):
    """Nanoseconds."""
    begun = time.perf_counter_ns()
    client.ask(x)
    return time.perf_counter_ns() - begun


def quantile(values, share):
    """The smallest value that `share` of all do not exceed."""
    return sorted(values)[max(0, int(np.ceil(share * len(values))) - 1)]


# ---- inside a client's process


def _closed(client, x, order):
    first, until = order["begin"] + WARM_UP, order["begin"] + WARM_UP + order["seconds"]
    latencies, done = array.array("d"), 0
    while (start := time.monotonic()) < until:
        taken = timed(client, x)
        if start >= first:
            latencies.append(taken / 1e3)
            done += time.monotonic() < until
    return {"latencies": latencies, "done": done}


def _beside(client, x, order):
    while time.monotonic() < order["begin"] + WARM_UP:
        client.ask(x)
    beside_us, n = client.beside_us(x, order["begin"] + WARM_UP + order["seconds"])
    return {"latencies": [beside_us], "done": n}


def arrivals(rate, seconds, seed):
    """Times of a Poisson process, from 0 on."""
    source, due, times = random.Random(seed), 0.0, []
    while (due := due + source.expovariate(rate)) < seconds:
        times.append(due)
    return times


def _open(client, x, order):
    first, until = order["begin"] + WARM_UP, order["begin"] + WARM_UP + order["seconds"]
    latencies, done = array.array("d"), 0
    for due in arrivals(order["rate"], WARM_UP + order["seconds"], order["seed"]):
        due += order["begin"]
        if (wait := due - time.monotonic()) > 0:
            time.sleep(wait)
        client.ask(x)
        now = time.monotonic()
        if due >= first:
            latencies.append((now - due) * 1e6)
            done += now < until
        if now > until + order["seconds"]:  # overloaded for good: what is still due would only prolong it
            break
    return {"latencies": latencies, "done": done}


def _serve_orders(pipe, client, x):
    while (order := pipe.recv()) is not None:
        os.sched_setaffinity(0, order["cpus"])
        while time.monotonic() < order["begin"]:
            time.sleep(0.001)
        pipe.send({"closed": _closed, "beside": _beside, "open": _open}[order["mode"]](client, x, order))


def _client_main(peer, index, pipe, x, expected):
    try:
        client = peer.connect(index)
        answer = np.asarray(client.ask(x))
        if answer.shape != expected.shape or not np.allclose(answer, expected, rtol=1e-3, atol=1e-4):
            raise ValueError(f"answers something else: shape {answer.shape}, off by {np.abs(answer - expected).max()}")
        pipe.send(None)
        _serve_orders(pipe, client, x)
    except EOFError:
        pass
    except BaseException as error:  # whatever it is, the cell says it
        traceback.print_exc()
        pipe.send(f"{type(error).__name__}: {error}")


# ---- inside the cell's process


def cpu_seconds():
    """Processor time of every process of this PID namespace, and of children that have been waited for."""
    ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICK


def summary(replies, seconds, cpu):
    """One point's figures: microseconds, requests a second, processor time of clients and server for each answer."""
    latencies = [value for reply in replies for value in reply["latencies"]]
    done = sum(reply["done"] for reply in replies)
    if not latencies:
        return {"why": "nothing was answered in time"}
    return {
        "n": len(latencies), "p50_us": round(quantile(latencies, 0.5), 2), "p99_us": round(quantile(latencies, 0.99), 2),
        "per_second": round(done / seconds, 2), "cpu_us_per_request": round(cpu * 1e6 / done, 1) if done else None,
    }  # fmt: skip


class Clients:
    def __init__(self, peer, n, x, expected, cpus):
        context = multiprocessing.get_context("fork")
        self.cpus, self.pipes, self.processes = cpus, [], []
        for index in range(n):
            here, there = context.Pipe()
            process = context.Process(target=_client_main, args=(peer, index, there, x, expected), daemon=True)
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)
        for pipe in self.pipes:
            if not pipe.poll(CONNECT_SECONDS):
                raise RuntimeError(f"a client is not connected after {CONNECT_SECONDS} s")
            if (error := pipe.recv()) is not None:
                raise RuntimeError(error)

    def point(self, n, seconds, mode="closed", rate=None, seed=1):
        """`n` clients in closed loops, or together offering `rate` requests a second. Who asks alone has the second CPU."""
        begin = time.monotonic() + START
        cpus = self.cpus[1:] if n == 1 and mode != "open" else self.cpus
        for index, pipe in enumerate(self.pipes[:n]):
            pipe.send({"mode": mode, "begin": begin, "seconds": seconds, "cpus": cpus, "rate": rate and rate / n, "seed": seed * 1000 + index})
        time.sleep(max(0.0, begin + WARM_UP - time.monotonic()))
        cpu = cpu_seconds()
        time.sleep(max(0.0, begin + WARM_UP + seconds - time.monotonic()))
        cpu = cpu_seconds() - cpu
        replies = [pipe.recv() for pipe in self.pipes[:n]]
        if failures := [reply for reply in replies if isinstance(reply, str)]:
            raise RuntimeError(failures[0])
        return {"mode": mode, "clients": n, "rate": rate and round(rate, 2), **summary(replies, seconds, cpu)}

    def close(self):
        for pipe in self.pipes:
            try:
                pipe.send(None)
            except BrokenPipeError:
                pass
        for process in self.processes:
            process.join(5)
