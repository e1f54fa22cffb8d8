# SPDX-License-Identifier: Apache-2.0
"""Small ONNX files without the package `onnx`: just enough protobuf for models of a few nodes."""

import struct


def _varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


class Graph(bytes):
    """A body, or what a model is."""


def _attribute(name, value):
    if isinstance(value, Graph):
        return _bytes(1, name) + _bytes(6, value) + _number(20, 5)
    if isinstance(value, int):
        return _bytes(1, name) + _number(3, value) + _number(20, 2)
    if isinstance(value, float):
        return _bytes(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, str):
        return _bytes(1, name) + _bytes(4, value) + _number(20, 3)
    if value and isinstance(value[0], str):
        return _bytes(1, name) + b"".join(_bytes(9, text) for text in value) + _number(20, 8)
    return _bytes(1, name) + b"".join(_number(8, n) for n in value) + _number(20, 7)


def node(operator, inputs, outputs, **attributes):
    return (
        b"".join(_bytes(1, name) for name in inputs)
        + b"".join(_bytes(2, name) for name in outputs)
        + _bytes(4, operator)
        + b"".join(_bytes(5, _attribute(*item)) for item in attributes.items())
    )


def ml_node(operator, inputs, outputs, **attributes):
    """Of domain ai.onnx.ml."""
    return node(operator, inputs, outputs, **attributes) + _bytes(7, "ai.onnx.ml")


def contrib_node(operator, inputs, outputs, **attributes):
    """Of domain com.microsoft."""
    return node(operator, inputs, outputs, **attributes) + _bytes(7, "com.microsoft")


def _dimension(size):
    return _number(1, size) if isinstance(size, int) else _bytes(2, size)


def port(name, number, shape):
    """An input or output of element type `number`; a text in the shape is an open dimension."""
    dims = b"".join(_bytes(1, _dimension(size)) for size in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, number) + _bytes(2, dims)))


def constant(name, number, array):
    """An initializer."""
    dims = b"".join(_number(1, size) for size in array.shape)
    return dims + _number(2, number) + _bytes(8, name) + _bytes(9, array.tobytes())


def packed(name, number, shape, data):
    """An initializer of elements that share bytes."""
    dims = b"".join(_number(1, size) for size in shape)
    return dims + _number(2, number) + _bytes(8, name) + _bytes(9, data)


def external(name, number, shape, location):
    """An initializer whose bytes are a file beside the model's."""
    dims = b"".join(_number(1, size) for size in shape)
    return dims + _number(2, number) + _bytes(8, name) + _bytes(13, _bytes(1, "location") + _bytes(2, location)) + _number(14, 1)


def words(name, texts):
    """An initializer of strings."""
    return _number(1, len(texts)) + _number(2, 8) + b"".join(_bytes(6, text) for text in texts) + _bytes(8, name)


def graph(nodes, inputs, outputs, constants=()):
    return Graph(
        b"".join(_bytes(1, item) for item in nodes)
        + _bytes(2, "graph")
        + b"".join(_bytes(5, item) for item in constants)
        + b"".join(_bytes(11, item) for item in inputs)
        + b"".join(_bytes(12, item) for item in outputs)
    )


def model(nodes, inputs, outputs, constants=(), opset=17, ir=8):
    domains = _bytes(8, _bytes(1, "") + _number(2, opset)) + _bytes(8, _bytes(1, "ai.onnx.ml") + _number(2, 1))
    domains += _bytes(8, _bytes(1, "com.microsoft") + _number(2, 1))
    return _number(1, ir) + _bytes(7, graph(nodes, inputs, outputs, constants)) + domains
