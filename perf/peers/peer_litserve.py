# SPDX-License-Identifier: Apache-2.0
"""LitServe: two workers that hold all models of the workload each, over HTTP; tensors travel as base64 in JSON, which is what its requests are."""

import base64
import contextlib
import http.client
import json
import os
import subprocess
import sys
import time

import litserve
import numpy as np

from clients import Client
from plan import plan_of
from stamps import Stamps

READY_SECONDS = 120
PORT = 8000


class Api(litserve.LitAPI):
    """What a worker is; it is made in the server's process and sent to the workers."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def setup(self, device):
        import member

        self.run, self.shape = member.answer_of(self.folder), plan_of(self.folder)["shape"]

    def decode_request(self, request):
        return np.frombuffer(base64.b64decode(request["x"]), np.float32).reshape(-1, *self.shape)

    def predict(self, x):
        return self.run(x)

    def encode_response(self, y):
        return {"y": base64.b64encode(y.tobytes()).decode()}


def _be_server(folder):
    server = litserve.LitServer(Api(folder), accelerator="cpu", workers_per_device=2, timeout=False)
    server.run(host="127.0.0.1", port=PORT, num_api_servers=1, generate_client_file=False, log_level="warning", access_log=False)


class Asking(Client):
    def __init__(self, stamps, outputs):
        self.connection, self.outputs, self.span_ns = http.client.HTTPConnection("127.0.0.1", PORT), outputs, stamps.span_ns

    def ask(self, x):
        body = json.dumps({"x": base64.b64encode(x).decode()})
        self.connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"HTTP status {answer.status}: {text[:200]!r}")
        return np.frombuffer(base64.b64decode(json.loads(text)["y"]), np.float32).reshape(len(x), *self.outputs)


class LitServe:
    def __init__(self, folder):
        self.folder, self.plan = folder, plan_of(folder)
        path = ":".join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-B", __file__, folder]
        self.process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.DEVNULL)
        until = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("LitServe is not ready; its log says why")
            time.sleep(0.1)

    @staticmethod
    def _is_ready():
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=1)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def connect(self, index):
        return Asking(Stamps(os.path.join(self.folder, "stamps"), len(self.plan["models"])), self.plan["outputs"])

    def close(self):
        self.process.kill()  # what it started ends with the namespace


def start(folder, variant, order):
    return contextlib.closing(LitServe(folder))


if __name__ == "__main__":
    _be_server(sys.argv[1])
