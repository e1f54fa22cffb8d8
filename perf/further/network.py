# SPDX-License-Identifier: Apache-2.0
"""A module of PyTorch with the names and shapes of its ports, and how it becomes an ONNX file."""

import contextlib
import io
import os
import tempfile
import warnings
from typing import NamedTuple

import numpy as np
import onnx
import torch
from torch import nn

import seeding

OPSET = {"graph": 20, "script": 17}


class Port(NamedTuple):
    name: str
    shape: tuple  # "N" is the batch
    dtype: str = "float32"
    limit: int = 1000  # integers are drawn below this


class Network(NamedTuple):
    module: nn.Module
    inputs: list
    outputs: list  # names


def _example(random, port, batch=2):
    shape = [batch if n == "N" else n for n in port.shape]
    if port.dtype == "float32":
        return torch.from_numpy(random.standard_normal(shape, np.float32))
    if "mask" in port.name:
        return torch.ones(shape, dtype=torch.int64)
    return torch.from_numpy(random.integers(0, port.limit, shape))


def export(network, name, form, path):
    """`form` is the exporter: `graph` (torch.export) or `script` (TorchScript). Returns the bytes of the file."""
    random = seeding.generator(name + " example")
    example = tuple(_example(random, port) for port in network.inputs)
    seeding.seed_module(network.module, name, example)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        raw = os.path.join(folder, "raw.onnx")
        with torch.no_grad():
            {"graph": _by_graph, "script": _by_script}[form](network, example, raw)
        model = onnx.load(raw)
    _strip(model, name)
    data = model.SerializeToString(deterministic=True)
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.replace(path + ".part", path)
    return len(data)


def _names(network):
    return [port.name for port in network.inputs]


def _axes(network):
    return [{axis: "N" for axis, n in enumerate(port.shape) if n == "N"} for port in network.inputs]


def _by_graph(network, example, path):
    batch = torch.export.Dim("N", min=1, max=4096)
    shapes = tuple({axis: batch for axis in axes} for axes in _axes(network))
    shapes = shapes if not _is_variadic(network.module) else (shapes,)
    program = torch.onnx.export(
        network.module, example, dynamo=True, dynamic_shapes=shapes, input_names=_names(network), output_names=network.outputs,
        opset_version=OPSET["graph"], verbose=False,
    )  # fmt: skip
    program.save(path)


def _is_variadic(module):
    return module.forward.__code__.co_flags & 4 != 0  # CO_VARARGS


def _by_script(network, example, path):
    axes = dict(zip(_names(network), _axes(network))) | {name: {0: "N"} for name in network.outputs}
    torch.onnx.export(
        network.module, example, path, dynamo=False, dynamic_axes=axes, input_names=_names(network), output_names=network.outputs,
        opset_version=OPSET["script"],
    )  # fmt: skip


def _strip(model, name):
    """Leaves out what names the machine: stack traces, documentation."""
    model.graph.name = name
    del model.metadata_props[:]
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        del graph.metadata_props[:], graph.value_info[:]
        for value in [*graph.input, *graph.output, *graph.initializer]:
            del value.metadata_props[:]
            value.doc_string = ""
        for node in graph.node:
            del node.metadata_props[:]
            node.doc_string = ""
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
