# SPDX-License-Identifier: Apache-2.0
"""Triton as nvidia-pytriton ships it: the server and its Python backend, in which ONNX Runtime computes. The wheel has no backend of ONNX
Runtime's own, so models pay for the Python backend's processes, each instance one.

A single model has two instances, one for each CPU; of an ensemble every member has one, and Triton's own scheduler of ensembles brings
their answers to one more model, which means them. Variant `one` has the whole ensemble inside one model, two instances: one hop instead of
six. Whatever waits together is computed together (dynamic batching without delay).
"""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request

import numpy as np

from clients import Client
from plan import plan_of
from stamps import Stamps

HTTP, GRPC = "127.0.0.1:8000", "127.0.0.1:8001"
READY_SECONDS = 120
MAX_BATCH = 64


def _packages():
    return sysconfig.get_paths()["purelib"]


def _ports(kind, names, dims):
    ports = ", ".join(f'{{name: "{name}" data_type: TYPE_FP32 dims: [{", ".join(map(str, dims))}]}}' for name in names)
    return f"{kind} [{ports}]\n"


def model_config(inputs, shape, outputs, output_shape, instances, parameters):
    """A model of the Python backend."""
    parameters = {"path": os.path.dirname(os.path.abspath(__file__)), **parameters}
    listed = ", ".join(f'{{key: "{key}" value: {{string_value: "{value}"}}}}' for key, value in parameters.items())
    return (
        f'backend: "python"\nmax_batch_size: {MAX_BATCH}\n{_ports("input", inputs, shape)}{_ports("output", outputs, output_shape)}'
        f"instance_group [{{count: {instances} kind: KIND_CPU}}]\ndynamic_batching {{max_queue_delay_microseconds: 0}}\n"
        f"parameters [{listed}]\n"
    )


def ensemble_config(members, shape, output_shape):
    """Triton's scheduler: x to every member, their answers to the model `mean`."""
    def maps(kind, pairs):
        return " ".join(f'{kind} {{key: "{key}" value: "{value}"}}' for key, value in pairs)

    steps = [f'{{model_name: "{name}" model_version: -1 {maps("input_map", [("x", "x")])} {maps("output_map", [("y", f"p{i}")])}}}'
             for i, name in enumerate(members)]  # fmt: skip
    answers = maps("input_map", [(f"p{i}", f"p{i}") for i in range(len(members))])
    steps.append(f'{{model_name: "mean" model_version: -1 {answers} {maps("output_map", [("y", "y")])}}}')
    return (
        f'platform: "ensemble"\nmax_batch_size: {MAX_BATCH}\n{_ports("input", ["x"], shape)}{_ports("output", ["y"], output_shape)}'
        f"ensemble_scheduling {{step [{', '.join(steps)}]}}\n"
    )


def write_model(repository, name, config, program=None):
    version = os.path.join(repository, name, "1")
    os.makedirs(version)
    with open(os.path.join(repository, name, "config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(f'name: "{name}"\n{config}')
    if program:
        shutil.copy(os.path.join(os.path.dirname(__file__), "triton_model.py"), os.path.join(version, "model.py"))


def write_repository(repository, folder, one):
    """Returns the name of the model that clients ask."""
    plan = plan_of(folder)
    names, shape, outputs = [model["name"] for model in plan["models"]], plan["shape"], plan["outputs"]
    python = {"folder": folder}
    if len(names) == 1 or one:
        write_model(repository, "asked", model_config(["x"], shape, ["y"], outputs, 2, {**python, "does": "all"}), True)
        return "asked"
    for i, name in enumerate(names):
        write_model(repository, name, model_config(["x"], shape, ["y"], outputs, 1, {**python, "does": "member", "index": i}), True)
    answers = [f"p{i}" for i in range(len(names))]
    write_model(repository, "mean", model_config(answers, outputs, ["y"], outputs, 1, {**python, "does": "mean"}), True)
    write_model(repository, "asked", ensemble_config(names, shape, outputs))
    return "asked"


def environment():
    libraries = [os.path.join(_packages(), "nvidia_pytriton.libs"), sysconfig.get_config_var("LIBDIR")]
    search = os.path.dirname(sys.executable) + ":" + os.environ.get("PATH", "")  # the backend asks the first python3 where its packages are
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "PATH": search}


def _lay_backends(folder):
    """The stub of this very Python lies beside the backend that starts it."""
    backends, source = os.path.join(folder, "backends"), os.path.join(_packages(), "pytriton", "tritonserver")
    os.makedirs(os.path.join(backends, "python"))
    version = sysconfig.get_python_version()
    for path in [*glob.glob(f"{source}/backends/python/*"), f"{source}/python_backend_stubs/{version}/triton_python_backend_stub"]:
        if os.path.isfile(path):
            os.chmod(shutil.copy(path, os.path.join(backends, "python")), 0o755)
    return backends


class Server:
    """tritonserver on a repository; `folder` is gone after the cell."""

    def __init__(self, folder, repository):
        self.backends = _lay_backends(folder)
        self.repository = repository
        self.folder = folder

    def start(self):
        program = os.path.join(_packages(), "pytriton", "tritonserver", "bin", "tritonserver")
        os.chmod(program, 0o755)
        command = [program, f"--model-repository={self.repository}", f"--backend-directory={self.backends}", "--http-address=127.0.0.1",
                   "--grpc-address=127.0.0.1", "--allow-metrics=false"]  # fmt: skip
        self.process = subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL)
        until = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("tritonserver is not ready; its log says why")
            time.sleep(0.1)

    @staticmethod
    def _is_ready():
        try:
            with urllib.request.urlopen(f"http://{HTTP}/v2/health/ready", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Asking(Client):
    """The Python client; `module` is tritonclient.grpc or .http."""

    def __init__(self, module, client, stamps):
        self.module, self.client, self.span_ns = module, client, stamps.span_ns
        self.outputs = [self._output()]

    def _output(self):
        return self.module.InferRequestedOutput("y")

    def _input(self, x):
        tensor = self.module.InferInput("x", x.shape, "FP32")
        tensor.set_data_from_numpy(x)
        return tensor

    def ask(self, x):
        return self.client.infer("asked", [self._input(x)], outputs=self.outputs).as_numpy("y")


class ShmAsking(Asking):
    """Input and output lie in regions of system shared memory; a request names them."""

    def __init__(self, module, client, stamps, index, x_bytes, y_bytes, shape):
        from tritonclient.utils import shared_memory

        self.shared, self.shape, self.made_for = shared_memory, shape, None
        self.regions = {}
        for kind, size in (("x", x_bytes), ("y", y_bytes)):
            name = f"{kind}{index}-{os.getpid()}"
            self.regions[kind] = name, shared_memory.create_shared_memory_region(name, f"/{name}", size)
            client.register_system_shared_memory(name, f"/{name}", size)
        super().__init__(module, client, stamps)

    def _output(self):
        return None

    def _ports(self, x):
        """Of a shape, made once: what changes from request to request is memory."""
        if x.shape != self.made_for:
            self.made_for, self.y_shape = x.shape, (len(x), *self.shape)
            self.input, self.output = self.module.InferInput("x", x.shape, "FP32"), self.module.InferRequestedOutput("y")
            self.input.set_shared_memory(self.regions["x"][0], x.nbytes)
            self.output.set_shared_memory(self.regions["y"][0], 4 * int(np.prod(self.y_shape)))
        return [self.input], [self.output]

    def ask(self, x):
        inputs, outputs = self._ports(x)
        self.shared.set_shared_memory_region(self.regions["x"][1], [x])
        self.client.infer("asked", inputs, outputs=outputs)
        return self.shared.get_contents_as_numpy(self.regions["y"][1], np.float32, self.y_shape)


class Triton:
    def __init__(self, folder, variant, samples):
        self.folder, self.variant, self.plan, self.samples = folder, variant, plan_of(folder), samples
        repository = os.path.join(folder, "repository")
        write_repository(repository, folder, variant == "one")
        self.server = Server(folder, repository)
        self.server.start()

    def _bytes_of(self, shape):
        return 4 * self.samples * int(np.prod(shape))

    def connect(self, index):
        stamps = Stamps(os.path.join(self.folder, "stamps"), len(self.plan["models"]))
        if self.variant == "http":
            import tritonclient.http as module

            return Asking(module, module.InferenceServerClient(HTTP), stamps)
        import tritonclient.grpc as module

        client = module.InferenceServerClient(GRPC)
        if self.variant != "shm":
            return Asking(module, client, stamps)
        shape, outputs = self.plan["shape"], self.plan["outputs"]
        return ShmAsking(module, client, stamps, index, self._bytes_of(shape), self._bytes_of(outputs), outputs)

    def close(self):
        self.server.close()


def start(folder, variant, order):
    return contextlib.closing(Triton(folder, variant, max(order["samples"])))
