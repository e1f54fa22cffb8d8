# SPDX-License-Identifier: Apache-2.0
"""Networks with open dimensions, and the sizes that requests bring. All weights and sizes come from seeds."""

import dataclasses
import typing

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Writer:
    """The nodes and weights of a model, in order."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def constant(self, values):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, *dims, depth):
        """Numbers at random, so that a sum of `depth` of them times others stays as large as those."""
        return self.constant((self.random.standard_normal(dims) / np.sqrt(depth)).astype(np.float32))

    def node(self, operator, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def product(self, x, depth, width):
        return self.node("Add", self.node("MatMul", x, self.weight(depth, width, depth=depth)), self.weight(width, depth=width))

    def norm(self, x, width):
        return self.node("LayerNormalization", x, self.constant(np.ones(width, np.float32)), self.weight(width, depth=width), axis=-1)

    def conv(self, x, channels, filters, kernel=1, stride=1, group=1, relu=True):
        x = self.node("Conv", x, self.weight(filters, channels // group, kernel, kernel, depth=channels // group * kernel * kernel),
                      self.weight(filters, depth=filters), strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)  # fmt: skip
        return self.node("Clip", x, self.constant(np.float32(0)), self.constant(np.float32(6))) if relu else x

    def model(self, inputs, output, dims):
        ports = [helper.make_tensor_value_info(*port) for port in inputs]
        graph = helper.make_graph(self.nodes, "sizes", ports, [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)], self.weights)
        graph.node.append(helper.make_node("Identity", [output], ["y"]))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def perceptron():
    w = Writer(1)
    p = w.node("Softmax", w.node("MatMul", "x", w.weight(8, 3, depth=8)), axis=2)
    return w.model([("x", TensorProto.FLOAT, ["N", "L", 8])], w.node("ReduceMean", p, axes=[1], keepdims=0), ["N", 3])


def heads(w, x, n_heads, width, shape, perm):
    return w.node("Transpose", w.node("Reshape", w.product(x, n_heads * width, n_heads * width), shape), perm=perm)


def encoder(layers=6, width=384, n_heads=12, words=2000):
    """As MiniLM is: 6 layers of 384."""
    w = Writer(2)
    each, shape = width // n_heads, w.constant(np.int64([0, 0, n_heads, width // n_heads]))
    mask = w.node("Unsqueeze", w.node("Cast", "mask", to=TensorProto.FLOAT), w.constant(np.int64([1, 2])))
    mask = w.node("Mul", w.node("Sub", w.constant(np.float32(1)), mask), w.constant(np.float32(-1e9)))
    x = w.norm(w.node("Gather", w.weight(words, width, depth=1), "ids"), width)
    for _ in range(layers):
        query, value = (heads(w, x, n_heads, each, shape, [0, 2, 1, 3]) for _ in range(2))
        scores = w.node("MatMul", query, heads(w, x, n_heads, each, shape, [0, 2, 3, 1]))
        scores = w.node("Softmax", w.node("Add", w.node("Div", scores, w.constant(np.float32(np.sqrt(each)))), mask), axis=-1)
        seen = w.node("Transpose", w.node("MatMul", scores, value), perm=[0, 2, 1, 3])
        seen = w.product(w.node("Reshape", seen, w.constant(np.int64([0, 0, width]))), width, width)
        x = w.norm(w.node("Add", x, seen), width)
        inner = w.product(x, width, 4 * width)
        erf = w.node("Add", w.node("Erf", w.node("Div", inner, w.constant(np.float32(np.sqrt(2))))), w.constant(np.float32(1)))
        inner = w.node("Mul", w.node("Mul", inner, erf), w.constant(np.float32(0.5)))
        x = w.norm(w.node("Add", x, w.product(inner, 4 * width, width)), width)
    return w.model([("ids", TensorProto.INT64, ["N", "L"]), ("mask", TensorProto.INT64, ["N", "L"])], x, ["N", "L", width])


def lstm(width=64, hidden=256):
    w = Writer(3)
    x = "x"
    for depth in (width, hidden):
        gates = [w.weight(1, 4 * hidden, depth, depth=depth), w.weight(1, 4 * hidden, hidden, depth=hidden), w.weight(1, 8 * hidden, depth=hidden)]
        x = w.node("Squeeze", w.node("LSTM", x, *gates, outputs=3, hidden_size=hidden)[0], w.constant(np.int64([1])))
    return w.model([("x", TensorProto.FLOAT, ["T", "N", width])], w.product(x, hidden, 32), ["T", "N", 32])


def fcn(classes=21):
    """As MobileNetV2 is, to a sixteenth of the image, with a class for each pixel of that."""
    w = Writer(4)
    x, channels = w.conv("x", 3, 32, 3, 2), 32
    for expand, filters, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)):
        for i in range(count):
            inner = w.conv(x, channels, channels * expand) if expand > 1 else x
            inner = w.conv(inner, channels * expand, channels * expand, 3, stride if i == 0 else 1, channels * expand)
            inner = w.conv(inner, channels * expand, filters, relu=False)
            x, channels = (w.node("Add", x, inner) if i else inner), filters
    x = w.conv(w.conv(x, channels, 128, 3), 128, classes, relu=False)
    x = w.node("Resize", x, "", w.constant(np.float32([1, 1, 2, 2])), mode="linear", coordinate_transformation_mode="half_pixel")
    return w.model([("x", TensorProto.FLOAT, ["N", 3, "H", "W"])], x, ["N", classes, "h", "w"])


def of_floats(dims):
    return lambda random, size: {"x": random.standard_normal(dims(size), np.float32)}


def of_words(random, size):
    return {"ids": random.integers(0, 2000, (1, size)), "mask": np.ones((1, size), np.int64)}


@dataclasses.dataclass
class Stream:
    model: typing.Callable  # makes the model
    sizes: typing.Callable  # (random, count): the sizes of so many requests
    feeds: typing.Callable  # (random, size): the inputs of one
    fixed: tuple  # sizes that also have a plan of their own
    symbols: typing.Callable  # of a size: what config.yaml says of it
    requests: int  # by default


def sentences(random, count):
    """Words of a sentence: log-normal, 18 in the middle."""
    return [int(n) for n in np.clip(np.exp(random.normal(np.log(18), 0.6, count)), 2, 128)]


STREAMS = {
    "small": Stream(perceptron, lambda random, n: [int(i) for i in random.integers(1, 512, n)], of_floats(lambda n: (1, n, 8)),
                    (32, 500), lambda n: f"L={n}", 1500),
    "encoder": Stream(encoder, sentences, of_words, (16, 64), lambda n: f"L={n}", 100),
    "lstm": Stream(lstm, lambda random, n: [int(i) for i in random.integers(5, 200, n)], of_floats(lambda n: (n, 1, 64)),
                   (20, 150), lambda n: f"T={n},N=1", 100),
    "fcn": Stream(fcn, lambda random, n: [(int(h), int(w)) for h, w in random.integers(64, 321, (n, 2))], of_floats(lambda n: (1, 3, *n)),
                  ((128, 128), (256, 192)), lambda n: f"H={n[0]},W={n[1]}", 60),
}  # fmt: skip
