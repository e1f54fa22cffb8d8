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
    @classmethod
    def setUpClass(cls):
        cls.runtime = RealRuntime({f"rows{n}": rows(n) for n in WIDTHS})
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


if __name__ == "__main__":
    unittest.main()
