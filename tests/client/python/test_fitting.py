# SPDX-License-Identifier: Apache-2.0
"""Models that some sizes of their open dimensions do not suit, 1 among them, through `starling serve`. Skipped where it is not built."""

import os
import unittest

import numpy as np
import onnx_file as onnx
import starling
from world import RealRuntime

F32, I64 = 1, 7


def halves(axis):
    """y = the first half of x [N, L, 8] along the axis, times the second."""
    return onnx.model(
        [onnx.node("Split", ["x"], ["a", "b"], axis=axis), onnx.node("Mul", ["a", "b"], ["y"])],
        [onnx.port("x", F32, ("N", "L", 8))],
        [onnx.port("y", F32, ("A", "B", 8))],
    )


def fours():
    """y = x [L] in rows of 4."""
    return onnx.model(
        [onnx.node("Reshape", ["x", "rows"], ["y"])],
        [onnx.port("x", F32, ("L",))],
        [onnx.port("y", F32, ("M", 4))],
        [onnx.constant("rows", I64, np.array([-1, 4], np.int64))],
    )


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Fitting(unittest.TestCase):
    def test_a_size_is_tried_against_the_rules_when_it_comes(self):
        runtime = RealRuntime({"halves": halves(1), "leading": halves(0), "fours": fours()})
        self.addCleanup(runtime.stop)
        x = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
        refusals = (
            ("halves", x[:, :5], 'node "a".*Split.*a dimension of 5 does not make 2 equal parts'),
            ("leading", x[:3], 'node "a".*Split.*a dimension of 3 does not make 2 equal parts'),
            ("leading", x[:1], 'node "a".*Split.*a dimension of 1 does not make 2 equal parts'),
            ("fours", np.ones(10, np.float32), r'node "y".*Reshape.*\[10\]'),
        )
        with runtime.connect() as client:
            for _ in range(2):  # a refusal disturbs nothing
                np.testing.assert_array_equal(client.infer("halves", x, timeout=60), x[:, :3] * x[:, 3:])
                np.testing.assert_array_equal(client.infer("leading", x, timeout=60), x[:2] * x[2:])
                np.testing.assert_array_equal(client.infer("fours", x[0, 0], timeout=60), x[0, 0].reshape(2, 4))
                for name, value, words in refusals:
                    with self.subTest(name), self.assertRaisesRegex(starling.InvalidRequest, words):
                        client.infer(name, value, timeout=60)


if __name__ == "__main__":
    unittest.main()
