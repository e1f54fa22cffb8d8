# SPDX-License-Identifier: Apache-2.0
"""Sequences of which data name an element, or say how long the pieces are, and those along which a Scan goes. Skipped where
`starling` is not built."""

import os
import unittest

import numpy as np
import onnx_file as onnx
import starling
from world import RealRuntime

F32, I64 = 1, 7


def chosen():
    """One of x, 2x and x * x, by i."""
    return onnx.model(
        [
            onnx.node("Add", ["x", "x"], ["a"]),
            onnx.node("Mul", ["x", "x"], ["b"]),
            onnx.node("SequenceConstruct", ["x", "a", "b"], ["s"]),
            onnx.node("SequenceAt", ["s", "i"], ["y"]),
        ],
        [onnx.port("x", F32, (2, 3)), onnx.port("i", I64, ())],
        [onnx.port("y", F32, (2, 3))],
    )


def cut():
    """The last of three pieces, twice."""
    return onnx.model(
        [
            onnx.node("SplitToSequence", ["x", "lengths"], ["s"], axis=1),
            onnx.node("SequenceAt", ["s", "last"], ["p"]),
            onnx.node("Add", ["p", "p"], ["y"]),
        ],
        [onnx.port("x", F32, (2, 6)), onnx.port("lengths", I64, (3,))],
        [onnx.port("y", F32, (2, "length"))],
        [onnx.constant("last", I64, np.array(-1, np.int64))],
    )


def scanned(backward):
    """In the form of opset 8: sums along x [N, 4, 2] that begin with start [N, 2], of each sample by itself."""
    body = onnx.graph(
        [onnx.node("Add", ["sum", "next"], ["last"]), onnx.node("Identity", ["last"], ["made"])],
        [onnx.port("sum", F32, (2,)), onnx.port("next", F32, (2,))],
        [onnx.port("last", F32, (2,)), onnx.port("made", F32, (2,))],
    )
    directions = {"directions": [1]} if backward else {}
    return onnx.model(
        [onnx.node("Scan", ["", "start", "x"], ["y", "z"], num_scan_inputs=1, body=body, **directions)],
        [onnx.port("start", F32, ("N", 2)), onnx.port("x", F32, ("N", 4, 2))],
        [onnx.port("y", F32, ("N", 2)), onnx.port("z", F32, ("N", 4, 2))],
        opset=8,
        ir=3,
    )


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Sequences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = RealRuntime({"chosen": chosen(), "cut": cut(), "forward": scanned(False), "backward": scanned(True)})
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)

    def test_data_name_an_element(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for i, wanted in (0, x), (1, 2 * x), (2, x * x), (-1, x * x), (-3, x):
            np.testing.assert_array_equal(self.client.infer("chosen", {"x": x, "i": np.int64(i)}), wanted)
        for i in 3, -4:
            with self.assertRaises(starling.StarlingError):
                self.client.infer("chosen", {"x": x, "i": np.int64(i)})

    def test_data_say_how_long_pieces_are(self):
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        for lengths in [1, 2, 3], [5, 0, 1], [3, 3, 0]:
            wanted = 2 * np.split(x, np.cumsum(lengths)[:-1], axis=1)[-1]
            np.testing.assert_array_equal(self.client.infer("cut", {"x": x, "lengths": np.array(lengths)}), wanted)
        for lengths in [1, 2, 4], [1, 2, 2], [7, -2, 1]:
            with self.subTest(lengths=lengths), self.assertRaises(starling.StarlingError):
                self.client.infer("cut", {"x": x, "lengths": np.array(lengths)})

    def test_a_scan_of_opset_8_goes_along_each_sample(self):
        for n in 1, 3:
            x = np.random.default_rng(n).integers(-9, 9, (n, 4, 2)).astype(np.float32)
            start = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
            for name, steps in ("forward", x), ("backward", x[:, ::-1]):
                sums = start[:, None] + np.cumsum(steps, axis=1)
                got = self.client.infer(name, {"start": start, "x": x})
                np.testing.assert_array_equal(got["y"], sums[:, -1])
                np.testing.assert_array_equal(got["z"], sums)


if __name__ == "__main__":
    unittest.main()
