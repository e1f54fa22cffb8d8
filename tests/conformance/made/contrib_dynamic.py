# SPDX-License-Identifier: Apache-2.0
"""MatMulIntegerToFloat, DynamicQuantizeMatMul, QAttention, DynamicQuantizeLSTM, and MatMulInteger and ConvInteger with their Casts."""

import itertools

import numpy as np
from case import byte_weights, node

BYTES = {"u8": np.uint8, "i8": np.int8}
K, N = 20, 9


def data(random, kind, *shape):
    info = np.iinfo(kind)
    return random.integers(info.min, info.max + 1, shape, kind)


def scales(random, *shape):
    return np.asarray(random.uniform(0.001, 0.01, shape), np.float32)


def weights(random, kind, zero, columns):
    """The bytes, their scale or one for each column, and their zero point of the kind that is asked for."""
    constants = {"b": byte_weights(random, kind, K, N), "b_scale": scales(random, *(N,) * columns)}
    if zero:
        zeros = {"plain": 128 if kind is np.uint8 else 0, "odd": 77}[zero]
        constants["b_zero"] = np.full((N,) * columns, zeros, kind)
    return constants


def make_integers(family):
    forms = itertools.product(BYTES, BYTES, (None, "plain", "odd"), (0, 1), (0, 1))
    for a, b, zero, columns, whole in forms:
        if a == "i8" and (columns or b == "u8"):
            continue
        case = f"to_float_{a}{b}_{zero or 'none'}{'_columns' * columns}{'_whole' * whole}"
        random = family.random(case)
        constants = weights(random, BYTES[b], zero, columns) | {"a_scale": scales(random)}
        inputs = {"a": data(random, BYTES[a], 3, 4, K)}
        if whole:
            inputs["a_zero"] = np.array(11, BYTES[a])
            constants["bias"] = random.standard_normal(N, np.float32)
        given = inputs | constants
        names = [name if name in given else "" for name in ("a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias")]
        while not names[-1]:
            names.pop()
        family.add(case, [node("MatMulIntegerToFloat", names, ["y"])], inputs, constants)
    random = family.random("two_inputs")
    inputs = {"a": data(random, np.uint8, 3, 4, K), "b": byte_weights(random, np.int8, 3, K, N)}
    constants = {"a_scale": scales(random), "b_scale": scales(random)}
    one = node("MatMulIntegerToFloat", ["a", "b", "a_scale", "b_scale"], ["y"])
    family.add("to_float_two_inputs", [one], inputs, constants)


def make_products(family):
    for kind, zero, columns, bias, rank in itertools.product(BYTES, (None, "plain", "odd"), (0, 1), (0, 1), (2, 3)):
        case = f"matmul_{kind}_{zero or 'none'}{'_columns' * columns}{'_bias' * bias}_{rank}"
        random = family.random(case)
        constants = weights(random, BYTES[kind], zero, columns)
        if bias:
            constants["bias"] = random.standard_normal(N, np.float32)
        names = [name if name in constants else "" for name in ("b", "b_scale", "b_zero", "bias")]
        while not names[-1]:
            names.pop()
        inputs = {"a": random.standard_normal((3, 4, K)[3 - rank :], np.float32)}
        family.add(case, [node("DynamicQuantizeMatMul", ["a", *names], ["y"])], inputs, constants)


def make_large(family):
    """Sums that a float32 does not hold to the last digit."""
    for name, rows, inner, columns in (("wide", 20, 384, 1536), ("deep", 20, 3072, 96)):
        random = family.random(name)
        constants = {"b": byte_weights(random, np.int8, inner, columns), "b_scale": scales(random)}
        one = node("DynamicQuantizeMatMul", ["a", "b", "b_scale"], ["y"])
        family.add(f"matmul_{name}", [one], {"a": 1 + random.standard_normal((rows, inner), np.float32)}, constants)


def make_convolutions(family):
    """What a dynamic quantizer makes of Conv."""
    for kind, zero, pads in itertools.product(BYTES, ("plain", "odd"), (0, 1)):
        case = f"conv_{kind}_{zero}{'_pads' * pads}"
        random = family.random(case)
        constants = {"w": byte_weights(random, BYTES[kind], 4, 3, 3, 3), "w_scale": scales(random)}
        constants["w_zero"] = np.array({"plain": 128 if kind == "u8" else 0, "odd": 77}[zero], BYTES[kind])
        nodes = [
            node("DynamicQuantizeLinear", ["x"], ["bytes", "x_scale", "x_zero"], domain=""),
            node("ConvInteger", ["bytes", "w", "x_zero", "w_zero"], ["sums"], domain="", pads=[pads] * 4),
            node("Cast", ["sums"], ["floats"], domain="", to=1),
            node("Mul", ["x_scale", "w_scale"], ["scale"], domain=""),
            node("Mul", ["floats", "scale"], ["y"], domain=""),
        ]
        family.add(case, nodes, {"x": random.standard_normal((2, 3, 8, 7), np.float32)}, constants)


def make_attentions(family):
    batch, rows, heads, width, past = 3, 5, 2, 16, 4
    for kind, mask, with_past, causal in itertools.product(BYTES, (None, "ends", "keys"), (0, 1), (0, 1)):
        case = f"attention_{kind}_{mask or 'all'}{'_past' * with_past}{'_causal' * causal}"
        random = family.random(case)
        keys = rows + past * with_past
        inputs = {"x": data(random, np.uint8, batch, rows, 12)}
        constants = {
            "w": byte_weights(random, BYTES[kind], 12, 3 * width),
            "bias": random.standard_normal(3 * width, np.float32),
            "x_scale": scales(random),
            "w_scale": scales(random),
            "x_zero": np.array(120, np.uint8),
            "w_zero": np.array(130 if kind == "u8" else 0, BYTES[kind]),
        }
        if mask == "ends":
            inputs["mask"] = random.integers(1, keys + 1, batch, np.int32)
        elif mask:
            inputs["mask"] = random.integers(0, 2, (batch, keys), np.int32)
            inputs["mask"][:, 0] = 1
        if with_past:
            inputs["past"] = random.standard_normal((2, batch, heads, past, width // heads), np.float32)
        names = [name if name in inputs | constants else "" for name in ("x", "w", "bias", "x_scale", "w_scale", "mask", "x_zero", "w_zero", "past")]
        while not names[-1]:
            names.pop()
        outputs = ["y", "present"] if with_past else ["y"]
        one = node("QAttention", names, outputs, num_heads=heads, unidirectional=causal)
        family.add(case, [one], inputs, constants, outputs=outputs)


def make_recurrent(family):
    """ONNX Runtime rounds what goes into the products; the weights as floats are what both approximate, and what is expected here."""
    steps, batch, width, hidden = 4, 3, 6, 5
    for kind, directions, columns, whole in itertools.product(BYTES, (1, 2), (0, 1), (0, 1)):
        case = f"lstm_{kind}_{directions}{'_columns' * columns}{'_whole' * whole}"
        random = family.random(case)
        shape = (directions, 4 * hidden) if columns else (directions,)
        info = np.iinfo(BYTES[kind])
        constants = {
            "w": data(random, BYTES[kind], directions, width, 4 * hidden),
            "r": data(random, BYTES[kind], directions, hidden, 4 * hidden),
            "w_scale": scales(random, *shape),
            "r_scale": scales(random, *shape),
            "w_zero": np.full(shape, (info.min + info.max + 1) // 2, BYTES[kind]),
            "r_zero": np.full(shape, (info.min + info.max + 1) // 2, BYTES[kind]),
        }
        constants["b"] = random.standard_normal((directions, 8 * hidden), np.float32)
        inputs = {"x": random.standard_normal((steps, batch, width), np.float32)}
        if whole:
            inputs["h"] = random.standard_normal((directions, batch, hidden), np.float32)
            inputs["c"] = random.standard_normal((directions, batch, hidden), np.float32)
        reference, names = [], {}
        for name in ("w", "r"):
            spread = constants[f"{name}_scale"].reshape(directions, 1, -1)
            zero = constants[f"{name}_zero"].astype(np.float32).reshape(directions, 1, -1)
            names[name] = ((constants[name].astype(np.float32) - zero) * spread).transpose(0, 2, 1)
        attributes = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
        rest = ["b", "", "h" if whole else "", "c" if whole else ""]
        given = ["x", "w", "r", *rest, "", "w_scale", "w_zero", "r_scale", "r_zero"]
        floats = {f"{name}_float": np.ascontiguousarray(array) for name, array in names.items()}
        reference = [node("LSTM", ["x", "w_float", "r_float", *rest], ["y", "h_end", "c_end"], domain="", **attributes)]
        one = node("DynamicQuantizeLSTM", given, ["y", "h_end", "c_end"], **attributes)
        family.add(case, [one], inputs, constants | floats, outputs=["y", "h_end", "c_end"], reference=reference)


def make(family):
    make_integers(family)
    make_products(family)
    make_large(family)
    make_convolutions(family)
    make_attentions(family)
    make_recurrent(family)
