# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime in a process that runs: for each line of its input, "FILE THREADS", makes a session and prints the seconds that took."""

import sys
import time

import onnxruntime


def create(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    begun = time.perf_counter()
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return time.perf_counter() - begun


def main():
    onnxruntime.set_default_logger_severity(3)
    print(onnxruntime.__version__, flush=True)
    for line in sys.stdin:
        path, threads = line.rstrip("\n").rsplit(" ", 1)
        print(create(path, int(threads)), flush=True)


if __name__ == "__main__":
    main()
