# SPDX-License-Identifier: Apache-2.0
"""Starling, asked by its Python client: as it starts by default, but that a single model has two workers, as its peers' instances."""

import contextlib
import json
import os
import subprocess
import time

import starling
from clients import Client, quantile, timed
from plan import plan_of
from runtime import Runtime


GROUP_SECONDS = 0.05  # of requests between two looks at the stats


class Asking(Client):
    def __init__(self, runtime, name):
        self.runtime, self.client = runtime, starling.Client(runtime.socket, arena_bytes=64 << 20)
        self.model = self.client.model(name)

    def ask(self, x):
        return self.client.infer(self.model, x)

    def _computed(self):
        """Requests so far and nanoseconds from their first network's beginning to their last one's end, as the runtime's stats have them."""
        text = subprocess.run([os.environ["STARLING_PROGRAM"], "stats", self.runtime.name, "--json"], check=True, stdout=subprocess.PIPE).stdout
        model = next(model for model in json.loads(text)["models"] if model["name"] == self.model.name)
        computing = model["latency"]["computing"]
        return computing["count"], computing["count"] * computing["mean_ns"]

    def beside_us(self, x, until):
        """The median of means: an answer of infer() does not say how long its networks took, but their sum over some requests is known."""
        besides, before = [], self._computed()
        while time.monotonic() < until:
            taken_ns, group_until = 0, time.monotonic() + GROUP_SECONDS
            while time.monotonic() < group_until:
                taken_ns += timed(self, x)
            now = self._computed()
            besides.append((taken_ns - (now[1] - before[1])) / (now[0] - before[0]) / 1e3)
            before = now
        return quantile(besides, 0.5), before[0]


class Starling:
    def __init__(self, folder):
        plan = plan_of(folder)
        members = {model["name"]: model["path"] for model in plan["models"]}
        self.name = "together" if len(members) > 1 else next(iter(members))
        ensembles = {self.name: list(members)} if len(members) > 1 else {}
        self.runtime = Runtime(os.environ["STARLING_PROGRAM"], members, ensembles, 1 if ensembles else 2)
        self.runtime.connect().close()

    def connect(self, index):
        return Asking(self.runtime, self.name)

    def close(self):
        self.runtime.close()


def start(folder, variant, order):
    return contextlib.closing(Starling(folder))
