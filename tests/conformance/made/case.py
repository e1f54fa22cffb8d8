# SPDX-License-Identifier: Apache-2.0
"""One case: a small model, its inputs, and what ONNX Runtime makes of them, written as ONNX writes its own cases."""

import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

IR_VERSION = 10
OPSET = 17


def node(operator, inputs, outputs, domain="com.microsoft", **attributes):
    """A node. An input or output that is left out has the name ""; an attribute that is None is left out."""
    given = {name: value for name, value in attributes.items() if value is not None}
    return helper.make_node(operator, inputs, outputs, name=f"{operator}_{outputs[0]}", domain=domain, **given)


def byte_weights(random, kind, *shape):
    """Weights whose products ONNX Runtime adds up exactly on any processor. By int8 it adds two neighbouring ones in 16 bits where
    there is no VNNI, which saturate; 2 * 255 * 64 does not. By uint8 it widens both sides first."""
    least, end = (-64, 64) if kind is np.int8 else (0, 256)
    return random.integers(least, end, shape, kind)


def tensor_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def build(nodes, inputs, constants, outputs, opset):
    """@outputs: a name, or a name with the array that it will hold."""
    domains = {one.domain for one in nodes} - {""}
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info(name, tensor_type(array), array.shape) for name, array in inputs.items()],
        [
            onnx.ValueInfoProto(name=name) if array is None else helper.make_tensor_value_info(name, tensor_type(array), array.shape)
            for name, array in outputs.items()
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    versions = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, VERSIONS[domain]) for domain in sorted(domains)]
    return helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)


VERSIONS = {"com.microsoft": 1, "ai.onnx.ml": 3}


def run(model, inputs):
    """The operators as they stand in the file, on one thread."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


class Family:
    """The cases of one file. The random numbers of a case depend on its name alone, so that one more changes no other."""

    def __init__(self, name, folder):
        self.name, self.folder, self.count = name, folder, 0

    def random(self, case):
        return np.random.default_rng(zlib.crc32(f"{self.name}/{case}".encode()))

    def add(self, case, nodes, inputs, constants=None, outputs=("y",), opset=OPSET, reference=None):
        """Writes a case. @inputs come with a request, @constants are in the file; @reference: other nodes, which say what is right
        where ONNX Runtime has no kernel of @nodes."""
        constants, names = constants or {}, dict.fromkeys(outputs)
        results = run(build(reference or nodes, inputs, constants, names, opset), inputs)
        expected = dict(zip(outputs, (np.asarray(result) for result in results), strict=True))
        self.write(case, build(nodes, inputs, constants, expected, opset), inputs, expected)

    def write(self, case, model, inputs, expected):
        data = self.folder / f"test_{self.name}_{case}" / "test_data_set_0"
        data.mkdir(parents=True)
        (data.parent / "model.onnx").write_bytes(model.SerializeToString())
        for kind, arrays in (("input", inputs), ("output", expected)):
            for i, (name, array) in enumerate(arrays.items()):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
        self.count += 1
