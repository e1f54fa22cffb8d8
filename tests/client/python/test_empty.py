# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements, through `starling serve`: a 0 in the file's own shape and one that arrives for an open dimension. What is right is
worked out by NumPy, as ONNX defines each operator. Skipped where `starling` is not built."""

import os
import unittest

import numpy as np
import onnx_file as onnx
from world import RealRuntime

TYPES = {np.dtype(np.float32): 1, np.dtype(np.uint8): 2, np.dtype(np.int8): 3, np.dtype(np.int32): 6, np.dtype(np.int64): 7, np.dtype(bool): 9}
LEAST = np.finfo(np.float32).min


def floats(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 8 - 1


def longs(*values):
    return np.array(values, np.int64)


class Case:
    """One node: `inputs` are what a request gives, `constants` what the file has; both by name, in the order of the operator's inputs."""

    def __init__(self, operator, inputs, want, constants=None, **attributes):
        self.inputs = {f"x{i}": array for i, array in enumerate(inputs)}
        self.constants = {f"c{i}": array for i, array in enumerate(constants or [])}
        self.want = list(want) if isinstance(want, (tuple, list)) else [want]
        self.operator, self.attributes = operator, attributes

    def model(self, is_open):
        def shape(name, array):
            return [f"d{i}_{n}" if is_open else n for i, n in enumerate(array.shape)]

        outputs = [f"y{i}" for i in range(len(self.want))]
        return onnx.model(
            [onnx.node(self.operator, [*self.inputs, *self.constants], outputs, **self.attributes)],
            [onnx.port(name, TYPES[array.dtype], shape(name, array)) for name, array in self.inputs.items()],
            [
                onnx.port(name, TYPES[array.dtype], [f"{name}_{i}" for i in range(array.ndim)] if is_open else array.shape)
                for name, array in zip(outputs, self.want)
            ],
            [onnx.constant(name, TYPES[array.dtype], array) for name, array in self.constants.items()],
            opset=18,
        )


def reductions():
    x = floats(2, 0, 3)
    values = {"Sum": 0, "SumSquare": 0, "L1": 0, "L2": 0, "Prod": 1, "LogSum": -np.inf, "LogSumExp": -np.inf, "Max": -np.inf, "Min": np.inf}
    for name, value in values.items():
        yield f"reduce_{name}", Case(f"Reduce{name}", [x], np.full((2, 1, 3), value, np.float32), [longs(1)])
        yield f"reduce_{name}_beside", Case(f"Reduce{name}", [x], np.empty((2, 0, 1), np.float32), [longs(2)])
        yield f"reduce_{name}_all", Case(f"Reduce{name}", [x], np.array(value, np.float32), keepdims=0)
    ends = np.iinfo(np.int32)
    yield "reduce_Max_int32", Case("ReduceMax", [x.astype(np.int32)], np.full((2, 3), ends.min, np.int32), [longs(1)], keepdims=0)
    yield "reduce_Min_int32", Case("ReduceMin", [x.astype(np.int32)], np.full((2, 3), ends.max, np.int32), [longs(1)], keepdims=0)
    yield "reduce_Mean_beside", Case("ReduceMean", [x], np.empty((2, 0), np.float32), [longs(2)], keepdims=0)
    yield "argmax", Case("ArgMax", [x], np.empty((2, 0, 1), np.int64), axis=2)


def elements():
    x, none = floats(2, 0, 3), np.empty((2, 0, 3), np.float32)
    for operator in ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Erf", "Sqrt", "Softplus", "HardSwish", "Elu", "Floor", "Identity"):
        yield operator, Case(operator, [x], none)
    for operator in ("Add", "Mul", "Sub", "Div", "Pow"):
        yield operator, Case(operator, [x, floats(2, 0, 3)], none)
        yield operator + "_row", Case(operator, [x], none, [floats(3)])
        yield operator + "_one", Case(operator, [floats(0), floats(1)], np.empty(0, np.float32))
    yield "Equal", Case("Equal", [x, x], np.empty((2, 0, 3), bool))
    yield "Not", Case("Not", [x.astype(bool)], np.empty((2, 0, 3), bool))
    yield "Where", Case("Where", [x.astype(bool), x, x], none)
    yield "Cast", Case("Cast", [x], np.empty((2, 0, 3), np.int64), to=7)
    yield "Clip", Case("Clip", [x], none, [np.array(0, np.float32), np.array(1, np.float32)])
    yield "Max", Case("Max", [x, x, x], none)
    yield "CumSum", Case("CumSum", [x], none, [np.array(1, np.int64)])
    yield "quantize", Case("QuantizeLinear", [x], np.empty((2, 0, 3), np.uint8), [np.array(0.5, np.float32), np.array(3, np.uint8)])
    yield "dequantize", Case("DequantizeLinear", [x.astype(np.uint8)], none, [np.array(0.5, np.float32), np.array(3, np.uint8)])
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        yield operator, Case(operator, [x], none, axis=2)
        yield operator + "_over_none", Case(operator, [x], none, axis=1)


def products():
    yield "matmul_inner", Case("MatMul", [floats(2, 3, 0), floats(0, 4)], np.zeros((2, 3, 4), np.float32))
    yield "matmul_inner_weights", Case("MatMul", [floats(3, 0)], np.zeros((3, 4), np.float32), [floats(0, 4)])
    yield "matmul_rows", Case("MatMul", [floats(2, 0, 3)], np.empty((2, 0, 4), np.float32), [floats(3, 4)])
    yield "matmul_columns", Case("MatMul", [floats(2, 3), floats(3, 0)], np.empty((2, 0), np.float32))
    yield "matmul_batches", Case("MatMul", [floats(0, 2, 3), floats(0, 3, 4)], np.empty((0, 2, 4), np.float32))
    yield "gemm_inner", Case("Gemm", [floats(2, 0), floats(0, 3)], np.broadcast_to(floats(3), (2, 3)).copy(), [floats(3)])
    yield "gemm_rows", Case("Gemm", [floats(0, 5)], np.empty((0, 3), np.float32), [floats(5, 3), floats(3)])
    yield "einsum", Case("Einsum", [floats(2, 0), floats(0, 3)], np.zeros((2, 3), np.float32), equation="ij,jk->ik")
    yield "conv", Case("Conv", [floats(0, 2, 5, 5)], np.empty((0, 4, 3, 3), np.float32), [floats(4, 2, 3, 3)])
    yield "conv_transpose", Case("ConvTranspose", [floats(0, 2, 3, 3)], np.empty((0, 4, 5, 5), np.float32), [floats(2, 4, 3, 3)])
    yield "max_pool", Case("MaxPool", [floats(0, 2, 4, 4)], np.empty((0, 2, 2, 2), np.float32), kernel_shape=[2, 2], strides=[2, 2])
    yield "average_pool", Case("AveragePool", [floats(2, 0, 4, 4)], np.empty((2, 0, 2, 2), np.float32), kernel_shape=[2, 2], strides=[2, 2])
    yield "global_pool", Case("GlobalAveragePool", [floats(0, 2, 4, 4)], np.empty((0, 2, 1, 1), np.float32))
    yield "batch_norm", Case("BatchNormalization", [floats(0, 2, 4)], np.empty((0, 2, 4), np.float32), [floats(2), floats(2), floats(2), floats(2) + 2])
    yield "instance_norm", Case("InstanceNormalization", [floats(0, 2, 4)], np.empty((0, 2, 4), np.float32), [floats(2), floats(2)])
    yield "layer_norm", Case("LayerNormalization", [floats(2, 0, 4)], np.empty((2, 0, 4), np.float32), [floats(4), floats(4)])
    rnn = [floats(1, 12, 2), floats(1, 12, 3)]
    yield "lstm_no_samples", Case("LSTM", [floats(4, 0, 2)], np.empty((4, 1, 0, 3), np.float32), rnn, hidden_size=3)


def movements():
    x = floats(2, 0, 3)
    yield "concat", Case("Concat", [x, floats(2, 2, 3)], floats(2, 2, 3), axis=1)
    yield "concat_none", Case("Concat", [x, x], x, axis=1)
    yield "concat_beside", Case("Concat", [x, x], np.empty((4, 0, 3), np.float32), axis=0)
    yield "split", Case("Split", [floats(2, 3)], (np.empty((2, 0), np.float32), floats(2, 3)), [longs(0, 3)], axis=1)
    yield "split_none", Case("Split", [x], (x, x), [longs(0, 0)], axis=1)
    yield "slice_to_none", Case("Slice", [floats(4, 3)], np.empty((0, 3), np.float32), [longs(2), longs(2), longs(0)])
    yield "slice_of_none", Case("Slice", [x], np.empty((2, 0, 2), np.float32), [longs(1), longs(9), longs(2)])
    yield "transpose", Case("Transpose", [x], np.empty((3, 2, 0), np.float32), perm=[2, 0, 1])
    yield "reshape", Case("Reshape", [x], np.empty((0, 7), np.float32), [longs(0, 7)], allowzero=1)
    yield "flatten", Case("Flatten", [x], np.empty((2, 0), np.float32), axis=1)
    yield "squeeze", Case("Squeeze", [floats(1, 0)], np.empty(0, np.float32), [longs(0)])
    yield "unsqueeze", Case("Unsqueeze", [floats(0)], np.empty((1, 0), np.float32), [longs(0)])
    yield "expand", Case("Expand", [floats(1, 0)], np.empty((5, 0), np.float32), [longs(5, 1)])
    yield "expand_to_none", Case("Expand", [floats(1, 3)], np.empty((0, 3), np.float32), [longs(0, 3)])
    yield "tile", Case("Tile", [x], np.empty((4, 0, 3), np.float32), [longs(2, 5, 1)])
    yield "tile_no_times", Case("Tile", [floats(2, 3)], np.empty((2, 0), np.float32), [longs(1, 0)])
    yield "pad", Case("Pad", [floats(2, 0)], np.zeros((2, 3), np.float32), [longs(0, 1, 0, 2)])
    yield "gather_none", Case("Gather", [floats(5, 3), longs()], np.empty((0, 3), np.float32))
    yield "gather_rows", Case("Gather", [floats(3, 0), longs(2, 0)], np.empty((2, 0), np.float32))
    yield "gather_elements", Case("GatherElements", [floats(5, 3), np.empty((0, 3), np.int64)], np.empty((0, 3), np.float32))
    yield "gather_nd", Case("GatherND", [floats(5, 3), np.empty((0, 2), np.int64)], np.empty(0, np.float32))
    yield "scatter_nd", Case("ScatterND", [floats(5, 3), np.empty((0, 1), np.int64), floats(0, 3)], floats(5, 3))
    yield "scatter_elements", Case("ScatterElements", [floats(5, 3), np.empty((0, 3), np.int64), floats(0, 3)], floats(5, 3))
    yield "depth_to_space", Case("DepthToSpace", [floats(0, 4, 2, 2)], np.empty((0, 1, 4, 4), np.float32), blocksize=2)
    yield "resize", Case("Resize", [floats(0, 1, 2, 2)], np.empty((0, 1, 4, 4), np.float32), [floats(0), np.array([1, 1, 2, 2], np.float32)])
    yield "trilu", Case("Trilu", [floats(3, 0)], np.empty((3, 0), np.float32))
    yield "one_hot", Case("OneHot", [longs()], np.empty((0, 4), np.float32), [np.array(4, np.int64), np.array([0, 1], np.float32)])
    yield "shape", Case("Shape", [x], longs(2, 0, 3))
    yield "size", Case("Size", [x], np.array(0, np.int64))
    yield "top_none", Case("TopK", [floats(2, 3)], (np.empty((2, 0), np.float32), np.empty((2, 0), np.int64)), [longs(0)])
    yield "top_of_no_rows", Case("TopK", [floats(0, 3)], (np.empty((0, 2), np.float32), np.empty((0, 2), np.int64)), [longs(2)])
    yield "non_zero", Case("NonZero", [x], np.empty((3, 0), np.int64))
    yield "compress", Case("Compress", [floats(3, 2), np.zeros(3, bool)], np.empty((0, 2), np.float32), axis=0)
    yield "constant_of_shape", Case("ConstantOfShape", [longs(2, 0)], np.empty((2, 0), np.float32))
    yield "range", Case("Range", [np.array(3, np.int64), np.array(3, np.int64), np.array(1, np.int64)], longs())


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Empty(unittest.TestCase):
    configuration = "limits: {clients: 4}"
    is_open = False

    def check(self, client, name, case):
        got = client.infer(name, case.inputs, timeout=60)
        got = list(got.values()) if isinstance(got, dict) else [got]
        for array, want in zip(got, case.want, strict=True):
            array = np.asarray(array)
            self.assertEqual((array.dtype, array.shape), (want.dtype, want.shape))
            np.testing.assert_allclose(array, want, rtol=1e-6)

    def check_all(self, cases):
        runtime = RealRuntime({name: case.model(self.is_open) for name, case in cases.items()}, configuration=self.configuration)
        self.addCleanup(runtime.stop)
        with runtime.connect() as client:
            for name, case in cases.items():
                with self.subTest(name):
                    self.check(client, name, case)

    def test_reductions_take_none(self):
        self.check_all(dict(reductions()))

    def test_elements_take_none(self):
        self.check_all(dict(elements()))

    def test_products_take_none(self):
        self.check_all(dict(products()))

    def test_movements_take_none(self):
        self.check_all(dict(movements()))


class EmptyOpen(Empty):
    """The same, where all dimensions are open."""

    is_open = True


class EmptyReference(Empty):
    """The same on the backend that is the oracle of others."""

    configuration = "model_defaults: {backend: ref}"


class EmptyIsolated(Empty):
    configuration = "model_defaults: {isolation: process}"


if __name__ == "__main__":
    unittest.main()
