# SPDX-License-Identifier: Apache-2.0
"""Another engine under the orders of a driver: the same orders and answers as engine.c, one line each.

    peer.py onnxruntime|openvino|ncnn|mnn --model FILE --cpus 0[,1] --input NAME=FILE.npy ...
"""

import argparse
import json
import os
import sys
import tempfile
import time

import numpy as np

import converting


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
    """Shapes are fixed before compilation, which is how it is fastest; precision is held at fp32 on processors that have others, or at bf16."""

    precision = "f32"

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
            "INFERENCE_PRECISION_HINT": self.precision,
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


class Ncnn:
    """Its tensors have no batch: a model is converted for one sample, and samples are computed one by one."""

    def __init__(self, threads):
        import ncnn

        self.module, self.threads = ncnn, threads

    def convert(self, path, inputs, folder):
        return converting.to_ncnn(path, {name: array[:1] for name, array in inputs.items()}, folder)

    def load(self, path, inputs):
        self.net = self.module.Net()
        options = self.net.opt
        options.num_threads = self.threads
        options.use_vulkan_compute = False
        for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage", "use_bf16_packed"):
            if hasattr(options, name):
                setattr(options, name, False)
        if self.net.load_param(path + ".param") or self.net.load_model(path + ".bin"):
            raise RuntimeError("ncnn does not load what pnnx wrote")
        self.names = converting.output_names(path + ".onnx")
        self.samples = [self._mats(inputs, i) for i in range(next(iter(inputs.values())).shape[0])]

    def _mats(self, inputs, sample):
        arrays = [np.ascontiguousarray(a[sample : sample + 1]) for a in inputs.values()]
        arrays = [a.astype(np.int32) if a.dtype == np.int64 else a for a in arrays]
        return [self.module.Mat(a, batch_index=0).clone() for a in arrays]

    def run(self):
        self.answered = [self._one(mats) for mats in self.samples]

    def _one(self, mats):
        with self.net.create_extractor() as extractor:
            for i, mat in enumerate(mats):
                extractor.input(f"in{i}", mat)
            found = [extractor.extract(f"out{i}") for i in range(len(self.names))]
        if any(status for status, _ in found):
            raise RuntimeError("ncnn computes no output")
        return [mat.clone() for _, mat in found]

    def answers(self):
        return [np.concatenate([np.array(sample[i].numpy(batch_index=0)) for sample in self.answered]) for i in range(len(self.names))]


class Mnn:
    """Held at fp32 by its precision `high`."""

    def __init__(self, threads):
        import MNN

        self.module, self.threads = MNN, threads

    def convert(self, path, inputs, folder):
        return converting.to_mnn(path, folder)

    def load(self, path, inputs):
        nn, expr = self.module.nn, self.module.expr
        manager = nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": self.threads},))
        self.names = converting.output_names(path + ".onnx")
        self.net = nn.load_module_from_file(path, list(inputs), self.names, runtime_manager=manager)
        self.inputs = [self._variable(expr, array) for array in inputs.values()]

    @staticmethod
    def _variable(expr, array):
        array = array.astype(np.int32) if array.dtype == np.int64 else array
        variable = expr.placeholder(list(array.shape), expr.NCHW, expr.int if array.dtype == np.int32 else expr.float)
        variable.write(array)
        return variable

    def run(self):
        """Reading is what makes it compute."""
        expr = self.module.expr
        found = self.net.forward(self.inputs if len(self.inputs) > 1 else self.inputs[0])
        found = found if isinstance(found, (list, tuple)) else [found]
        self.answered = [(expr.convert(v, expr.NCHW) if v.data_format == expr.NC4HW4 else v).read() for v in found]

    def answers(self):
        return [np.ascontiguousarray(a) for a in self.answered]


ENGINES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "ncnn": Ncnn, "mnn": Mnn}


class Peer:
    def __init__(self, options):
        cpus = [int(cpu) for cpu in options.cpus.split(",")]
        os.sched_setaffinity(0, cpus)
        self.path = options.model
        self.engine = ENGINES[options.engine](len(cpus))
        self.engine.precision = options.precision
        self.inputs = {name: np.load(path) for name, path in (text.split("=", 1) for text in options.input)}

    def load(self, _):
        """An engine with a file format of its own gets the model converted first, which is no part of the load."""
        with tempfile.TemporaryDirectory() as folder:
            path = self.engine.convert(self.path, self.inputs, folder) if hasattr(self.engine, "convert") else self.path
            start = time.perf_counter_ns()
            self.engine.load(path, self.inputs)
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
    parser.add_argument("engine", choices=list(ENGINES), help="run the model in this engine")
    parser.add_argument("--model", required=True, metavar="FILE", help="run the model FILE (required)")
    parser.add_argument("--cpus", default="0", metavar="A,B,...", help="run on the CPUs A, B, ..., a thread on each (default: %(default)s)")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE.npy",
        help="give the input NAME what FILE.npy holds; repeatable (default: none)",
    )
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="ask OpenVINO for this precision (default: %(default)s)")
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what an engine prints is no reply
    peer = Peer(options)
    print(json.dumps({"ready": True}), file=replies)
    for line in sys.stdin:
        order, _, argument = line.rstrip("\n").partition(" ")
        try:
            reply = getattr(peer, order)(argument)
        except Exception as error:  # whatever an engine throws is an answer
            reply = {"error": f"{type(error).__name__}: {error}".replace("\n", " ")[:400]}
        print(json.dumps(reply), file=replies)


if __name__ == "__main__":
    main()
