# SPDX-License-Identifier: Apache-2.0
"""The cases of the sweep: one operator each, at a shape and a type that networks have. Data is seeded by the case's name."""

import dataclasses
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 20


@dataclasses.dataclass
class Case:
    """`inputs` are arrays of the request, `constants` are initializers; all in the order of the operator's inputs, None for an absent one."""

    name: str
    op: str
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    constants: dict = dataclasses.field(default_factory=dict)  # by place among the operator's inputs
    n_outputs: int = 1

    def write(self, path):
        """Saves the model; returns {name: array} of its inputs."""
        names, ports, initializers, arrays = [], [], [], {}
        given = iter(self.inputs)
        for place in range(len(self.inputs) + len(self.constants)):
            name = f"x{place}"
            array = self.constants[place] if place in self.constants else next(given)
            if array is None:
                names.append("")
                continue
            names.append(name)
            if place in self.constants:
                initializers.append(numpy_helper.from_array(array, name))
                continue
            arrays[name] = np.ascontiguousarray(array)
            ports.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        outputs = [f"y{place}" for place in range(self.n_outputs)]
        node = helper.make_node(self.op, names, outputs, **self.attributes)
        graph = helper.make_graph([node], "case", ports, [helper.make_empty_tensor_value_info(name) for name in outputs], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        onnx.save(onnx.shape_inference.infer_shapes(model, data_prop=True), path)
        return arrays


def _random(name):
    return np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))


def _data(draw, shape, dtype):
    if dtype in ("float32", "float64", "float16"):
        return draw.standard_normal(shape).astype(dtype)
    if dtype == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    return draw.integers(-100 if dtype.startswith("int") else 0, 100, shape).astype(dtype)


def _text(shape):
    return "x".join(map(str, shape))


def reductions():
    shapes = [
        ((100000, 4), [1]), ((20000, 17), [1]), ((4096, 64), [1]), ((128, 1000), [1]), ((8, 128, 768), [2]), ((4, 200000), [1]),
        ((4, 64, 3136), [1]), ((64, 4096), [0]), ((32, 64, 28, 28), [0, 2, 3]), ((16, 12, 49, 64), [1, 3]), ((1000000,), [0]),
    ]  # fmt: skip
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd", "ReduceLogSumExp"):
        for shape, axes in shapes:
            yield from _reduction(op, shape, axes, "float32")
    for op, dtype in (("ReduceSum", "int64"), ("ReduceMax", "int64"), ("ReduceSum", "int32"), ("ReduceMax", "int32"),
                      ("ReduceMax", "uint8"), ("ReduceSum", "float64"), ("ReduceMax", "float64")):  # fmt: skip
        for shape, axes in (shapes[0], shapes[3], shapes[7], shapes[8]):
            yield from _reduction(op, shape, axes, dtype)


def _reduction(op, shape, axes, dtype):
    name = f"{op} {_text(shape)} {dtype} axes {_text(axes)}"
    yield Case(name, op, [_data(_random(name), shape, dtype)], {"keepdims": 0}, {1: np.array(axes, np.int64)})


def extremes():
    for op in ("ArgMax", "ArgMin"):
        for shape, axis, dtype in (((64, 1000), 1, "float32"), ((1, 21, 256, 256), 1, "float32"), ((20000, 7), 1, "float32"),
                                   ((128, 32000), 1, "float32"), ((4096, 64), 0, "float32"), ((64, 1000), 1, "int64"),
                                   ((64, 1000), 1, "int32"), ((1, 21, 256, 256), 1, "uint8")):  # fmt: skip
            name = f"{op} {_text(shape)} {dtype} axis {axis}"
            yield Case(name, op, [_data(_random(name), shape, dtype)], {"axis": axis, "keepdims": 0})


def gathers():
    for shape, tuples, depth, batch, dtype in (((64, 50, 64), (64, 1), 1, 1, "float32"), ((1000, 1000), (20000, 2), 2, 0, "float32"),
                                               ((8, 49, 256), (8, 49, 1), 1, 1, "float32"), ((30000, 16), (4096, 1), 1, 0, "float32"),
                                               ((200, 200, 3), (5000, 3), 3, 0, "int64")):  # fmt: skip
        name = f"GatherND {_text(shape)} {dtype} indices {_text(tuples)}"
        draw = _random(name)
        places = np.stack([draw.integers(0, shape[batch + k], tuples[:-1]) for k in range(depth)], -1).astype(np.int64)
        yield Case(name, "GatherND", [_data(draw, shape, dtype), places], {"batch_dims": batch})
    for shape, picked, axis, dtype in (((64, 1000), (64, 100), 1, "float32"), ((8, 5000, 4), (8, 300, 4), 1, "float32"),
                                       ((10000, 64), (2000, 64), 0, "float32"), ((64, 1000), (64, 100), 1, "int64")):  # fmt: skip
        name = f"GatherElements {_text(shape)} {dtype} indices {_text(picked)}"
        draw = _random(name)
        yield Case(name, "GatherElements", [_data(draw, shape, dtype), draw.integers(0, shape[axis], picked)], {"axis": axis})


def scatters():
    for reduction in ("none", "add", "mul", "max"):
        for shape, updates, axis, dtype in (((2708, 64), (10556, 64), 0, "float32"), ((64, 1000), (64, 100), 1, "float32"),
                                            ((10000,), (50000,), 0, "float32"), ((2708, 16), (10556, 16), 0, "int64")):  # fmt: skip
            name = f"ScatterElements {_text(shape)} {dtype} updates {_text(updates)} {reduction}"
            draw = _random(name)
            indices = draw.integers(0, shape[axis], updates)
            if reduction == "none":  # each place once, as else the answer is anybody's
                updates = tuple(min(a, b) for a, b in zip(updates, shape))
                indices = np.argsort(draw.random([shape[d] if d == axis else updates[d] for d in range(len(shape))]), axis)
                indices = indices[tuple(slice(n) for n in updates)]
            yield Case(name, "ScatterElements", [_data(draw, shape, dtype), indices, _data(draw, updates, dtype)],
                       {"axis": axis, "reduction": reduction})  # fmt: skip
        for shape, tuples, dtype in (((2708, 64), (2000, 1), "float32"), ((8, 128, 32), (900, 2), "float32"), ((512, 512), (20000, 2), "float32")):
            name = f"ScatterND {_text(shape)} {dtype} indices {_text(tuples)} {reduction}"
            draw, depth = _random(name), tuples[-1]
            flat = draw.permutation(int(np.prod(shape[:depth])))[: tuples[0]]
            indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
            yield Case(name, "ScatterND", [_data(draw, shape, dtype), indices, _data(draw, tuples[:-1] + shape[depth:], dtype)],
                       {"reduction": reduction})  # fmt: skip


def places():
    for shape, depth, axis, dtype in (((128, 50), 100, -1, "float32"), ((8, 16), 30000, -1, "float32"), ((4, 64, 64), 21, 1, "float32"), ((256,), 1000, -1, "int64")):
        name = f"OneHot {_text(shape)} depth {depth} axis {axis} {dtype}"
        yield Case(name, "OneHot", [_random(name).integers(0, depth, shape)], {"axis": axis},
                   {1: np.array([depth], np.int64), 2: np.array([0, 1], dtype)})  # fmt: skip
    for shape, axis, dtype in (((64, 1000), 1, "float32"), ((1, 512, 64), 1, "float32"), ((8, 512), 1, "int64"), ((100000,), 0, "float32"), ((1, 512, 64), 1, "int32")):
        name = f"CumSum {_text(shape)} {dtype} axis {axis}"
        yield Case(name, "CumSum", [_data(_random(name), shape, dtype)], {}, {1: np.array(axis, np.int64)})
    for shape, dtype, upper in (((512, 512), "float32", 1), ((8, 12, 128, 128), "float32", 0), ((1, 1, 256, 256), "bool", 0), ((64, 33, 33), "int64", 1)):
        name = f"Trilu {_text(shape)} {dtype} upper {upper}"
        yield Case(name, "Trilu", [_data(_random(name), shape, dtype)], {"upper": upper})


def images():
    for shape, image, block, attributes in (
        ((1, 192 * 9, 28 * 28), (28, 28), (3, 3), {"pads": [1, 1, 1, 1]}), ((1, 64 * 16, 14 * 14), (28, 28), (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((8, 3 * 256, 196), (224, 224), (16, 16), {"strides": [16, 16]}),
    ):  # fmt: skip
        name = f"Col2Im {_text(shape)} image {_text(image)} block {_text(block)}"
        yield Case(name, "Col2Im", [_data(_random(name), shape, "float32")], attributes,
                   {1: np.array(image, np.int64), 2: np.array(block, np.int64)})  # fmt: skip
    for shape, size, mode, padding in (((1, 64, 64, 64), (64, 64), "linear", "zeros"), ((4, 3, 224, 224), (224, 224), "linear", "border"),
                                       ((1, 64, 64, 64), (64, 64), "nearest", "zeros"), ((1, 16, 64, 64), (64, 64), "cubic", "reflection"),
                                       ((8, 32, 32, 32), (300, 4), "linear", "zeros")):  # fmt: skip
        name = f"GridSample {_text(shape)} grid {_text(size)} {mode} {padding}"
        draw = _random(name)
        grid = draw.uniform(-1.1, 1.1, (shape[0], *size, 2)).astype(np.float32)
        yield Case(name, "GridSample", [_data(draw, shape, "float32"), grid], {"mode": mode, "padding_mode": padding})
    for shape, regions, pooled, mode in (((1, 256, 50, 68), 100, 7, "avg"), ((2, 64, 32, 32), 32, 14, "avg"), ((1, 64, 32, 32), 32, 7, "max")):
        name = f"RoiAlign {_text(shape)} regions {regions} to {pooled} {mode}"
        draw = _random(name)
        corner = draw.uniform(0, 0.6, (regions, 2)) * shape[:1:-1] * 16
        rois = np.concatenate([corner, corner + draw.uniform(0.05, 0.35, (regions, 2)) * shape[:1:-1] * 16], 1).astype(np.float32)
        yield Case(name, "RoiAlign", [_data(draw, shape, "float32"), rois, draw.integers(0, shape[0], regions)],
                   {"output_height": pooled, "output_width": pooled, "sampling_ratio": 2, "spatial_scale": 1 / 16, "mode": mode})  # fmt: skip
    for shape, filters, masked in (((1, 64, 28, 28), 64, False), ((1, 64, 28, 28), 64, True), ((1, 16, 56, 56), 32, True)):
        name = f"DeformConv {_text(shape)} filters {filters} masked {masked}"
        draw = _random(name)
        offsets = _data(draw, (shape[0], 18, *shape[2:]), "float32")
        weights = _data(draw, (filters, shape[1], 3, 3), "float32")
        given = [_data(draw, shape, "float32"), offsets] + ([draw.random((shape[0], 9, *shape[2:]), np.float32)] if masked else [])
        yield Case(name, "DeformConv", given, {"pads": [1, 1, 1, 1]}, {1: weights, 3: np.zeros(filters, np.float32)})


def detections():
    for boxes, classes, most, overlap, least in ((400, 1, 100, 0.5, 0.0), (1917, 90, 100, 0.6, 0.3), (8732, 80, 200, 0.5, 0.3), (8732, 90, 20, 0.6, 0.01)):
        name = f"NonMaxSuppression boxes {boxes} classes {classes} most {most} overlap {overlap} least {least}"
        draw = _random(name)
        corner = draw.uniform(0, 0.9, (1, boxes, 2))
        ends = corner + draw.uniform(0.02, 0.2, (1, boxes, 2))
        scores = draw.random((1, classes, boxes), np.float32) ** 16
        yield Case(name, "NonMaxSuppression", [np.concatenate([corner, ends], 2).astype(np.float32), scores], {},
                   {2: np.array([most], np.int64), 3: np.array([overlap], np.float32), 4: np.array([least], np.float32)})  # fmt: skip


def _operands(op, name, left, right, dtype):
    """What the operator is defined on: divisors are no zeros, powers are of what is positive, and shifts stay within the type."""
    draw = _random(name)
    a, b = _data(draw, left, dtype), _data(draw, right, dtype)
    if op in ("Div", "Mod"):
        b = np.where(np.abs(b) < 1, np.array(1, b.dtype), b) if b.dtype.kind == "f" else np.where(b == 0, np.array(7, b.dtype), b)
    if op == "Pow":
        a, b = (np.abs(a) + np.array(0.1, a.dtype), b) if a.dtype.kind == "f" else (a % 7, b % 4)
    return [a, b]


def pairs():
    """Two operands of one shape, tall and wide, and broadcast each way."""
    same, ways = (64, 3136), (((64, 3136), (1,)), ((3136, 64), (64,)), ((3136, 64), (3136, 1)), ((1, 3136), (64, 1)), ((100000, 4), (4,)),
                              ((100000, 4), (100000, 1)), ((1, 64, 56, 56), (1, 64, 1, 1)))  # fmt: skip
    for op in ("Add", "Mul", "Div", "Max"):
        for dtype in ("float32", "int64", "float64", "int32", "float16"):
            yield _pair(op, same, same, dtype)
    for op, dtypes in (("Sub", ("float32", "int64")), ("Pow", ("float32", "float64", "int64")), ("Mod", ("int64", "int32")), ("Min", ("float64", "uint8")),
                       ("Equal", ("float32", "int64", "int32", "float64", "bool")), ("Less", ("float32", "int64", "float64")), ("And", ("bool",)),
                       ("BitwiseAnd", ("int64", "uint8")), ("Add", ("uint8", "int8")), ("PRelu", ("float32",))):  # fmt: skip
        for dtype in dtypes:
            yield _pair(op, same, same, dtype)
    for op, dtype in (("Add", "float32"), ("Mul", "int64"), ("Less", "float32"), ("Max", "float32")):
        for left, right in ways:
            yield _pair(op, left, right, dtype)
    yield _pair("Mod", same, same, "float32", fmod=1)
    for dtype in ("float32", "int64", "float64", "uint8"):
        for chosen, left, right in ((same, same, same), (same, same, (1,)), ((64, 1), same, same), ((100000, 1), (100000, 4), (100000, 4))):
            name = f"Where {_text(chosen)} {_text(left)} {_text(right)} {dtype}"
            draw = _random(name)
            yield Case(name, "Where", [_data(draw, chosen, "bool"), _data(draw, left, dtype), _data(draw, right, dtype)])


def _pair(op, left, right, dtype, **attributes):
    name = f"{op} {_text(left)} {_text(right)} {dtype}"
    return Case(name, op, _operands(op, name, left, right, dtype), attributes)


def functions():
    for op, dtypes in (("Exp", ("float32", "float64", "float16")), ("Log", ("float32", "float64")), ("Sqrt", ("float32", "float64")),
                       ("Tanh", ("float32", "float64")), ("Sigmoid", ("float32", "float64")), ("Erf", ("float32",)), ("Neg", ("float32", "int64", "int32", "float64")),
                       ("Abs", ("float32", "int64", "float64", "int32")), ("Relu", ("float32", "float64", "int32")), ("Sign", ("float32", "int64")),
                       ("Floor", ("float32", "float64")), ("Round", ("float32", "float64")), ("Reciprocal", ("float32", "float64")), ("Not", ("bool",)),
                       ("Sin", ("float32", "float64")), ("Cos", ("float32",)), ("Softplus", ("float32",)), ("Gelu", ("float32",)), ("HardSwish", ("float32",)),
                       ("Atan", ("float32",)), ("Tan", ("float32",)), ("IsNaN", ("float32", "float64")), ("IsInf", ("float32",)), ("Elu", ("float32",)),
                       ("LeakyRelu", ("float32", "float64")), ("Softsign", ("float32",)), ("Mish", ("float32",)), ("Identity", ("float32",))):  # fmt: skip
        for dtype in dtypes:
            name = f"{op} 64x3136 {dtype}"
            data = _data(_random(name), (64, 3136), dtype)
            yield Case(name, op, [np.abs(data) if op in ("Log", "Sqrt") else data])
    for dtype, low, high in (("float32", 0, 6), ("float64", -1, 1), ("int64", 0, 50), ("int32", 0, 50)):
        name = f"Clip 64x3136 {dtype}"
        yield Case(name, "Clip", [_data(_random(name), (64, 3136), dtype)], {}, {1: np.array(low, dtype), 2: np.array(high, dtype)})
    for source, target in (("float32", "int64"), ("int64", "float32"), ("float32", "float16"), ("float16", "float32"), ("bool", "float32"), ("float32", "bool"),
                           ("float64", "float32"), ("float32", "float64"), ("int64", "int32"), ("int32", "int64"), ("uint8", "float32"), ("float32", "uint8"),
                           ("int64", "bool"), ("bool", "int64"), ("int32", "float32"), ("float32", "int32"), ("int64", "float64"), ("float64", "int64")):  # fmt: skip
        name = f"Cast 64x3136 {source} to {target}"
        data = _data(_random(name), (64, 3136), source)
        data = np.abs(data) if target == "uint8" else data
        yield Case(name, "Cast", [data], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(target))})
    for op in ("Softmax", "LogSoftmax"):
        for shape, axis, dtype in (((64, 1000), 1, "float32"), ((20000, 7), 1, "float32"), ((1, 21, 128, 128), 1, "float32"), ((8, 12, 128, 128), 3, "float32"),
                                   ((64, 1000), 1, "float64"), ((64, 1000), 0, "float32")):  # fmt: skip
            name = f"{op} {_text(shape)} {dtype} axis {axis}"
            yield Case(name, op, [_data(_random(name), shape, dtype)], {"axis": axis})
    for shape, dtype in (((512, 768), "float32"), ((20000, 16), "float32"), ((512, 768), "float64")):
        name = f"LayerNormalization {_text(shape)} {dtype}"
        yield Case(name, "LayerNormalization", [_data(_random(name), shape, dtype)], {}, {1: np.ones(shape[-1], dtype), 2: np.zeros(shape[-1], dtype)})


def moves():
    for shapes, axis, dtype in ((((100000, 1),) * 4, 1, "float32"), (((20000, 1),) * 2, 1, "int64"), (((4096, 3), (4096, 1)), 1, "float32"), (((1, 64, 56, 56),) * 2, 1, "float32"),
                                (((100000, 1),) * 26, 1, "float32"), (((4096, 17), (4096, 19)), 1, "uint8"), (((512, 8, 2),) * 3, 2, "float64")):  # fmt: skip
        name = f"Concat {len(shapes)} of {_text(shapes[0])} {dtype} axis {axis}"
        draw = _random(name)
        yield Case(name, "Concat", [_data(draw, shape, dtype) for shape in shapes], {"axis": axis})
    for shape, order, dtype in (((1, 64, 56, 56), (0, 2, 3, 1), "float32"), ((1, 56, 56, 64), (0, 3, 1, 2), "float32"), ((8, 128, 12, 64), (0, 2, 1, 3), "float32"),
                                ((8, 12, 128, 64), (0, 1, 3, 2), "float32"), ((1000, 1000), (1, 0), "float32"), ((1000, 1000), (1, 0), "uint8"),
                                ((1000, 1000), (1, 0), "int64"), ((100000, 4), (1, 0), "float32"), ((4, 100000), (1, 0), "float32"), ((1, 3, 224, 224), (0, 2, 3, 1), "uint8"),
                                ((16, 7, 7, 8, 96), (0, 3, 1, 4, 2), "float32")):  # fmt: skip
        name = f"Transpose {_text(shape)} {dtype} by {_text(order)}"
        yield Case(name, "Transpose", [_data(_random(name), shape, dtype)], {"perm": list(order)})
    for op, shape, attributes in (("SpaceToDepth", (1, 64, 56, 56), {"blocksize": 2}), ("SpaceToDepth", (1, 3, 640, 640), {"blocksize": 2}),
                                  ("DepthToSpace", (1, 256, 28, 28), {"blocksize": 2}), ("DepthToSpace", (1, 48, 224, 224), {"blocksize": 4, "mode": "CRD"})):  # fmt: skip
        name = f"{op} {_text(shape)} {attributes['blocksize']} {attributes.get('mode', 'DCR')}"
        yield Case(name, op, [_data(_random(name), shape, "float32")], attributes)
    for shape, starts, ends, steps, dtype in (((64, 3136), (0, 1), (64, 3136), (1, 2), "float32"), ((1, 64, 56, 56), (0, 0, 1, 1), (1, 64, 55, 55), (1, 1, 1, 1), "float32"),
                                              ((100000, 4), (0, 1), (100000, 2), (1, 1), "float32"), ((100000, 8), (0, 2), (100000, 5), (1, 1), "int64"),
                                              ((64, 3136), (63, 3135), (-65, -3137), (-1, -1), "float32"), ((1, 3, 224, 224), (0, 0, 0, 0), (1, 3, 224, 224), (1, 1, 2, 2), "float32")):  # fmt: skip
        name = f"Slice {_text(shape)} {dtype} from {_text(starts)} to {_text(ends)} by {_text(steps)}"
        yield Case(name, "Slice", [_data(_random(name), shape, dtype)], {},
                   {1: np.array(starts, np.int64), 2: np.array(ends, np.int64), 3: np.arange(len(shape)), 4: np.array(steps, np.int64)})  # fmt: skip
    for mode in ("constant", "reflect", "edge", "wrap"):
        for shape, pads in (((1, 64, 56, 56), (0, 0, 1, 1, 0, 0, 1, 1)), ((4096, 17), (0, 3, 0, 4))):
            name = f"Pad {_text(shape)} {mode} {_text(pads)}"
            yield Case(name, "Pad", [_data(_random(name), shape, "float32")], {"mode": mode}, {1: np.array(pads, np.int64)})
    for shape, to, dtype in (((64, 1), (64, 3136), "float32"), ((1, 64), (3136, 64), "float32"), ((100000, 1), (100000, 4), "float32"), ((64, 1), (64, 3136), "int64")):
        name = f"Expand {_text(shape)} to {_text(to)} {dtype}"
        yield Case(name, "Expand", [_data(_random(name), shape, dtype)], {}, {1: np.array(to, np.int64)})
    for shape, repeats, dtype in (((64, 49), (1, 64), "float32"), ((1000, 1), (1, 200), "float32"), ((1, 1000), (200, 1), "int64"), ((3000, 2), (1, 31), "float32")):
        name = f"Tile {_text(shape)} by {_text(repeats)} {dtype}"
        yield Case(name, "Tile", [_data(_random(name), shape, dtype)], {}, {1: np.array(repeats, np.int64)})
    for shape, picked, axis, dtype in (((30000, 64), (2048,), 0, "float32"), ((64, 1000), (300,), 1, "float32"), ((100000,), (50000,), 0, "float32"),
                                       ((100000, 4), (1,), 1, "float32"), ((30000, 1), (20000,), 0, "int64"), ((64, 1000), (300,), 1, "uint8")):  # fmt: skip
        name = f"Gather {_text(shape)} {dtype} indices {_text(picked)} axis {axis}"
        draw = _random(name)
        yield Case(name, "Gather", [_data(draw, shape, dtype), draw.integers(0, shape[axis], picked)], {"axis": axis})
    for shape, kept, axis, dtype in (((64, 1000), 5, 1, "float32"), ((1, 8732), 200, 1, "float32"), ((1, 100000), 1000, 1, "float32"), ((20000, 7), 2, 1, "float32"),
                                     ((64, 1000), 5, 1, "int64"), ((256, 56), 3, 0, "float32"), ((1, 25200), 300, 1, "float64")):  # fmt: skip
        name = f"TopK {_text(shape)} {dtype} of {kept} axis {axis}"
        yield Case(name, "TopK", [_data(_random(name), shape, dtype)], {"axis": axis}, {1: np.array([kept], np.int64)}, 2)


def windows():
    for op in ("MaxPool", "AveragePool"):
        for shape, kernel, stride, pad in (((1, 64, 112, 112), 3, 2, 1), ((1, 192, 28, 28), 3, 1, 1), ((8, 64, 56, 56), 2, 2, 0), ((1, 512, 13, 13), 13, 1, 6)):
            name = f"{op} {_text(shape)} kernel {kernel} stride {stride}"
            yield Case(name, op, [_data(_random(name), shape, "float32")],
                       {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4})  # fmt: skip
        name = f"{op} 1x32x16x56x56 kernel 2"
        yield Case(name, op, [_data(_random(name), (1, 32, 16, 56, 56), "float32")], {"kernel_shape": [2] * 3, "strides": [2] * 3})
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        name = f"{op} 8x256x28x28"
        yield Case(name, op, [_data(_random(name), (8, 256, 28, 28), "float32")])
    for shape, scales, mode, turned in (((1, 64, 28, 28), (1, 1, 2, 2), "nearest", "asymmetric"), ((1, 64, 28, 28), (1, 1, 2, 2), "linear", "half_pixel"),
                                        ((1, 3, 224, 224), (1, 1, 0.5, 0.5), "linear", "half_pixel"), ((1, 16, 28, 28), (1, 1, 2, 2), "cubic", "half_pixel"),
                                        ((1, 21, 65, 65), (1, 1, 4, 4), "linear", "align_corners"), ((1, 8, 16, 28, 28), (1, 1, 2, 2, 2), "nearest", "asymmetric")):  # fmt: skip
        name = f"Resize {_text(shape)} by {_text(scales)} {mode} {turned}"
        yield Case(name, "Resize", [_data(_random(name), shape, "float32"), None], {"mode": mode, "coordinate_transformation_mode": turned},
                   {2: np.array(scales, np.float32)})  # fmt: skip
    for shape, filters, kernel, stride in (((1, 64, 28, 28), 32, 4, 2), ((1, 256, 14, 14), 128, 2, 2), ((1, 32, 56, 56), 16, 3, 2)):
        name = f"ConvTranspose {_text(shape)} filters {filters} kernel {kernel} stride {stride}"
        draw = _random(name)
        yield Case(name, "ConvTranspose", [_data(draw, shape, "float32")], {"strides": [stride] * 2},
                   {1: _data(draw, (shape[1], filters, kernel, kernel), "float32")})  # fmt: skip


GROUPS = [reductions, extremes, gathers, scatters, places, images, detections, pairs, functions, moves, windows]


def all_cases():
    return [case for group in GROUPS for case in group()]
