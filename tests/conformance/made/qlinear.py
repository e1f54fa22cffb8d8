# SPDX-License-Identifier: Apache-2.0
"""QLinearConv and QLinearMatMul by weights that a file has: of both types, around any zero, with one scale or one for each channel."""

import itertools

import numpy as np
from case import byte_weights, node

BYTES = {"u8": np.uint8, "i8": np.int8}
ZEROS = {"u8": (0, 128, 77), "i8": (0, 9)}


def data(random, kind, *shape):
    info = np.iinfo(kind)
    return random.integers(info.min, info.max + 1, shape, kind)


def quantities(random, a, b, zero, channels, scale):
    return {
        "x_scale": np.array(random.uniform(0.01, 0.05), np.float32),
        "x_zero": np.array(random.integers(10, 100), BYTES[a]),
        "w_scale": random.uniform(0.001, 0.01, channels).astype(np.float32) if channels else np.array(0.0053, np.float32),
        "w_zero": np.full(channels, zero, BYTES[b]) if channels else np.array(zero, BYTES[b]),
        "y_scale": np.array(scale * random.uniform(1, 2), np.float32),
        "y_zero": np.array(random.integers(10, 100), BYTES[a]),
    }


NAMES = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"]


def make(family):
    for (a, b), bias in itertools.product((("u8", "u8"), ("u8", "i8"), ("i8", "i8")), (0, 1)):
        for zero, channels in itertools.product(ZEROS[b], (0, 4)):
            case = f"conv_{a}{b}_{zero}{'_channels' * (channels > 0)}{'_bias' * bias}"
            random = family.random(case)
            constants = quantities(random, a, b, zero, channels, 0.1) | {"w": byte_weights(random, BYTES[b], 4, 3, 3, 3)}
            if bias:
                constants["b"] = random.integers(-9000, 9000, 4, np.int32)
            one = node("QLinearConv", NAMES + ["b"] * bias, ["y"], domain="", pads=[1, 1, 1, 1])
            family.add(case, [one], {"x": data(random, BYTES[a], 2, 3, 8, 7)}, constants)
    for (a, b), known in itertools.product((("u8", "u8"), ("u8", "i8"), ("i8", "i8")), (0, 1)):
        for zero, columns in itertools.product(ZEROS[b], (0, 6)):
            if columns and not known:
                continue
            case = f"matmul_{a}{b}_{zero}{'_columns' * (columns > 0)}{'_known' * known}"
            random = family.random(case)
            constants = quantities(random, a, b, zero, columns, 0.1)
            inputs = {"x": data(random, BYTES[a], 3, 5, 16)}
            (constants if known else inputs)["w"] = byte_weights(random, BYTES[b], 16, 6)
            family.add(case, [node("QLinearMatMul", NAMES, ["y"], domain="")], inputs, constants)
