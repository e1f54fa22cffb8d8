# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime or OpenVINO under the orders of a driver: the same orders and answers as engine.c, one line each.

    peer.py onnxruntime|openvino --model FILE --cpus 0[,1] --input NAME=FILE.npy ...
"""

import argparse
import json
import os
import sys
import time

import numpy as np


class OnnxRuntime:
    """Tensors are bound once: a call then costs some microseconds of Python."""

    def __init__(self, threads):
        import onnxruntime

        self.module, self.threads = onnxruntime, threads

    def load(self, path, inputs):
        options = self.module.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = self.module.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.binding = self.session.io_binding()
        for name, array in inputs.items():
            self.binding.bind_cpu_input(name, array)
        for name in self.names:
            self.binding.bind_output(name, "cpu")

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def answers(self):
        return self.binding.copy_outputs_to_cpu()


class OpenVino:
    """Shapes are fixed before compilation, which is how it is fastest; precision is held at fp32 on processors that have others."""

    def __init__(self, threads):
        import openvino

        self.module, self.threads = openvino, threads

    def load(self, path, inputs):
        core = self.module.Core()
        model = core.read_model(path)
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": self.threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": False,
        }
        compiled = core.compile_model(model, "CPU", settings)
        self.request = compiled.create_infer_request()
        self.names = [output.get_any_name() for output in compiled.outputs]
        for name, array in inputs.items():
            self.request.set_tensor(name, self.module.Tensor(array, shared_memory=True))

    def run(self):
        self.request.infer()

    def answers(self):
        return [tensor.data for tensor in self.request.output_tensors]


class Peer:
    def __init__(self, options):
        cpus = [int(cpu) for cpu in options.cpus.split(",")]
        os.sched_setaffinity(0, cpus)
        self.path = options.model
        self.engine = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}[options.engine](len(cpus))
        self.inputs = {name: np.load(path) for name, path in (text.split("=", 1) for text in options.input)}

    def load(self, _):
        start = time.perf_counter_ns()
        self.engine.load(self.path, self.inputs)
        self.engine.run()
        return {"seconds": (time.perf_counter_ns() - start) / 1e9}

    def run(self, times):
        taken = []
        for _ in range(int(times)):
            start = time.perf_counter_ns()
            self.engine.run()
            taken.append(time.perf_counter_ns() - start)
        return {"ns": taken}

    def outputs(self, folder):
        listed = []
        for i, (name, array) in enumerate(zip(self.engine.names, self.engine.answers())):
            path = os.path.join(folder, f"{i}.raw")
            array.tofile(path)
            listed.append({"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "file": path})
        return {"outputs": listed}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["onnxruntime", "openvino"])
    parser.add_argument("--model", required=True)
    parser.add_argument("--cpus", default="0")
    parser.add_argument("--input", action="append", default=[])
    peer = Peer(parser.parse_args())
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order, _, argument = line.rstrip("\n").partition(" ")
        try:
            reply = getattr(peer, order)(argument)
        except Exception as error:  # whatever an engine throws is an answer
            reply = {"error": f"{type(error).__name__}: {error}".replace("\n", " ")[:400]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
