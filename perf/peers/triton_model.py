# SPDX-License-Identifier: Apache-2.0
"""A model of Triton's Python backend: one member in ONNX Runtime, all of them one after the other, or the mean of several answers.
Requests that Triton hands over together are computed together."""

import json
import sys

import numpy as np
import triton_python_backend_utils as triton


def _mean(arrays):
    return sum(arrays[1:], arrays[0]) / len(arrays)


class TritonPythonModel:
    def initialize(self, arguments):
        config = json.loads(arguments["model_config"])
        parameters = {key: value["string_value"] for key, value in config["parameters"].items()}
        self.inputs = [port["name"] for port in config["input"]]
        if parameters["does"] == "mean":
            self.compute = _mean
            return
        sys.path.insert(0, parameters["path"])  # the backend's interpreter has none of ours
        import member

        folder = parameters["folder"]
        run = member.answer_of(folder) if parameters["does"] == "all" else member.Member(folder, int(parameters["index"])).run
        self.compute = lambda arrays: run(arrays[0])

    def _arrays(self, request):
        return [triton.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs]

    def execute(self, requests):
        arrays = [self._arrays(request) for request in requests]
        joined = arrays[0] if len(arrays) == 1 else [np.concatenate(parts) for parts in zip(*arrays)]
        y = self.compute(joined)
        ends = np.cumsum([len(parts[0]) for parts in arrays])[:-1]
        return [triton.InferenceResponse([triton.Tensor("y", np.ascontiguousarray(part))]) for part in np.split(y, ends)]
