#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skeleton.py FOLDER OUT: the models of FOLDER without their weights, into OUT.

An initializer of more than 64 floats loses its values and says in its doc_string how they lie: "seeded MEAN DEVIATION LEAST MOST".
`starling-seeded` draws others like them (seeded.c). All else stays: nodes, shapes, small constants, integers. The models of the zoo
then take a few hundred KiB in all, and are made again where they are needed.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

LEAST_ELEMENTS = 65


def strip(model):
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < LEAST_ELEMENTS:
            continue
        values = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.doc_string = "seeded %.6g %.6g %.6g %.6g" % (values.mean(), values.std(), values.min(), values.max())
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
    return model


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.onnx")):
        onnx.save(strip(onnx.load(path)), out / path.name)
        print(f"{path.stem}: {(out / path.name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
