# SPDX-License-Identifier: Apache-2.0
"""A folder for a workload: its models, its inputs, and ONNX Runtime's answers, which every peer's are compared with."""

import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from workloads import WORKLOADS, samples_of


def _write_identity(path, size):
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def model_files(workload, folder, options):
    if workload.source == "identity":
        path = os.path.join(folder, "identity.onnx")
        _write_identity(path, workload.shape[0])
        return {"identity": path}
    place = {"digits": "{name}/1/model.onnx", "zoo": "{name}.onnx"}[workload.source]
    root = options.digits if workload.source == "digits" else options.zoo
    files = {name: os.path.abspath(os.path.join(root, place.format(name=name))) for name in workload.models}
    for name, path in files.items():
        if not os.path.exists(path):
            raise FileNotFoundError(f"{workload.name}: {path} is missing: perf/zoo/zoo.sh --out {options.zoo} --only {name}")
    return files


def prepare(name, folder, options):
    """Writes plan.json, input-N.npy and expected-N.npy for each number of samples."""
    workload = WORKLOADS[name]
    sessions = {}
    for model, path in model_files(workload, folder, options).items():
        sessions[model] = path, onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    random, expected = np.random.default_rng(1), None
    for samples in samples_of(name):
        x = random.random((samples, *workload.shape), np.float32)
        answers = [session.run(None, {session.get_inputs()[0].name: x})[0] for _, session in sessions.values()]
        expected = np.mean(answers, axis=0)
        np.save(os.path.join(folder, f"input-{samples}.npy"), x)
        x.tofile(os.path.join(folder, f"input-{samples}.f32"))
        np.save(os.path.join(folder, f"expected-{samples}.npy"), expected)
    models = [{"name": model, "path": path, "input": session.get_inputs()[0].name, "output": session.get_outputs()[0].name}
              for model, (path, session) in sessions.items()]  # fmt: skip
    plan = {"workload": name, "models": models, "shape": workload.shape, "outputs": expected.shape[1:], "computes": name != "noop"}
    with open(os.path.join(folder, "plan.json"), "w", encoding="utf-8") as file:
        json.dump(plan, file)
