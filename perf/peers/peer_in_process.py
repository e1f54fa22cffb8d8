# SPDX-License-Identifier: Apache-2.0
"""An engine inside each client's process: no server at all. Members of an ensemble are computed one after the other."""

import contextlib
import os
import time

import numpy as np

from clients import Client
from member import Ensemble
from plan import plan_of
from stamps import Stamps


class OpenVinoMember:
    """As perf/engine asks it: fp32, fixed shapes; compiled again for another number of samples."""

    def __init__(self, folder, index, threads):
        import openvino

        self.openvino, self.threads, self.index = openvino, threads, index
        plan = plan_of(folder)
        self.model = openvino.Core().read_model(plan["models"][index]["path"])
        self.stamps = Stamps(os.path.join(folder, "stamps"), len(plan["models"]))
        self.shape = None

    def _compile(self, shape):
        self.model.reshape({self.model.inputs[0].get_any_name(): list(shape)})
        settings = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": self.threads,
                    "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False}  # fmt: skip
        self.request = self.openvino.Core().compile_model(self.model, "CPU", settings).create_infer_request()
        self.shape = shape

    def run(self, x):
        if x.shape != self.shape:
            self._compile(x.shape)
        begin = time.monotonic_ns()
        self.request.set_input_tensor(self.openvino.Tensor(x, shared_memory=True))
        self.request.infer()
        y = np.array(self.request.get_output_tensor().data)
        self.stamps.put(self.index, begin, time.monotonic_ns())
        return y


class OpenVinoEnsemble(Ensemble):
    def __init__(self, folder, threads):
        self.members = [OpenVinoMember(folder, i, threads) for i in range(len(plan_of(folder)["models"]))]


class Asking(Client):
    def __init__(self, ensemble):
        self.ask = ensemble.run
        self.span_ns = ensemble.members[0].stamps.span_ns


class InProcess:
    def __init__(self, folder, engine, threads):
        self.kind = {"onnxruntime": Ensemble, "openvino": OpenVinoEnsemble}[engine]
        self.folder, self.threads = folder, threads

    def connect(self, index):
        return Asking(self.kind(self.folder, self.threads))


def start(folder, variant, order):
    engine, threads = variant.split(":")
    return contextlib.nullcontext(InProcess(folder, engine, int(threads)))
