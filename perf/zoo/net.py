# SPDX-License-Identifier: Apache-2.0
"""A network under construction: nodes, weights, and how large the activations are.

Names follow what PyTorch's exporter writes: a node is called after its scope ("/layer1/layer1.0/conv1/Conv"), its output after the
node. Shapes and bounds are Constant nodes, weights are initializers. The batch is the dimension "N".

An image carries its mean square ("power") as far as arithmetic on independent normal variables predicts it. A convolution scales
its weights by the power that it reads, so that its output is near one: nothing fades or grows with depth, and two engines that
differ in a layer differ visibly at the end.
"""

import contextlib
import math
import zlib
from typing import NamedTuple

import numpy as np
from onnx import TensorProto, helper

OPSET = 17
_GRID = np.linspace(-6.0, 6.0, 2401)
_DENSITY = np.exp(-_GRID * _GRID / 2) / np.exp(-_GRID * _GRID / 2).sum()
_SPREAD = (0.1, 0.4, 0.8, 1.4, 2.3)  # of power between channels: their mean is one
_ELEMENT_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


class Image(NamedTuple):
    """A value of shape [N, channels, height, width]."""

    name: str
    channels: int
    height: int
    width: int
    power: float


def pair(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def power_after(function, power):
    """The mean square of function(x) for normal x of that mean square, which differs between channels."""
    scales = np.sqrt(power * np.array(_SPREAD))[:, None]
    return float((function(_GRID * scales) ** 2 * _DENSITY).sum(axis=1).mean())


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _taps_inside(size, kernel, stride, pad, out):
    """Which share of a kernel's taps along one axis lies inside of the image, on average."""
    positions = np.arange(out)[:, None] * stride + np.arange(kernel)[None, :] - pad
    return float(((positions >= 0) & (positions < size)).mean())


class Net:
    def __init__(self, name):
        self.name = name
        self.random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self._scopes, self._used = [], {}

    # names

    @contextlib.contextmanager
    def scope(self, name):
        self._scopes.append(str(name))
        yield
        self._scopes.pop()

    def _unique(self, name):
        count = self._used.get(name, 0)
        self._used[name] = count + 1
        return name if count == 0 else f"{name}_{count}"

    # parts

    def input(self, name, shape, dtype="float32"):
        self.inputs.append(helper.make_tensor_value_info(name, _ELEMENT_TYPES[dtype], shape))
        return name

    def image(self, channels, size, name="input"):
        self.input(name, ["N", channels, size, size])
        return Image(name, channels, size, size, 1.0)

    def output(self, value, name, shape, dtype="float32"):
        """Names the value: the node that makes it writes under that name."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, old in enumerate(names):
                    if old == value:
                        names[i] = name
        self.outputs.append(helper.make_tensor_value_info(name, _ELEMENT_TYPES[dtype], shape))

    def op(self, kind, inputs, n_outputs=1, **attributes):
        name = self._unique("/" + "/".join([*self._scopes, kind]))
        outputs = [f"{name}_output_{i}" for i in range(n_outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name, **attributes))
        return outputs[0] if n_outputs == 1 else outputs

    def constant(self, value, dtype=np.float32):
        return self.op("Constant", [], value=_tensor("", np.asarray(value, dtype)))

    def integers(self, *values):
        return self.constant(values, np.int64)

    def weight(self, name, array):
        name = self._unique(".".join([*self._scopes, name]))
        self.weights.append(_tensor(name, array))
        return name

    def normal(self, shape, deviation=1.0, mean=0.0):
        array = self.random.standard_normal(shape, np.float32)
        array *= np.float32(deviation)
        array += np.float32(mean)
        return array

    # operators on images

    def conv(self, x, channels, kernel, stride=1, pad=None, groups=1, bias=True, gain=1.0, folded=None, name=None):
        """A convolution whose output has the power `gain`; `folded` gives weight and bias of a trained one."""
        kernel, stride = pair(kernel), pair(stride)
        pad = tuple(k // 2 for k in kernel) if pad is None else pair(pad)
        size = [(s + 2 * p - k) // t + 1 for s, p, k, t in zip(x[2:4], pad, kernel, stride)]
        if folded is None:
            folded = self._seeded_conv(x, channels, kernel, stride, pad, groups, gain, size)
        with self.scope(name) if name else contextlib.nullcontext():
            inputs = [x.name, self.weight("weight", folded[0])]
            if bias:
                inputs.append(self.weight("bias", folded[1]))
            out = self.op("Conv", inputs, dilations=[1, 1], group=groups, kernel_shape=kernel, pads=[*pad, *pad], strides=stride)
        return Image(out, channels, *size, gain * 1.01 if bias else gain)

    def _seeded_conv(self, x, channels, kernel, stride, pad, groups, gain, size):
        inside = [_taps_inside(*axis) for axis in zip(x[2:4], kernel, stride, pad, size)]
        fan_in = x.channels // groups * kernel[0] * kernel[1] * inside[0] * inside[1]
        weight = self.normal((channels, x.channels // groups, *kernel), math.sqrt(gain / (fan_in * x.power)))
        return weight, self.normal((channels,), 0.1 * math.sqrt(gain))

    def batch_norm(self, x, gain=1.0, epsilon=1e-5, name=None):
        """Statistics that fit x, with a spread of a fifth between channels, as of a trained net."""
        n, root = (x.channels,), math.sqrt(x.power)
        scale = (math.sqrt(gain) * self.random.uniform(0.8, 1.2, n)).astype(np.float32)
        variance = (x.power * self.random.uniform(0.8, 1.2, n)).astype(np.float32)
        with self.scope(name) if name else contextlib.nullcontext():
            inputs = [x.name, self.weight("weight", scale), self.weight("bias", self.normal(n, 0.1 * math.sqrt(gain)))]
            inputs += [self.weight("running_mean", self.normal(n, 0.1 * root)), self.weight("running_var", variance)]
            out = self.op("BatchNormalization", inputs, epsilon=epsilon, momentum=0.9)
        return x._replace(name=out, power=gain * 1.05)

    def relu(self, x, power=None):
        return x._replace(name=self.op("Relu", [x.name]), power=power or x.power / 2)

    def relu6(self, x):
        clipped = self.op("Clip", [x.name, self.constant(0), self.constant(6)])
        return x._replace(name=clipped, power=power_after(lambda v: np.clip(v, 0, 6), x.power))

    def swish(self, x):
        gate = self.op("Sigmoid", [x.name])
        return x._replace(name=self.op("Mul", [x.name, gate]), power=power_after(lambda v: v * _sigmoid(v), x.power))

    def hard_swish(self, x):
        power = power_after(lambda v: v * np.clip(v / 6 + 0.5, 0, 1), x.power)
        return x._replace(name=self.op("HardSwish", [x.name]), power=power)

    def gate(self, x, gate, kind, **attributes):
        """x scaled by a squashed value near 0.5 for each channel."""
        squashed = self.op(kind, [gate.name], **attributes)
        return x._replace(name=self.op("Mul", [x.name, squashed]), power=x.power * 0.28)

    def add(self, a, b):
        return a._replace(name=self.op("Add", [a.name, b.name]), power=a.power + b.power)

    def concat(self, images):
        channels = sum(i.channels for i in images)
        power = sum(i.power * i.channels for i in images) / channels
        return images[0]._replace(name=self.op("Concat", [i.name for i in images], axis=1), channels=channels, power=power)

    def _pool(self, kind, x, kernel, stride, pad, ceil, power, **attributes):
        size = [(s + 2 * pad - kernel + (stride - 1 if ceil else 0)) // stride + 1 for s in x[2:4]]
        if ceil:
            size = [n - 1 if (n - 1) * stride >= s + pad else n for n, s in zip(size, x[2:4])]
            attributes["ceil_mode"] = 1
        square = {"kernel_shape": [kernel] * 2, "pads": [pad] * 4, "strides": [stride] * 2}
        return Image(self.op(kind, [x.name], **square, **attributes), x.channels, *size, power)

    def max_pool(self, x, kernel, stride, pad=0, ceil=False):
        return self._pool("MaxPool", x, kernel, stride, pad, ceil, 2.0 * x.power)

    def average_pool(self, x, kernel, stride, pad=0):
        return self._pool("AveragePool", x, kernel, stride, pad, False, 0.6 * x.power, count_include_pad=1)

    def global_pool(self, x):
        return Image(self.op("GlobalAveragePool", [x.name]), x.channels, 1, 1, 0.4 * x.power)

    def gemm(self, x, n_inputs, n_outputs, power=1.0, name="fc", folded=None):
        """A dense layer as torch.nn.Linear on a matrix; takes and returns the name of a value."""
        spread = math.sqrt(1 / (n_inputs * power))
        weight, bias = folded or (self.normal((n_outputs, n_inputs), spread), self.normal((n_outputs,), 0.1))
        with self.scope(name):
            return self.op("Gemm", [x, self.weight("weight", weight), self.weight("bias", bias)], alpha=1.0, beta=1.0, transB=1)

    def classify(self, x, classes=1000, name="fc"):
        """Pool, flatten, dense layer; makes the model's one output."""
        pooled = self.global_pool(x)
        flat = self.op("Flatten", [pooled.name], axis=1)
        self.output(self.gemm(flat, x.channels, classes, pooled.power, name), "output", ["N", classes])

    # shapes as the exporter writes them when the batch is dynamic

    def batch_of(self, value):
        """The batch as a tensor of one element."""
        count = self.op("Gather", [self.op("Shape", [value]), self.constant(0, np.int64)], axis=0)
        return self.op("Unsqueeze", [count, self.integers(0)])

    def reshape_batch(self, value, batch, *sizes):
        """Reshape to [batch, *sizes], the batch read from a tensor at run time."""
        shape = self.op("Concat", [batch, *(self.integers(s) for s in sizes)], axis=0)
        return self.op("Reshape", [value, shape])

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8, producer_name="starling-zoo", producer_version="1")


def _tensor(name, array):
    array = np.asarray(array, order="C")
    tensor = TensorProto(name=name, dims=array.shape, data_type=_ELEMENT_TYPES[str(array.dtype)])
    tensor.raw_data = array.tobytes()
    return tensor
