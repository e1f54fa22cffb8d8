# SPDX-License-Identifier: Apache-2.0
"""collect.py FOLDER: the cases of ONNX's operators that its Python package carries as code, written as ONNX lays out its files.

Later wheels leave the files out, and the package computes most of the values anew. The stamp FOLDER/complete comes last; it names
what the cases come from, so that another version of the package or of this file writes them again. Only then is the package imported."""

import hashlib
import pathlib
import shutil
import sys
import warnings

import numpy as np

HERE = pathlib.Path(__file__).parent
SUMS = {
    "AVG": lambda windows, axes, p: windows.mean(axes),
    "MAX": lambda windows, axes, p: windows.max(axes),
    "LPPOOL": lambda windows, axes, p: (np.abs(windows) ** p).sum(axes) ** (1 / p),
}


def pool_of(one_by_one):
    """The package's pool(), all windows at once where none is padded or dilated: by an interpreted loop over each element the three
    cases of 3 x 32^3 values take two thirds of all the time."""

    def pool(padded, x_shape, kernel, strides, out_shape, kind, *pads, p=1, **others):
        if pads or any(value is not None for value in others.values()) or np.isnan(padded).any():
            return one_by_one(padded, x_shape, kernel, strides, out_shape, kind, *pads, p=p, **others)
        axes = tuple(range(2, padded.ndim))
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axes)
        windows = windows[(slice(None), slice(None), *(slice(None, None, stride) for stride in strides))]
        return SUMS[kind](windows, tuple(axis + len(axes) for axis in axes), p).astype(padded.dtype)

    return pool


def collect():
    """The cases, without the source of each function that makes one, which the package reads for its documentation."""
    from onnx.backend.test.case import base
    from onnx.reference.ops import op_pool_common

    base.process_snippet = lambda operator, name, export: (name, "")
    op_pool_common.pool = pool_of(op_pool_common.pool)
    from onnx.backend.test.case.node import collect_testcases

    warnings.simplefilter("ignore")
    return collect_testcases(None)


def proto_of(value, port):
    """The file of one input or output: a tensor, a sequence or an optional."""
    import onnx
    from onnx import numpy_helper

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
    cases = collect()
    for case in cases:
        write(folder / case.name, case)
    stamp.write_text(wanted)
    print(f"{len(cases)} cases of operators")


main()
