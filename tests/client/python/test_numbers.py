# SPDX-License-Identifier: Apache-2.0
"""NaN and infinities through `starling serve` and the Python client, in the default configuration: what NumPy makes of them in
float64. Skipped where `starling` is not built."""

import os
import unittest

import numpy as np
import onnx_file as onnx
from world import RealRuntime

F32 = 1
WIDTHS = (4, 7, 33, 64, 1000)
NAN, INF = np.float32(np.nan), np.float32(np.inf)


def rows(n):
    """The Softmax and the LogSoftmax of x [N, n]."""
    return onnx.model(
        [onnx.node("Softmax", ["x"], ["shares"]), onnx.node("LogSoftmax", ["x"], ["logarithms"])],
        [onnx.port("x", F32, ("N", n))],
        [onnx.port("shares", F32, ("N", n)), onnx.port("logarithms", F32, ("N", n))],
    )


FILTERS = np.random.default_rng(3).standard_normal((20, 16, 3, 3)).astype(np.float32)


def convolution(outputs):
    """c = x [N, 16, 12, 12] under 3x3 filters, y = its Relu, largest = that of 2x2 of y: what is no output may be fused."""
    shapes = {"c": ("N", 20, 12, 12), "y": ("N", 20, 12, 12), "largest": ("N", 20, 6, 6)}
    return onnx.model(
        [
            onnx.node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            onnx.node("Relu", ["c"], ["y"]),
            onnx.node("MaxPool", ["y"], ["largest"], kernel_shape=[2, 2], strides=[2, 2]),
        ],
        [onnx.port("x", F32, ("N", 16, 12, 12))],
        [onnx.port(name, F32, shapes[name]) for name in outputs],
        [onnx.constant("w", F32, FILTERS)],
    )


def convolve(x):
    """What convolution() has, in float64; a pixel beside the image is not there, so it is not multiplied."""
    x, n = x.astype(np.float64), len(x)
    sums = np.zeros((n, 20, 12, 12))
    with np.errstate(invalid="ignore"):
        for i in range(3):
            for j in range(3):
                rows, columns = slice(max(0, 1 - i), min(12, 13 - i)), slice(max(0, 1 - j), min(12, 13 - j))
                seen = x[:, :, rows.start + i - 1 : rows.stop + i - 1, columns.start + j - 1 : columns.stop + j - 1]
                sums[:, :, rows, columns] += np.einsum("ncij,fc->nfij", seen, FILTERS[:, :, i, j].astype(np.float64))
        y = np.where(sums < 0, 0, sums)
        largest = y.reshape(n, 20, 6, 2, 6, 2).max((3, 5))
    return {"c": sums, "y": y, "largest": largest}


def softmax(x):
    with np.errstate(invalid="ignore"):
        e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True).astype(np.float64))
        return e / e.sum(-1, keepdims=True)


def log_softmax(x):
    with np.errstate(invalid="ignore", divide="ignore"):
        shifted = x.astype(np.float64) - x.max(-1, keepdims=True).astype(np.float64)
        return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Numbers(unittest.TestCase):
    CONVOLUTIONS = {"apart": ["c", "y", "largest"], "fused": ["y", "largest"], "last": ["largest"]}

    @classmethod
    def setUpClass(cls):
        models = {name: convolution(outputs) for name, outputs in cls.CONVOLUTIONS.items()}
        models.update({f"rows{n}": rows(n) for n in WIDTHS})
        cls.runtime = RealRuntime(models)
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)
        cls.random = np.random.default_rng(7)

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def expect_rows(self, make):
        """What `make` does to each row: it gets the row and its number."""
        for n in WIDTHS:
            x = self.floats(12, n)
            for i, row in enumerate(x):
                make(row, i)
            result = self.client.infer(f"rows{n}", x)
            np.testing.assert_allclose(result["shares"], softmax(x), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(result["logarithms"], log_softmax(x), rtol=1e-5, atol=1e-5)

    def test_a_nan_makes_all_of_its_row_nan_and_no_other_row(self):
        def spoil(row, i):
            if i % 3 != 2:
                row[i * 7 % len(row)] = NAN

        self.expect_rows(spoil)

    def test_a_row_of_nothing_but_minus_infinity_is_nan(self):
        def spoil(row, i):
            if i % 2:
                row[:] = -INF

        self.expect_rows(spoil)

    def test_minus_infinity_has_no_share_of_its_row(self):
        def spoil(row, i):
            row[: i * len(row) // 12] = -INF

        self.expect_rows(spoil)

    def test_infinity_makes_all_of_its_row_nan(self):
        def spoil(row, i):
            row[-1 - i % len(row)] = INF if i % 2 else row[0]

        self.expect_rows(spoil)

    def test_what_is_not_finite_stays_under_the_windows_over_it_fused_or_not(self):
        for value in (NAN, INF, -INF):
            x = self.floats(5, 16, 12, 12)
            for i in range(4):
                x[i, 5 * i, 4 * i % 12, 11 - 3 * i] = value
            wanted = convolve(x)
            for model, outputs in self.CONVOLUTIONS.items():
                result = self.client.infer(model, x)
                for name in outputs:
                    got = result[name] if len(outputs) > 1 else result
                    with self.subTest(value=float(value), model=model, output=name):
                        np.testing.assert_allclose(got, wanted[name], rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
