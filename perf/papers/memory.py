# SPDX-License-Identifier: Apache-2.0
"""What six granularities of one network take, beside six engines of their own.

    memory.py --zoo DIR [--only NAME,NAME] [--out FILE.json] [--program FILE]

Sources: E2bird, section 6 and figure 17: workers of batch sizes 1, 1, 2, 4, 8, 16 share weights and plan; as separate engines each has its
own. Live: resident memory of `starling serve` (VmRSS) with one model and `batch_sizes`, and with six models of one worker each, after a
request for each worker's largest batch. What an empty runtime has resident is taken off both.
"""

import os

import numpy as np
import onnx

import experiment
from runtime import Runtime

SIZES = [1, 1, 2, 4, 8, 16]
PAPER_SAVED = 0.648
NETWORKS = "resnet18,resnet50,densenet121,mobilenetv2,vgg16"


def input_shape(path):
    return [dim.dim_value for dim in onnx.load(path, load_external_data=False).graph.input[0].type.tensor_type.shape.dim][1:]


def measure(options, path, configs):
    """Bytes resident once each model has computed the largest batches of its workers."""
    runtime = Runtime(options.program, {name: path for name in configs}, configs=configs)
    try:
        with runtime.connect() as client:
            for name in configs:
                x = client.empty((sum(SIZES), *input_shape(path)), np.float32)
                x[:] = 0.5
                for _ in range(3):
                    client.infer(name, x)
            return runtime.resident_bytes()
    finally:
        runtime.close()


def compare(options, name):
    path = os.path.join(options.zoo, name + ".onnx")
    empty = measure(options, path, {})
    shared = measure(options, path, {"shared": f"batch_max: {max(SIZES)}\nbatch_sizes: {SIZES}\n"})
    apart = measure(options, path, {f"engine{i}": f"batch_max: {size}\n" for i, size in enumerate(SIZES)})
    row = {"network": name, "shared_bytes": shared - empty, "separate_bytes": apart - empty,
           "saved": round(1 - (shared - empty) / (apart - empty), 3)}  # fmt: skip
    print(f"{name:14} shared {row['shared_bytes'] / 2**20:7.0f} MiB, separate {row['separate_bytes'] / 2**20:7.0f} MiB: {row['saved']:.1%} less",
          flush=True)  # fmt: skip
    return row


def main():
    options = experiment.read_arguments(__doc__, NETWORKS)
    rows = [compare(options, name) for name in options.only.split(",")]
    mean = round(sum(row["saved"] for row in rows) / len(rows), 3)
    print(f"mean {mean:.1%} less; the paper's, on a GPU: {PAPER_SAVED:.1%}")
    result = {**experiment.head("memory"), "batch_sizes": SIZES, "rows": rows, "saved_mean": mean, "paper_saved": PAPER_SAVED}
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
