# SPDX-License-Identifier: Apache-2.0
"""MatMulNBits: bits, block sizes, zero points of both kinds, last blocks that are not full, a bias."""

import itertools

import numpy as np
from case import node


def numbers(packed, bits, count):
    """Of each row the first @count numbers, the first one in the lowest bits."""
    parts = [packed >> shift & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(packed.shape[0], -1)[:, :count].astype(np.float32)


def floats(constants, bits, rows, block):
    """B as the documentation defines it."""
    columns, blocks = constants["scales"].shape
    weights = numbers(constants["b"].reshape(columns, -1), bits, blocks * block).reshape(columns, blocks, block)
    zeros = constants.get("zeros", np.full((columns, blocks), 2 ** (bits - 1), np.float32))
    if zeros.dtype == np.uint8:
        zeros = numbers(zeros, bits, blocks)
    weights = (weights - zeros[..., None]) * constants["scales"][..., None]
    return np.ascontiguousarray(weights.reshape(columns, -1)[:, :rows].T)


def make(family):
    sizes = {"full": (64, 32), "rest": (50, 16), "one": (32, 128)}
    for bits, (name, (rows, block)), zeros, bias in itertools.product((2, 4, 8), sizes.items(), ("none", "packed", "floats"), (0, 1)):
        if bias and zeros != "packed":
            continue
        case = f"{bits}_{name}_{zeros}{'_bias' * bias}"
        random = family.random(case)
        columns, blocks = 24, -(-rows // block)
        constants = {
            "b": random.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8),
            "scales": random.uniform(0.01, 0.1, (columns, blocks)).astype(np.float32),
        }
        if zeros == "packed":
            constants["zeros"] = random.integers(0, 256, (columns, -(-blocks * bits // 8)), np.uint8)
        elif zeros == "floats":
            constants["zeros"] = random.uniform(0, 2**bits, (columns, blocks)).astype(np.float32)
        if bias:
            constants["bias"] = random.standard_normal(columns, np.float32)
        names = ["a", "b", "scales", "zeros" if zeros != "none" else "", "", "bias" if bias else ""]
        while not names[-1]:
            names.pop()
        one = node("MatMulNBits", names, ["y"], K=rows, N=columns, bits=bits, block_size=block)
        reference = None
        if bits == 2 or zeros == "floats":
            # ONNX Runtime has no kernel of them for each processor.
            constants["floats"] = floats(constants, bits, rows, block)
            reference = [node("MatMul", ["a", "floats"], ["product"], domain="")]
            reference.append(node("Add", ["product", "bias"], ["y"], domain="") if bias else node("Identity", ["product"], ["y"], domain=""))
        family.add(case, [one], {"a": random.standard_normal((2, 3, rows), np.float32)}, constants, reference=reference)
