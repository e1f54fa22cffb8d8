# SPDX-License-Identifier: Apache-2.0
"""Ray Serve: a deployment that holds all models of the workload, two replicas, one for each CPU. Asked through handles, each client being a
driver of its own, or over HTTP with bare bytes."""

import contextlib
import http.client
import os
import subprocess
import sys
import time

import numpy as np

from clients import Client
from plan import plan_of
from stamps import Stamps

READY_SECONDS = 150
PORT = 8000


def _deployment(folder):
    import ray.serve

    plan = plan_of(folder)

    class Model:
        def __init__(self):
            import member

            self.run = member.answer_of(folder)

        def infer(self, x):
            return self.run(x)

        async def __call__(self, request):
            from starlette.responses import Response

            x = np.frombuffer(await request.body(), np.float32).reshape(-1, *plan["shape"])
            return Response(self.run(x).tobytes(), media_type="application/octet-stream")

    return ray.serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.5}, max_ongoing_requests=8)(Model)


def _be_server(folder):
    import ray
    import ray.serve

    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=os.path.join(folder, "r"), object_store_memory=200 << 20,
             runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}})  # fmt: skip
    ray.serve.start(http_options={"host": "127.0.0.1", "port": PORT, "access_log": False})
    ray.serve.run(_deployment(folder).bind(), name="asked", route_prefix="/")
    print("ready", flush=True)
    time.sleep(86400)


class HandleAsking(Client):
    def __init__(self, stamps):
        import ray
        import ray.serve

        ray.init(address="auto", log_to_driver=False)
        self.handle, self.span_ns = ray.serve.get_app_handle("asked").infer, stamps.span_ns

    def ask(self, x):
        return self.handle.remote(x).result()


class HttpAsking(Client):
    def __init__(self, stamps, outputs):
        self.connection, self.outputs, self.span_ns = http.client.HTTPConnection("127.0.0.1", PORT), outputs, stamps.span_ns

    def ask(self, x):
        self.connection.request("POST", "/", x.tobytes(), {"Content-Type": "application/octet-stream"})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"HTTP status {answer.status}: {body[:200]!r}")
        return np.frombuffer(body, np.float32).reshape(len(x), *self.outputs)


class Ray:
    def __init__(self, folder, variant):
        self.folder, self.variant, self.plan = folder, variant, plan_of(folder)
        path = ":".join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": os.path.join(folder, "r")}
        os.environ["RAY_TMPDIR"] = environment["RAY_TMPDIR"]
        command = [sys.executable, "-B", __file__, folder]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line == "ready\n":
                return
        raise RuntimeError("Ray Serve has ended; its log says why")

    def connect(self, index):
        stamps = Stamps(os.path.join(self.folder, "stamps"), len(self.plan["models"]))
        return HandleAsking(stamps) if self.variant == "handle" else HttpAsking(stamps, self.plan["outputs"])

    def close(self):
        self.process.kill()  # what it started ends with the namespace


def start(folder, variant, order):
    return contextlib.closing(Ray(folder, variant))


if __name__ == "__main__":
    _be_server(sys.argv[1])
