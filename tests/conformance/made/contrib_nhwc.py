# SPDX-License-Identifier: Apache-2.0
"""NhwcConv, NhwcMaxPool and QLinearConv with channels last."""

import numpy as np
from case import byte_weights, node


def turned(name):
    return node("Transpose", [name], [f"{name}_first"], domain="", perm=[0, 3, 1, 2])


def back(name):
    return node("Transpose", [f"{name}_first"], [name], domain="", perm=[0, 2, 3, 1])


CONVOLUTIONS = {
    "plain": ((1, 3, 3, 6), {}),
    "strides": ((1, 3, 3, 6), {"strides": [2, 1], "pads": [1, 0, 1, 2]}),
    "dilated": ((1, 3, 2, 6), {"dilations": [2, 2]}),
    "same": ((1, 3, 3, 6), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "groups": ((2, 3, 3, 3), {"group": 2, "kernel_shape": [3, 3]}),
    "depthwise": ((6, 3, 3, 1), {"group": 6}),
}


def make(family):
    for name, ((factor, *window), attributes) in CONVOLUTIONS.items():
        random = family.random(name)
        inputs = {"x": random.standard_normal((2, 9, 8, 6), np.float32)}
        constants = {"w": random.standard_normal((4 * factor, *window), np.float32), "b": random.standard_normal(4 * factor, np.float32)}
        one = node("NhwcConv", ["x", "w", "b"], ["y"], **attributes)
        # ONNX Runtime has it for other devices only.
        conv = node("Conv", ["x_first", "w_first", "b"], ["y_first"], domain="", **attributes)
        family.add(f"conv_{name}", [one], inputs, constants, reference=[turned("x"), turned("w"), conv, back("y")])
    for kind in (np.uint8, np.int8):
        random = family.random(kind.__name__)
        info = np.iinfo(kind)
        pool = node("NhwcMaxPool", ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        x = random.integers(info.min, info.max + 1, (2, 9, 8, 5), kind)
        family.add(f"max_pool_{kind.__name__}", [pool], {"x": x})
        constants = {
            "x_scale": np.array(0.031, np.float32),
            "x_zero": np.array(5, kind),
            "w": byte_weights(random, np.int8, 4, 5, 3, 3),
            "w_scale": random.uniform(0.001, 0.005, 4).astype(np.float32),
            "w_zero": np.zeros(4, np.int8),
            "y_scale": np.array(0.0457, np.float32),
            "y_zero": np.array(9, kind),
            "b": random.integers(-900, 900, 4, np.int32),
        }
        for last in (0, 1):
            names = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero", "b"]
            one = node("QLinearConv", names, ["y"], channels_last=last, pads=[1, 1, 1, 1])
            data = x if last else np.ascontiguousarray(x.transpose(0, 3, 1, 2))
            family.add(f"qlinear_conv_{kind.__name__}_{last}", [one], {"x": data}, constants)
