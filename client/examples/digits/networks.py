# SPDX-License-Identifier: Apache-2.0
"""The five networks of the digits ensemble, each described once.

A Graph is a list of ONNX nodes with their tensors. The same list is run by JAX while training and written to the ONNX
file afterwards, so that the file cannot differ from what was trained. Tensors are NCHW, the first axis is the batch.

  weights    trained by gradient
  statistics running mean and variance of the batch normalizations: updated by the forward pass, never by gradient
  constants  shapes and limits, which ONNX wants as inputs
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import lax
from onnx import TensorProto, helper, numpy_helper

OPSET = 13
IR_VERSION = 7
PIXELS = (1, 8, 8)
CLASSES = 10
EPSILON = 1e-5
STATISTICS_MOMENTUM = 0.9


def spatial_pairs(attributes):
    pads = attributes.get("pads", [0, 0, 0, 0])
    return [(pads[0], pads[2]), (pads[1], pads[3])]


def pool(x, attributes, start, combine):
    window = (1, 1, *attributes["kernel_shape"])
    strides = (1, 1, *attributes["strides"])
    return lax.reduce_window(x, start, combine, window, strides, "VALID")


def max_pool(attributes, x):
    return pool(x, attributes, -jnp.inf, lax.max)


def average_pool(attributes, x):
    return pool(x, attributes, 0.0, lax.add) / np.prod(attributes["kernel_shape"])


def conv(attributes, x, w, b=None):
    y = lax.conv_general_dilated(
        x, w, attributes["strides"], spatial_pairs(attributes), feature_group_count=attributes.get("group", 1)
    )
    return y if b is None else y + b[None, :, None, None]


def gemm(attributes, a, b, c):
    return a @ (b.T if attributes.get("transB") else b) + c


def reshape(_, x, shape):
    """Only the form [0, -1]: keep the batch, flatten the rest."""
    assert list(shape) == [0, -1]
    return x.reshape(x.shape[0], -1)


OPERATORS = {
    "Add": lambda _, a, b: a + b,
    "AveragePool": average_pool,
    "Clip": lambda _, x, low, high: jnp.clip(x, low, high),
    "Concat": lambda attributes, *xs: jnp.concatenate(xs, attributes["axis"]),
    "Conv": conv,
    "Flatten": lambda _, x: x.reshape(x.shape[0], -1),
    "Gemm": gemm,
    "GlobalAveragePool": lambda _, x: x.mean((2, 3), keepdims=True),
    "MaxPool": max_pool,
    "Relu": lambda _, x: jnp.maximum(x, 0),
    "Reshape": reshape,
    "Softmax": lambda attributes, x: jax.nn.softmax(x, attributes["axis"]),
}


def normalise(x, scale, shift, mean, variance):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    factor = scale / jnp.sqrt(variance + EPSILON)
    return x * factor.reshape(shape) + (shift - mean * factor).reshape(shape)


def batch_moments(x):
    axes = (0, *range(2, x.ndim))
    return x.mean(axes), x.var(axes)


def follow(running, fresh):
    return STATISTICS_MOMENTUM * running + (1 - STATISTICS_MOMENTUM) * fresh


class Graph:
    """Builder methods append one node and return the name of its output. `shapes` leaves the batch out."""

    def __init__(self, name, seed):
        self.name = name
        self.nodes = []
        self.weights = {}
        self.statistics = {}
        self.constants = {}
        self.shapes = {"image": PIXELS}
        # The name takes part in the seed, so that equal layers of two networks start differently.
        self.random = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def add(self, op, inputs, shape, label=None, **attributes):
        output = label or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append((op, tuple(inputs), output, attributes))
        self.shapes[output] = tuple(shape)
        return output

    def he_normal(self, shape, fan_in):
        return self.random.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)

    def conv(self, x, channels, kernel=3, stride=1, group=1, bias=False):
        label = f"conv_{len(self.nodes)}"
        c, h, w = self.shapes[x]
        inputs = [x, f"{label}.weight"]
        fan_in = c // group * kernel * kernel
        self.weights[inputs[1]] = self.he_normal((channels, c // group, kernel, kernel), fan_in)
        if bias:
            inputs.append(f"{label}.bias")
            self.weights[inputs[2]] = np.zeros(channels, np.float32)
        shape = (channels, -(-h // stride), -(-w // stride))
        return self.add(
            "Conv", inputs, shape, label,
            kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=group,
        )  # fmt: skip

    def batch_norm(self, x):
        label = f"batchnormalization_{len(self.nodes)}"
        channels = self.shapes[x][0]
        names = [f"{label}.{part}" for part in ("scale", "shift", "mean", "variance")]
        self.weights[names[0]] = np.ones(channels, np.float32)
        self.weights[names[1]] = np.zeros(channels, np.float32)
        self.statistics[names[2]] = np.zeros(channels, np.float32)
        self.statistics[names[3]] = np.ones(channels, np.float32)
        return self.add("BatchNormalization", [x, *names], self.shapes[x], label, epsilon=EPSILON)

    def gemm(self, x, width, transposed=True, label=None):
        label = label or f"gemm_{len(self.nodes)}"
        (fan_in,) = self.shapes[x]
        weight = self.he_normal((fan_in, width), fan_in)
        self.weights[f"{label}.weight"] = weight.T.copy() if transposed else weight
        self.weights[f"{label}.bias"] = np.zeros(width, np.float32)
        return self.add("Gemm", [x, f"{label}.weight", f"{label}.bias"], (width,), label, transB=int(transposed))

    def relu(self, x):
        return self.add("Relu", [x], self.shapes[x])

    def relu6(self, x):
        self.constants["zero"] = np.float32(0)
        self.constants["six"] = np.float32(6)
        return self.add("Clip", [x, "zero", "six"], self.shapes[x])

    def residual(self, a, b):
        assert self.shapes[a] == self.shapes[b]
        return self.add("Add", [a, b], self.shapes[a])

    def concat(self, *xs):
        channels = sum(self.shapes[x][0] for x in xs)
        return self.add("Concat", xs, (channels, *self.shapes[xs[0]][1:]), axis=1)

    def halve(self, x, op):
        c, h, w = self.shapes[x]
        return self.add(op, [x], (c, h // 2, w // 2), kernel_shape=[2, 2], strides=[2, 2])

    def global_average(self, x):
        return self.add("GlobalAveragePool", [x], (self.shapes[x][0], 1, 1))

    def flatten(self, x):
        return self.add("Flatten", [x], (int(np.prod(self.shapes[x])),), axis=1)

    def reshape_flat(self, x):
        self.constants["keep_batch"] = np.array([0, -1], np.int64)
        return self.add("Reshape", [x, "keep_batch"], (int(np.prod(self.shapes[x])),))

    def classify(self, x, transposed=True):
        logits = self.gemm(x, CLASSES, transposed, "logits")
        self.add("Softmax", [logits], (CLASSES,), "probabilities", axis=1)
        return self

    def forward(self, weights, statistics, image, training):
        """Returns the logits and the statistics, which training moves towards those of this batch."""
        values = {"image": image, **weights, **statistics}
        moved = dict(statistics)
        for op, inputs, output, attributes in self.nodes:
            arguments = [self.constants[i] if i in self.constants else values[i] for i in inputs]
            if op != "BatchNormalization":
                values[output] = OPERATORS[op](attributes, *arguments)
                continue
            x, scale, shift, mean, variance = arguments
            if training:
                mean, variance = batch_moments(x)
                moved[inputs[3]] = follow(statistics[inputs[3]], mean)
                moved[inputs[4]] = follow(statistics[inputs[4]], variance)
            values[output] = normalise(x, scale, shift, mean, variance)
        return values["logits"], moved

    def onnx_model(self, weights, statistics):
        tensors = {**weights, **statistics, **self.constants}
        nodes = [helper.make_node(op, i, [o], name=o, **attributes) for op, i, o, attributes in self.nodes]
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", *PIXELS])
        probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", CLASSES])
        initializers = [numpy_helper.from_array(np.asarray(t), name) for name, t in sorted(tensors.items())]
        graph = helper.make_graph(nodes, self.name, [image], [probabilities], initializers)
        model = helper.make_model(
            graph, producer_name="digits", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        onnx.checker.check_model(model, full_check=True)
        return model


def lenet(seed):
    """Convolutions with biases and no normalization, as in 1998."""
    g = Graph("lenet", seed)
    x = g.halve(g.relu(g.conv("image", 16, kernel=5, bias=True)), "MaxPool")
    x = g.halve(g.relu(g.conv(x, 32, kernel=3, bias=True)), "MaxPool")
    x = g.relu(g.gemm(g.flatten(x), 96))
    x = g.relu(g.gemm(x, 64))
    return g.classify(x)


def residual_block(g, x, channels, stride):
    y = g.relu(g.batch_norm(g.conv(x, channels, stride=stride)))
    y = g.batch_norm(g.conv(y, channels))
    if g.shapes[x] != g.shapes[y]:
        x = g.batch_norm(g.conv(x, channels, kernel=1, stride=stride))
    return g.relu(g.residual(y, x))


def resnet(seed):
    g = Graph("resnet", seed)
    x = g.relu(g.batch_norm(g.conv("image", 16)))
    x = residual_block(g, x, 16, stride=1)
    x = residual_block(g, x, 32, stride=2)
    x = residual_block(g, x, 32, stride=1)
    return g.classify(g.flatten(g.global_average(x)))


def dense_block(g, x, layers, growth):
    """Normalization comes before the convolution here, behind a Concat: a folding pass cannot remove it."""
    for _ in range(layers):
        x = g.concat(x, g.conv(g.relu(g.batch_norm(x)), growth))
    return x


def densenet(seed):
    g = Graph("densenet", seed)
    x = dense_block(g, g.conv("image", 16), layers=3, growth=12)
    x = g.conv(g.relu(g.batch_norm(x)), 24, kernel=1)
    x = dense_block(g, g.halve(x, "AveragePool"), layers=3, growth=12)
    x = g.relu(g.batch_norm(x))
    return g.classify(g.reshape_flat(g.global_average(x)))


def separable_block(g, x, channels, stride):
    c = g.shapes[x][0]
    y = g.relu6(g.batch_norm(g.conv(x, 4 * c, kernel=1)))
    y = g.relu6(g.batch_norm(g.conv(y, 4 * c, stride=stride, group=4 * c)))
    y = g.batch_norm(g.conv(y, channels, kernel=1))
    return g.residual(y, x) if g.shapes[x] == g.shapes[y] else y


def mobilenet(seed):
    g = Graph("mobilenet", seed)
    x = g.relu6(g.batch_norm(g.conv("image", 16)))
    x = separable_block(g, x, 16, stride=1)
    x = separable_block(g, x, 24, stride=2)
    x = separable_block(g, x, 24, stride=1)
    x = g.relu6(g.batch_norm(g.conv(x, 96, kernel=1)))
    return g.classify(g.flatten(g.global_average(x)))


def mlp(seed):
    g = Graph("mlp", seed)
    x = g.flatten("image")
    for _ in range(2):
        x = g.relu(g.batch_norm(g.gemm(x, 160, transposed=False)))
    return g.classify(x, transposed=False)


NETWORKS = {"lenet": lenet, "resnet": resnet, "densenet": densenet, "mobilenet": mobilenet, "mlp": mlp}
