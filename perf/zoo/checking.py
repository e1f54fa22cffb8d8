# SPDX-License-Identifier: Apache-2.0
"""Checks of a written model, and the inputs that every comparison uses."""

import os
import zlib

import numpy as np
import onnx

TOKENS = 1000  # token ids are drawn below this: every vocabulary of the zoo is at least as large
SYMBOLS = {"S": 128}
_ELEMENT_TYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT64: np.int64}


def open_sizes(model):
    """{symbol: size} of the open dimensions beside the batch."""
    dimensions = (d.dim_param for value in model.graph.input for d in value.type.tensor_type.shape.dim)
    return {name: SYMBOLS[name] for name in dimensions if name and name != "N"}


def inputs_of(model, batch, seed=0):
    """{name: array} for the inputs of a model: normal pixels, token ids, masks that hide the end of some sequences."""
    random = np.random.Generator(np.random.PCG64([seed, batch, zlib.crc32(model.graph.name.encode())]))
    return {value.name: _input(random, value, batch) for value in model.graph.input}


def _input(random, value, batch):
    shape = [_size(d, batch) for d in value.type.tensor_type.shape.dim]
    if _ELEMENT_TYPES[value.type.tensor_type.elem_type] is np.float32:
        return random.standard_normal(shape, np.float32)
    if "mask" in value.name:
        lengths = random.integers(shape[1] // 2, shape[1] + 1, shape[0])
        return (np.arange(shape[1])[None, :] < lengths[:, None]).astype(np.int64)
    return random.integers(0, 2 if "type" in value.name else TOKENS, shape)


def _size(dimension, batch):
    if dimension.HasField("dim_value"):
        return dimension.dim_value
    return batch if dimension.dim_param == "N" else SYMBOLS[dimension.dim_param]


def check(path):
    """The checker's verdict is an exception; the answer says how large the outputs are."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    try:
        import onnxruntime
    except ImportError:
        return "well formed; not run: onnxruntime is not installed"
    return _run(onnxruntime, model, path)


def _run(onnxruntime, model, path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = inputs_of(model, 2)
    stem = os.path.splitext(path)[0]
    for name, array in inputs.items():
        np.save(f"{stem}.input.{name}.npy", array)
    said = []
    for value, array in zip(session.get_outputs(), session.run(None, inputs)):
        np.save(f"{stem}.output.{value.name}.npy", array)
        said.append(_described(value.name, array))
    return "; ".join(said)


def _described(name, array):
    if array.dtype != np.float32:
        return f"{name} {list(array.shape)}"
    if not np.isfinite(array).all():
        raise ValueError(f"output {name} is not finite")
    return f"{name} {list(array.shape)} root mean square {np.sqrt(np.square(array, dtype=np.float64).mean()):.3g}"
