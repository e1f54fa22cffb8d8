# SPDX-License-Identifier: Apache-2.0
"""What an ensemble takes beside its networks: fake predictions, and everything else real.

    overhead.py [--out FILE.json] [--program FILE] [--rounds 15] [--images 1024]

Sources: Pochelu, Petiton, Conche 2022, section IV.A: 12 members, 22 workers, 1,024 images of 224 x 224 pixels, 1,000 classes; predictions
are zeros, the accumulator still combines them. Since no network runs, one of the right inputs and outputs stands for each member.

A message is what a worker says of one segment of one member. Its time is measured with one class, where nothing is left to combine; the
bytes beside it are those that 1,000 classes add, given as a rate beside the memory's own (a copy of as many bytes, in the same run).
"""

import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

import experiment
from runtime import Runtime

MEMBERS, WORKERS, CLASSES, SEGMENT = 12, 22, 1000, 128
PIXELS = (3, 224, 224)
PAPER_SECONDS, PAPER_REAL_SECONDS = 0.035, 2.528  # 16 GPUs
MESSAGE_US = 5.0


def write_network(path, classes):
    """The mean of each colour, and one product: as small as a network with these inputs and outputs gets."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [PIXELS[0], classes], np.full(PIXELS[0] * classes, 0.1, np.float32))
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *PIXELS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", classes])
    graph = helper.make_graph(nodes, "small", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def seconds_of(client, x, classes, rounds):
    """Median of a request with all images, and whether the answer is what it must be."""
    y, times = client.empty((len(x), classes), np.float32), []
    for _ in range(rounds + 1):
        y[:] = 1
        begun = time.perf_counter()
        client.infer("ensemble", x, outputs=y)
        times.append(time.perf_counter() - begun)
        if y.any():
            sys.exit("overhead.py: a fake prediction was not zero")
    return statistics.median(times[1:])


def measure(options, classes):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "small.onnx")
        write_network(path, classes)
        twice = WORKERS - MEMBERS
        names = [f"member{i}" for i in range(MEMBERS)]
        runtime = Runtime(options.program, {name: path for name in names}, {"ensemble": names},
                          configs={name: "instances: 2\n" for name in names[:twice]}, arguments=["--fake"])  # fmt: skip
        try:
            with runtime.connect() as client:
                x = client.empty((options.images, *PIXELS), np.float32)
                x[:] = 0.5
                return seconds_of(client, x, classes, options.rounds)
        finally:
            runtime.close()


def copy_seconds(count):
    source, target = np.ones(count, np.float32), np.empty(count, np.float32)
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        target[:] = source
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main():
    options = experiment.read_arguments(__doc__, rounds=15, images=1024)
    messages = MEMBERS * -(-options.images // SEGMENT)
    whole, bare = measure(options, CLASSES), measure(options, 1)
    combined = MEMBERS * options.images * CLASSES * 4
    result = {
        **experiment.head("overhead"),
        "members": MEMBERS, "workers": WORKERS, "images": options.images, "messages": messages,
        "seconds": round(whole, 6), "paper_seconds": PAPER_SECONDS, "paper_real_seconds": PAPER_REAL_SECONDS,
        "one_class_seconds": round(bare, 6), "message_us": round(bare * 1e6 / messages, 3), "message_us_wanted": MESSAGE_US,
        "combined_bytes": combined, "combined_gb_per_s": round(combined / max(whole - bare, 1e-9) / 1e9, 2),
        "copy_gb_per_s": round(combined / copy_seconds(combined // 4) / 1e9, 2),
    }  # fmt: skip
    result["missed"] = [name for name, misses in {
        "seconds <= 0.035": whole > PAPER_SECONDS,
        "message_us <= 5": result["message_us"] > MESSAGE_US,
    }.items() if misses]  # fmt: skip
    print(json.dumps(result, indent=1))
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
