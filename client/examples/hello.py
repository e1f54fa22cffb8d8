# SPDX-License-Identifier: Apache-2.0
"""The smallest whole program: one request to one model, with ones for input.

    starling serve client/examples/digits/models &
    python3 hello.py digits

It works with any model whose inputs have no free size but the batch.
"""

import sys

import numpy as np
import starling


def hello(name="digits", runtime=None):
    with starling.Client(runtime, timeout=60) as client:  # seconds to wait for a runtime that is starting
        model = client.model(name)
        ones = {port.name: np.ones([n or 1 for n in port.shape], port.shown) for port in model.inputs}
        outputs = client.infer(model, ones)  # an array; of several outputs a dict
        for name, values in outputs.items() if isinstance(outputs, dict) else [(model.outputs[0].name, outputs)]:
            print(f"{name}: {values.dtype} {list(values.shape)} {np.round(values.ravel()[:10], 4)}")


if __name__ == "__main__":
    try:
        hello(*sys.argv[1:3])
    except starling.StarlingError as error:
        sys.exit(f"hello.py: {error}")
