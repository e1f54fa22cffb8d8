# SPDX-License-Identifier: Apache-2.0
"""Starling as it starts by default, asked by its Python client."""

import contextlib
import os

import starling
from clients import Client
from plan import plan_of
from runtime import Runtime


class Asking(Client):
    def __init__(self, socket, name):
        self.client = starling.Client(socket, arena_bytes=64 << 20)
        self.model = self.client.model(name)

    def ask(self, x):
        return self.client.infer(self.model, x)

    def ask_span(self, x):
        """A future has the request's times; it costs a hand-over between threads besides."""
        future = self.client.submit(self.model, x)
        future.result()
        return future.times.computing_ns


class Starling:
    def __init__(self, folder):
        plan = plan_of(folder)
        members = {model["name"]: model["path"] for model in plan["models"]}
        self.name = "together" if len(members) > 1 else next(iter(members))
        ensembles = {self.name: list(members)} if len(members) > 1 else {}
        self.runtime = Runtime(os.environ["STARLING_PROGRAM"], members, ensembles)
        self.runtime.connect().close()

    def connect(self, index):
        return Asking(self.runtime.socket, self.name)

    def close(self):
        self.runtime.close()


def start(folder, variant, order):
    return contextlib.closing(Starling(folder))
