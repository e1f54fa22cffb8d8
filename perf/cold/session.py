# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime in a process that runs: for each line of its input, "FILE THREADS", makes a session and prints the seconds that took, and
those to its first answer, of one sample of zeros; "nan" where open dimensions leave nothing to run."""

import math
import sys
import time

import numpy
import onnxruntime

TYPES = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32, "tensor(float16)": numpy.float16}


def zeros(session):
    """None: it has open dimensions beside the batch, or types that nothing is known of."""
    inputs = {}
    for port in session.get_inputs():
        rest = port.shape[1:]
        if port.type not in TYPES or any(not isinstance(size, int) for size in rest):
            return None
        first = [size if isinstance(size, int) else 1 for size in port.shape[:1]]
        inputs[port.name] = numpy.zeros(first + rest, TYPES[port.type])
    return inputs


def create(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    begun = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    made = time.perf_counter() - begun
    inputs = zeros(session)
    if inputs is None:
        return made, math.nan
    begun = time.perf_counter()
    session.run(None, inputs)
    return made, made + time.perf_counter() - begun


def main():
    onnxruntime.set_default_logger_severity(3)
    print(onnxruntime.__version__, flush=True)
    for line in sys.stdin:
        path, threads = line.rstrip("\n").rsplit(" ", 1)
        print(*create(path, int(threads)), flush=True)


if __name__ == "__main__":
    main()
