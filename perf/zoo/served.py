# SPDX-License-Identifier: Apache-2.0
"""Every network of the zoo through `starling serve` and the Python client, beside ONNX Runtime.

    served.py --zoo DIR [--command build/release/bin/starling] [--only NAME,NAME] [--batches 1,3]

One line for each network: the largest difference of any output, relative to the output's largest value, at each batch. Exit status 1
when a network is refused, or differs in shape, in type, or by more than 1e-4.
"""

import argparse
import os
import sys

import numpy as np
import onnx
import onnxruntime

import checking
import starling.errors
from runtime import Runtime

HERE = os.path.dirname(os.path.abspath(__file__))
ERROR_LIMIT = 1e-4


def _difference(got, expected):
    """Relative to the largest value; of integers and booleans, how many differ is the difference."""
    if got.shape != expected.shape:
        raise ValueError(f"shape {got.shape}, ONNX Runtime {expected.shape}")
    if got.dtype != expected.dtype:
        raise ValueError(f"type {got.dtype}, ONNX Runtime {expected.dtype}")
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind != "f":
        return float((got != expected).mean())
    scale = max(np.abs(expected).max(), np.finfo(np.float32).tiny)
    return float(np.abs(got.astype(np.float64) - expected).max() / scale)


def _answers(client, name, inputs):
    model = client.model(name)
    answer = client.infer(model, {key: client.array(value) for key, value in inputs.items()})
    return list(answer.values()) if isinstance(answer, dict) else [answer]


def compare(command, path, name, batches):
    """[largest difference at each batch]; an exception says what was refused."""
    model = onnx.load(path, load_external_data=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    runtime = Runtime(command, {name: path})
    client = runtime.connect(tensors_per_request=64, queue_depth=8)
    try:
        worst = []
        for batch in batches:
            inputs = checking.inputs_of(model, batch)
            expected = session.run(None, inputs)
            got = _answers(client, name, inputs)
            worst.append(max(_difference(a, b) for a, b in zip(got, expected, strict=True)))
            del got
        return worst
    except starling.errors.StarlingError as error:
        raise RuntimeError(f"{error}; {runtime.said()}") from None
    finally:
        client.close()
        runtime.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", required=True, metavar="DIR", help="take the models from DIR, as NAME.onnx (required)")
    parser.add_argument(
        "--command", default=os.path.join(HERE, "../../build/release/bin/starling"), metavar="FILE",
        help="measure the command FILE (default: %(default)s)",
    )
    parser.add_argument("--only", metavar="NAMES", help="serve the models NAMES alone, separated by commas (default: all)")
    parser.add_argument("--batches", default="1,3", metavar="N,...", help="send N samples in a request (default: %(default)s)")
    options = parser.parse_args()
    batches = [int(batch) for batch in options.batches.split(",")]
    names = options.only.split(",") if options.only else sorted(f[:-5] for f in os.listdir(options.zoo) if f.endswith(".onnx"))
    failed = 0
    for name in names:
        try:
            worst = compare(options.command, os.path.join(options.zoo, name + ".onnx"), name, batches)
            said = ", ".join(f"batch {batch} {error:.1e}" for batch, error in zip(batches, worst))
            failed += max(worst) > ERROR_LIMIT
        except Exception as error:  # one network's failure is a line, the others go on
            said, failed = f"FAILED: {type(error).__name__}: {error}", failed + 1
        print(f"{name:28}{said}", flush=True)
    print(f"{len(names) - failed} of {len(names)} agree to {ERROR_LIMIT:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
