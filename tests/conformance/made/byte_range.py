# SPDX-License-Identifier: Apache-2.0
"""Products of bytes at the ends of their range, in the forms that quantizers write. What is expected is the exact sum, computed
here, since ONNX Runtime saturates on some processors."""

import itertools

import numpy as np
from case import OPSET, build, node

BYTES = {"u8": np.uint8, "i8": np.int8}
KINDS = (("u8", "i8"), ("i8", "i8"), ("u8", "u8"))
DEPTHS = (4, 31, 2000)


def ends(random, kind, *shape):
    """The least and the greatest byte, in equal parts, and rows of the greatest alone."""
    info = np.iinfo(kind)
    array = random.choice(np.array([info.min, info.max], kind), shape)
    array[0] = info.max
    return array


def middle(kind):
    return np.array(128 if kind is np.uint8 else 0, kind)


def wide(array, zero):
    return array.astype(np.int64) - int(zero)


def windows(x):
    """The rows of a 3x3 convolution of [N, C, H, W] with padding: [N, H, W, C * 9]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return seen.transpose(0, 2, 3, 1, 4, 5).reshape(*x.shape[:1], *x.shape[2:], -1)


def convolve(x, w):
    return (windows(x) @ w.reshape(w.shape[0], -1).T).transpose(0, 3, 1, 2)


def requantize(sums, kind, scale, zero):
    info = np.iinfo(kind)
    return np.clip(np.rint(sums * scale) + int(zero), info.min, info.max).astype(kind)


def write(family, case, nodes, inputs, constants, y):
    family.write(case, build(nodes, inputs, constants, {"y": y}, OPSET), inputs, {"y": y})


def operands(random, a, b, conv, depth):
    """x, w and their zero points: those of x anywhere, those of w in the middle."""
    kinds = {"x": BYTES[a], "w": BYTES[b]}
    shapes = {"x": (2, depth, 5, 6), "w": (9, depth, 3, 3)} if conv else {"x": (7, depth), "w": (depth, 19)}
    arrays = {name: ends(random, kind, *shapes[name]) for name, kind in kinds.items()}
    return arrays | {"x_zero": np.array(37, kinds["x"]), "w_zero": middle(kinds["w"])}


def sums_of(given, conv):
    return (convolve if conv else np.matmul)(wide(given["x"], given["x_zero"]), wide(given["w"], given["w_zero"]))


def split(given):
    """What comes with a request, and what the file has."""
    return {"x": given["x"]}, {name: array for name, array in given.items() if name != "x"}


def make_linear(family):
    """A scale that brings the largest sum to the end of a byte, and that no tie comes of."""
    for (a, b), conv, depth in itertools.product(KINDS, (0, 1), DEPTHS):
        depth = depth if not conv else min(depth, 200)
        case = f"{'conv' if conv else 'matmul'}_{a}{b}_{depth}"
        random = family.random(case)
        given = operands(random, a, b, conv, depth)
        sums = sums_of(given, conv)
        given |= {"x_scale": np.array(0.5, np.float32), "w_scale": np.array(0.25, np.float32)}
        given |= {"y_scale": np.array(0.125 * np.abs(sums).max() / 90.3, np.float32), "y_zero": np.array(20, BYTES[a])}
        y = requantize(sums, BYTES[a], 0.125 / float(given["y_scale"]), 20)
        names = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"]
        one = node("QLinearConv" if conv else "QLinearMatMul", names, ["y"], domain="", pads=[1] * 4 if conv else None)
        write(family, case, [one], *split(given), y)


def make_integers(family):
    """Sums as int32, and cast to float32 at once: a convolution becomes one of floats, whose sums are exact up to 2^24."""
    for (a, b), conv, depth, real in itertools.product(KINDS, (0, 1), DEPTHS, (0, 1)):
        depth = depth if not conv else min(depth, 50 if real else 200)
        case = f"{'conv' if conv else 'matmul'}_integer_{a}{b}_{depth}{'_real' * real}"
        if case.startswith("conv_integer_i8"):  # uint8 only, in ONNX Runtime and with quantizers
            continue
        random = family.random(case)
        given = operands(random, a, b, conv, depth)
        sums = sums_of(given, conv).astype(np.int32)
        names = ["x", "w", "x_zero", "w_zero"]
        operator = "ConvInteger" if conv else "MatMulInteger"
        nodes = [node(operator, names, ["sums" if real else "y"], domain="", pads=[1] * 4 if conv else None)]
        if real:
            nodes.append(node("Cast", ["sums"], ["y"], domain="", to=1))
        write(family, case, nodes, *split(given), sums.astype(np.float32) if real else sums)


def make_dynamic(family):
    """Inputs whose least and greatest elements become 0 and 255."""
    for kind, depth in itertools.product(BYTES, DEPTHS):
        case = f"dynamic_{kind}_{depth}"
        random = family.random(case)
        given = {"w": ends(random, BYTES[kind], depth, 19), "w_zero": middle(BYTES[kind]), "w_scale": np.array(0.25, np.float32)}
        bytes_of_x = ends(random, np.uint8, 7, depth)
        x = (bytes_of_x.astype(np.float32) - 51) / 8
        y = (wide(bytes_of_x, 51) @ wide(given["w"], given["w_zero"]) * 0.125 * 0.25).astype(np.float32)
        nodes = [
            node("DynamicQuantizeLinear", ["x"], ["bytes", "x_scale", "x_zero"], domain=""),
            node("MatMulInteger", ["bytes", "w", "x_zero", "w_zero"], ["sums"], domain=""),
            node("Cast", ["sums"], ["floats"], domain="", to=1),
            node("Mul", ["x_scale", "w_scale"], ["scale"], domain=""),
            node("Mul", ["floats", "scale"], ["y"], domain=""),
        ]
        write(family, case, nodes, {"x": x}, given, y)


def make(family):
    make_linear(family)
    make_integers(family)
    make_dynamic(family)
