# SPDX-License-Identifier: Apache-2.0
"""FusedConv, FusedGemm, FusedMatMul and TransposeMatMul: activations, summands, transpositions, factors."""

import itertools

import numpy as np
from case import node

ACTIVATIONS = {
    "relu": ("Relu", None),
    "tanh": ("Tanh", None),
    "sigmoid": ("Sigmoid", None),
    "leaky": ("LeakyRelu", [0.2]),
    "clip": ("Clip", [-0.5, 0.75]),
    "hard": ("HardSigmoid", [0.3, 0.4]),
}


def floats(random, *shape):
    return random.standard_normal(shape, np.float32)


def make_convolutions(family):
    for name, (activation, parameters) in ACTIVATIONS.items():
        for bias, summand in itertools.product((False, True), (False, True)):
            if summand and activation != "Relu":
                continue
            case = f"conv_{name}{'_bias' * bias}{'_sum' * summand}"
            random = family.random(case)
            inputs, constants = {"x": floats(random, 2, 6, 9, 8)}, {"w": floats(random, 5, 3, 3, 3) / 4}
            names = ["x", "w", "b" if bias else "", "z" if summand else ""]
            if bias:
                constants["b"] = floats(random, 5)
            if summand:
                inputs["z"] = floats(random, 2, 5, 5, 4)
            attributes = {"activation": activation, "activation_params": parameters, "strides": [2, 2], "pads": [1, 1, 1, 1]}
            if bias:
                attributes |= {"dilations": [1, 1], "kernel_shape": [3, 3]}
            constants["w"] = constants["w"] if bias else floats(random, 5, 6, 3, 3) / 6
            inputs["x"] = inputs["x"][:, :3] if bias else inputs["x"]
            family.add(case, [node("FusedConv", names, ["y"], **attributes)], inputs, constants)
    random = family.random("conv_forms")
    x, w = floats(random, 1, 4, 10, 7), floats(random, 8, 1, 3, 2)
    for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        fused = node("FusedConv", ["x", "w"], ["y"], auto_pad=pad, group=4, activation="Relu")
        family.add(f"conv_{pad.lower()}", [fused], {"x": x}, {"w": w})
    family.add("conv_plain", [node("FusedConv", ["x", "w"], ["y"], group=4)], {"x": x}, {"w": w})
    x, w = floats(random, 3, 4, 10), floats(random, 6, 4, 3)
    family.add("conv_line", [node("FusedConv", ["x", "w"], ["y"], activation="Relu")], {"x": x}, {"w": w})
    family.add("conv_weights_input", [node("FusedConv", ["x", "w"], ["y"], activation="Relu")], {"x": x, "w": w})


def make_gemms(family):
    gemms = {
        "relu": {"activation": "Relu"},
        "leaky": {"activation": "LeakyRelu", "activation_alpha": 0.2},
        "leaky_usual": {"activation": "LeakyRelu", "activation_alpha": 0.01},
        "hard": {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
        "elu": {"activation": "Elu", "activation_alpha": 0.7},
        "tanh_turned": {"activation": "Tanh", "transA": 1, "alpha": 0.5},
        "sigmoid_weights_turned": {"activation": "Sigmoid", "transB": 1, "beta": 0.25},
        "softplus": {"activation": "Softplus"},
        "softsign": {"activation": "Softsign"},
    }
    for name, attributes in gemms.items():
        random = family.random(name)
        a, b, c = floats(random, 3, 5), floats(random, 5, 7), floats(random, 7)
        a = np.ascontiguousarray(a.T) if attributes.get("transA") else a
        b = np.ascontiguousarray(b.T) if attributes.get("transB") else b
        family.add(f"gemm_{name}", [node("FusedGemm", ["a", "b", "c"], ["y"], **attributes)], {"a": a}, {"b": b, "c": c})
    family.add("gemm_no_bias", [node("FusedGemm", ["a", "b"], ["y"], activation="Relu")], {"a": floats(random, 3, 5)}, {"b": b[:5]})


def shape_for(rows, columns, batch, transpose, transpose_batch):
    """What becomes [*batch, rows, columns] when the operator has turned it."""
    shape = [*batch, columns, rows] if transpose else [*batch, rows, columns]
    return [shape[-2], *shape[:-2], shape[-1]] if transpose_batch else shape


def make_products(family):
    for batch in ((), (2,), (2, 3)):
        flags = itertools.product((0, 1), (0, 1), (0, 1) if batch else (0,), (0, 1) if batch else (0,))
        for turn_a, turn_b, batch_a, batch_b in flags:
            case = f"matmul_{len(batch)}_{turn_a}{turn_b}{batch_a}{batch_b}"
            random = family.random(case)
            a = floats(random, *shape_for(4, 5, batch, turn_a, batch_a))
            b = floats(random, *shape_for(5, 6, batch, turn_b, batch_b))
            attributes = {"transA": turn_a, "transB": turn_b, "transBatchA": batch_a, "transBatchB": batch_b, "alpha": 0.5 + len(batch) / 2}
            family.add(case, [node("FusedMatMul", ["a", "b"], ["y"], **attributes)], {"a": a, "b": b})
    random = family.random("matmul")
    a, b = floats(random, 2, 3, 8), floats(random, 10, 8)
    family.add("matmul_weights", [node("FusedMatMul", ["a", "b"], ["y"], transB=1, alpha=0.125)], {"a": a}, {"b": b})
    family.add("matmul_broadcast", [node("FusedMatMul", ["a", "b"], ["y"], transB=1)], {"a": a, "b": b})
    family.add("matmul_vector", [node("FusedMatMul", ["a", "b"], ["y"], transA=1)], {"a": floats(random, 8), "b": floats(random, 8, 4)})
    family.add("matmul_doubles", [node("FusedMatMul", ["a", "b"], ["y"])], {"a": random.standard_normal((3, 4)), "b": random.standard_normal((4, 2))})
    family.add("transposed", [node("TransposeMatMul", ["a", "b"], ["y"], transB=1, alpha=0.5)], {"a": a, "b": b})


def make(family):
    make_convolutions(family)
    make_gemms(family)
    make_products(family)
