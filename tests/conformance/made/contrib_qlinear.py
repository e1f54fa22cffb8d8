# SPDX-License-Identifier: Apache-2.0
"""Operators on bytes with scales and zero points: QLinear*, QGemm, and QuantizeLinear and DequantizeLinear of this domain."""

import itertools

import numpy as np
from case import byte_weights, node

BYTES = {"u8": np.uint8, "i8": np.int8}


def quantity(random, kind):
    """A scale that makes ties rare, and a zero point."""
    info = np.iinfo(kind)
    return np.array(random.uniform(0.01, 0.05), np.float32), np.array(random.integers(info.min + 100, info.max - 100), kind)


def data(random, kind, *shape):
    info = np.iinfo(kind)
    return random.integers(info.min, info.max + 1, shape, kind)


def named(random, kind, prefix):
    scale, zero = quantity(random, kind)
    return {f"{prefix}_scale": scale, f"{prefix}_zero": zero}


def make_pairs(family):
    for (name, kind), operator in itertools.product(BYTES.items(), ("Add", "Mul")):
        for form, other in (("same", (2, 3, 5, 4)), ("row", (4,)), ("column", (3, 1, 1)), ("one", ())):
            case = f"{operator.lower()}_{name}_{form}"
            random = family.random(case)
            inputs = {"a": data(random, kind, 2, 3, 5, 4), "b": data(random, kind, *other)}
            constants = named(random, kind, "a") | named(random, kind, "b") | named(random, kind, "y")
            names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
            family.add(case, [node(f"QLinear{operator}", names, ["y"])], inputs, constants)
    random = family.random("no_zeros")
    inputs = {"a": data(random, np.uint8, 4, 5), "b": data(random, np.uint8, 4, 5)}
    constants = named(random, np.uint8, "a") | named(random, np.uint8, "b") | named(random, np.uint8, "y")
    constants = {name: array for name, array in constants.items() if "scale" in name} | {"zero": np.array(0, np.uint8)}
    names = ["a", "a_scale", "", "b", "b_scale", "", "y_scale"]
    # ONNX Runtime's shape rule wants the zero points that its documentation calls optional.
    all_names = [name or "zero" for name in names] + ["zero"]
    reference = [node("QLinearAdd", all_names, ["y"])]
    family.add("add_no_zeros", [node("QLinearAdd", names, ["y"])], inputs, constants, reference=reference)


UNARIES = {
    "sigmoid": ("QLinearSigmoid", (3, 40), {}),
    "leaky": ("QLinearLeakyRelu", (3, 40), {"alpha": 0.2}),
    "leaky_usual": ("QLinearLeakyRelu", (3, 40), {}),
    "global": ("QLinearGlobalAveragePool", (2, 5, 6, 7), {}),
    "global_last": ("QLinearGlobalAveragePool", (2, 6, 7, 5), {"channels_last": 1}),
    "pool": ("QLinearAveragePool", (2, 5, 8, 7), {"kernel_shape": [3, 2], "strides": [2, 1]}),
    "pool_pads": ("QLinearAveragePool", (2, 5, 8, 7), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "pool_counted_pads": ("QLinearAveragePool", (2, 5, 8, 7), {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1], "count_include_pad": 1}),
    "pool_ceil": ("QLinearAveragePool", (2, 5, 8, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "pool_same": ("QLinearAveragePool", (2, 5, 8, 7), {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "pool_last": ("QLinearAveragePool", (2, 8, 7, 5), {"kernel_shape": [2, 2], "channels_last": 1}),
    "softmax": ("QLinearSoftmax", (3, 4, 10), {"opset": 13, "axis": -1}),
    "softmax_old": ("QLinearSoftmax", (3, 4, 10), {"opset": 11, "axis": 1}),
    "softmax_middle": ("QLinearSoftmax", (3, 4, 10), {"opset": 13, "axis": 1}),
}


def make_unaries(family):
    for (name, kind), (form, (operator, shape, attributes)) in itertools.product(BYTES.items(), UNARIES.items()):
        case = f"{form}_{name}"
        random = family.random(case)
        constants = named(random, kind, "x") | named(random, kind, "y")
        if "Softmax" in operator:
            constants["y_scale"], constants["y_zero"] = np.array(1 / 256, np.float32), np.array(np.iinfo(kind).min, kind)
        if "Sigmoid" in operator:
            constants["y_scale"] = np.array(0.0071, np.float32)
        names = ["x", "x_scale", "x_zero", "y_scale", "y_zero"]
        family.add(case, [node(operator, names, ["y"], **attributes)], {"x": data(random, kind, *shape)}, constants)
    random = family.random("no_zeros")
    scales = {"x_scale": np.array(0.031, np.float32), "y_scale": np.array(0.0043, np.float32)}
    names = ["x", "x_scale", "", "y_scale", ""]
    family.add("sigmoid_no_zeros", [node("QLinearSigmoid", names, ["y"])], {"x": data(random, np.uint8, 3, 40)}, scales)


def make_wholes(family):
    for name, kind in BYTES.items():
        for count, axis in ((1, 1), (3, 1), (4, -1)):
            case = f"concat_{name}_{count}"
            random = family.random(case)
            inputs, constants, names = {}, named(random, kind, "y"), ["y_scale", "y_zero"]
            for i in range(count):
                shape = [2, 3, 4]
                shape[axis] += i
                inputs[f"x{i}"] = data(random, kind, *shape)
                constants |= named(random, kind, f"x{i}")
                names += [f"x{i}", f"x{i}_scale", f"x{i}_zero"]
            family.add(case, [node("QLinearConcat", names, ["y"], axis=axis)], inputs, constants)
        random = family.random(f"where_{name}")
        inputs = {"c": random.integers(0, 2, (3, 1, 5)).astype(bool), "a": data(random, kind, 3, 4, 5), "b": data(random, kind, 4, 1)}
        constants = named(random, kind, "a") | named(random, kind, "b") | named(random, kind, "y")
        names = ["c", "a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
        family.add(f"where_{name}", [node("QLinearWhere", names, ["y"])], inputs, constants)


def make_gemms(family):
    kinds = (("u8", "i8"), ("u8", "u8"), ("i8", "i8"))
    for (a, b), turned, form, columns in itertools.product(kinds, (0, 1), ("bytes", "floats", "no_bias", "alpha"), (0, 1)):
        if columns and form == "no_bias":
            continue
        case = f"gemm_{a}{b}_{form}{'_turned' * turned}{'_columns' * columns}"
        random = family.random(case)
        inputs = {"a": data(random, BYTES[a], *((16, 3) if form == "alpha" else (3, 16)))}
        constants = named(random, BYTES[a], "a") | named(random, BYTES[b], "b")
        constants["b"] = byte_weights(random, BYTES[b], *((7, 16) if turned else (16, 7)))
        if columns:
            constants["b_scale"] = random.uniform(0.01, 0.05, 7).astype(np.float32)
            constants["b_zero"] = np.full(7, constants["b_zero"])
        names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero"]
        if form != "no_bias":
            constants["c"] = random.integers(-9000, 9000, 7, np.int32)
        names.append("c" if form != "no_bias" else "")
        if form != "floats":
            constants |= {"y_scale": np.array(random.uniform(0.1, 0.3), np.float32), "y_zero": np.array(3, BYTES[a])}
            names += ["y_scale", "y_zero"]
        while not names[-1]:
            names.pop()
        attributes = {"transB": turned, "transA": int(form == "alpha"), "alpha": 0.5 if form == "alpha" else None}
        family.add(case, [node("QGemm", names, ["y"], **attributes)], inputs, constants)


def make_conversions(family):
    random = family.random("conversions")
    for name, kind in BYTES.items():
        constants = named(random, kind, "x")
        names = ["x", "x_scale", "x_zero"]
        x = 3 * random.standard_normal((3, 7), np.float32)
        family.add(f"quantize_{name}", [node("QuantizeLinear", names, ["y"])], {"x": x}, constants)
        family.add(f"dequantize_{name}", [node("DequantizeLinear", names, ["y"])], {"x": data(random, kind, 3, 7)}, constants)
    constants = {"x_scale": random.uniform(0.01, 0.05, 7).astype(np.float32), "x_zero": random.integers(-5, 5, 7, np.int8)}
    columns = node("DequantizeLinear", names, ["y"], axis=1)
    family.add("dequantize_columns", [columns], {"x": data(random, np.int8, 3, 7)}, constants)


def make(family):
    make_pairs(family)
    make_unaries(family)
    make_wholes(family)
    make_gemms(family)
    make_conversions(family)
