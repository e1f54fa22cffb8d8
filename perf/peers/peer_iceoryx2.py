# SPDX-License-Identifier: Apache-2.0
"""iceoryx2's request-response from Python: the server's process answers with the 16 floats that it got, and both sides spin."""

import contextlib
import ctypes
import multiprocessing
import os

import numpy as np

from clients import Client

VALUES = 16
START_SECONDS = 30


class Line(ctypes.Structure):
    _fields_ = [("values", ctypes.c_float * VALUES)]


def _open_service():
    import iceoryx2

    iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
    config = iceoryx2.config.default()
    config.global_cfg.root_path = iceoryx2.Path.new(os.path.join(os.environ["TMPDIR"], "iceoryx2"))
    node = iceoryx2.NodeBuilder.new().config(config).create(iceoryx2.ServiceType.Ipc)
    service = node.service_builder(iceoryx2.ServiceName.new("echo")).request_response(Line, Line).open_or_create()
    return node, service


def _answer(cpus, ready):
    os.sched_setaffinity(0, cpus)
    _, service = _open_service()
    server = service.server_builder().create()
    ready.set()
    while True:
        request = server.receive()
        if request is not None:
            request.send_copy(request.payload().contents)


class Asking(Client):
    def __init__(self):
        self.node, service = _open_service()
        self.client = service.client_builder().create()

    def ask(self, x):
        pending = self.client.send_copy(Line.from_buffer(x))
        while (response := pending.receive()) is None:
            pass
        return np.frombuffer(response.payload().contents, np.float32).reshape(1, VALUES).copy()


class Server:
    def __init__(self, cpus):
        fork = multiprocessing.get_context("fork")
        ready = fork.Event()
        self.process = fork.Process(target=_answer, args=(cpus[:1], ready), daemon=True)
        self.process.start()
        if not ready.wait(START_SECONDS):  # what is sent before there is a server is lost
            raise RuntimeError(f"the server is not there after {START_SECONDS} s")

    def connect(self, index):
        return Asking()

    def close(self):
        self.process.kill()


def start(folder, variant, order):
    return contextlib.closing(Server(order["cpus"]))
