# SPDX-License-Identifier: Apache-2.0
"""Products by weights of 4 bits, against numpy: MatMulNBits and DequantizeLinear. Skipped where `starling` is not built."""

import os
import unittest

import numpy as np
import onnx_file as onnx
from world import RealRuntime

F32, U8, I64, U4, I4 = 1, 2, 7, 21, 22
DEPTH, COLUMNS, BLOCK = 72, 40, 32
BLOCKS = -(-DEPTH // BLOCK)
RANDOM = np.random.default_rng(5)
NUMBERS = RANDOM.integers(0, 16, (COLUMNS, BLOCKS * BLOCK), np.uint8)
SCALES = RANDOM.uniform(0.01, 0.1, (COLUMNS, BLOCKS)).astype(np.float32)
ZEROS = RANDOM.integers(0, 16, (COLUMNS, BLOCKS), np.uint8)


def packed(numbers):
    """Two of a row in a byte, the first one in the lower bits."""
    if numbers.shape[-1] % 2:
        numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, 1)])
    return numbers[..., ::2] | numbers[..., 1::2] << 4


def weights(zeros):
    """[DEPTH, COLUMNS] as the operators' texts define them."""
    blocks = NUMBERS.reshape(COLUMNS, BLOCKS, BLOCK).astype(np.float64) - zeros[..., None]
    return (blocks * SCALES[..., None].astype(np.float64)).reshape(COLUMNS, -1)[:, :DEPTH].T


def by_bytes(x, zeros):
    """Each block of a row is rounded to 127 steps of its largest magnitude."""
    rows = np.pad(x, ((0, 0), (0, BLOCKS * BLOCK - DEPTH))).reshape(-1, BLOCKS, BLOCK)
    most = np.abs(rows).max(-1, keepdims=True)
    steps = np.rint(rows * (np.float32(127) / most))
    rounded = (steps * (most / np.float32(127)).astype(np.float64)).reshape(len(x), -1)[:, :DEPTH]
    return rounded @ weights(zeros)


def product(one, constants):
    ports = [onnx.port("x", F32, ("N", DEPTH))], [onnx.port("y", F32, ("N", COLUMNS))]
    return onnx.model(one, *ports, constants, opset=21, ir=10)


def blocks(level, zeros):
    constants = [onnx.constant("b", U8, packed(NUMBERS).reshape(COLUMNS, BLOCKS, -1)), onnx.constant("s", F32, SCALES)]
    if zeros:
        constants.append(onnx.constant("z", U8, packed(ZEROS)))
    sizes = {"K": DEPTH, "N": COLUMNS, "bits": 4, "block_size": BLOCK, "accuracy_level": level}
    return product([onnx.contrib_node("MatMulNBits", ["x", "b", "s", "z"][: 3 + zeros], ["y"], **sizes)], constants)


def dequantized(kind, turned):
    """The same numbers, of uint4 with zero points or of int4 around 0, as [DEPTH, COLUMNS] or its transpose."""
    numbers, scales, zeros = NUMBERS[:, :DEPTH], SCALES, ZEROS
    if not turned:
        numbers, scales, zeros = numbers.T, scales.T, zeros.T
    stored = numbers if kind == U4 else numbers ^ 8  # of 4 bits, 8 is -8 and 7 is -1 more than that
    constants = [
        onnx.packed("w", kind, numbers.shape, packed(stored.reshape(-1)).tobytes()),
        onnx.constant("s", F32, np.ascontiguousarray(scales)),
        onnx.packed("z", kind, zeros.shape, packed(zeros.reshape(-1)).tobytes()),
    ]
    nodes = [onnx.node("DequantizeLinear", ["w", "s", "z"][: 3 if kind == U4 else 2], ["f"], axis=int(turned), block_size=BLOCK)]
    nodes += [onnx.node("Transpose", ["f"], ["t"], perm=[1, 0])] if turned else []
    return product([*nodes, onnx.node("MatMul", ["x", "t" if turned else "f"], ["y"])], constants)


def table(kind, zeros):
    """The rows of NUMBERS, each a word: packed bytes, or elements of int4 or uint4."""
    if kind == U8:
        data, points = onnx.constant("b", U8, packed(NUMBERS)), onnx.constant("z", U8, packed(ZEROS))
    else:
        turn = 8 if kind == I4 else 0
        data = onnx.packed("b", kind, NUMBERS.shape, packed((NUMBERS ^ turn).reshape(-1)).tobytes())
        points = onnx.packed("z", kind, ZEROS.shape, packed((ZEROS ^ turn).reshape(-1)).tobytes())
    constants = [data, onnx.constant("s", F32, SCALES)] + [points] * zeros
    one = onnx.contrib_node("GatherBlockQuantized", ["b", "i", "s", "z"][: 3 + zeros], ["y"], block_size=BLOCK)
    ports = [onnx.port("i", I64, ("N", 3))], [onnx.port("y", F32, ("N", 3, BLOCKS * BLOCK))]
    return onnx.model([one], *ports, constants, opset=21, ir=10)


EIGHT = np.full_like(ZEROS, 8)


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Nibbles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        models = {f"level-{level}-{zeros}": blocks(level, zeros) for level in (0, 4) for zeros in (0, 1)}
        models |= {f"{kind}-{turned}": dequantized(kind, turned) for kind in (U4, I4) for turned in (0, 1)}
        models |= {f"table-{kind}-{zeros}": table(kind, zeros) for kind in (U8, U4, I4) for zeros in (0, 1)}
        cls.runtime = RealRuntime(models)
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)

    def check(self, name, wanted_of, rows):
        x = RANDOM.standard_normal((rows, DEPTH)).astype(np.float32)
        wanted = wanted_of(x)
        np.testing.assert_allclose(self.client.infer(name, x), wanted, atol=1e-5 * np.abs(wanted).max(), err_msg=f"{name}, {rows}")

    def test_blocks_are_multiplied_in_float32(self):
        for rows in 1, 5, 33:
            for zeros in 0, 1:
                self.check(f"level-0-{zeros}", lambda x: x @ weights(ZEROS if zeros else EIGHT), rows)

    def test_rows_go_by_bytes_where_the_file_allows_it(self):
        for rows in 1, 5, 33:
            for zeros in 0, 1:
                self.check(f"level-4-{zeros}", lambda x: by_bytes(x, ZEROS if zeros else EIGHT), rows)

    def test_dequantized_constants_are_multiplied_in_float32(self):
        for rows in 1, 5, 33:
            for turned in 0, 1:
                self.check(f"{U4}-{turned}", lambda x: x @ weights(ZEROS), rows)
                self.check(f"{I4}-{turned}", lambda x: x @ weights(EIGHT), rows)

    def test_rows_of_a_table_are_gathered(self):
        indices = np.array([[0, 39, 7], [-1, 7, 20]])
        for kind, least in (U8, EIGHT), (U4, EIGHT - 8), (I4, EIGHT):
            for zeros in 0, 1:
                points = ZEROS if zeros else least
                blocks = NUMBERS.reshape(COLUMNS, BLOCKS, BLOCK).astype(np.float32) - points[..., None]
                rows = (blocks * SCALES[..., None]).reshape(COLUMNS, -1)
                got = self.client.infer(f"table-{kind}-{zeros}", indices)
                np.testing.assert_allclose(got, rows[indices], rtol=1e-6, err_msg=f"{kind} {zeros}")


if __name__ == "__main__":
    unittest.main()
