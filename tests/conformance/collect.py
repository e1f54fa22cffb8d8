# SPDX-License-Identifier: Apache-2.0
"""collect.py FOLDER: the cases of ONNX's operators that its Python package carries as code, written as ONNX lays out its files.

Later wheels leave the files out, and the package computes most of the values anew. The stamp FOLDER/complete comes last; it names
what the cases come from, so that another version of the package or of this file writes them again."""

import hashlib
import pathlib
import shutil
import sys
import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

HERE = pathlib.Path(__file__).parent


def proto_of(value, port):
    """The file of one input or output: a tensor, a sequence or an optional."""
    if isinstance(value, onnx.TensorProto):
        return value
    kind = port.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, port.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, port.name)
    return numpy_helper.from_array(value, port.name)


def write_set(folder, graph, inputs, outputs):
    folder.mkdir()
    for kind, values, ports in ("input", inputs, graph.input), ("output", outputs, graph.output):
        for i, (value, port) in enumerate(zip(values, ports)):
            (folder / f"{kind}_{i}.pb").write_bytes(proto_of(value, port).SerializeToString())


def write(folder, case):
    folder.mkdir()
    (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for i, (inputs, outputs) in enumerate(case.data_sets):
        write_set(folder / f"test_data_set_{i}", case.model.graph, inputs, outputs)


def main():
    folder = pathlib.Path(sys.argv[1])
    sources = [pathlib.Path(__file__), HERE / "made" / "requirements.txt"]
    wanted = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = folder / "complete"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    warnings.simplefilter("ignore")
    cases = collect_testcases(None)
    for case in cases:
        write(folder / case.name, case)
    stamp.write_text(wanted)
    print(f"onnx {onnx.__version__}: {len(cases)} cases of operators")


main()
