# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch itself in and out, by `starling serve`. For hand, as the package is large; test_values.py has a stand-in for it:

    STARLING_COMMAND=build/release/bin/starling PYTHONPATH=client/python:tests/client/python build/further-venv/bin/python -m unittest test_torch
"""

import asyncio
import gc
import os
import unittest

import numpy as np
import onnx_file as onnx
import starling
from starling import arena
from world import RealRuntime

try:
    import torch
except ImportError:
    torch = None

F32, BOOL, BF16 = 1, 9, 16


def identity(number):
    return onnx.model([onnx.node("Identity", ["x"], ["y"])], [onnx.port("x", number, ("N", 4))], [onnx.port("y", number, ("N", 4))])


def bits(tensor):
    """Its bytes as NumPy's, which has no bfloat16."""
    tensor = tensor.contiguous()
    return tensor.view(torch.int16).numpy() if tensor.dtype is torch.bfloat16 else tensor.numpy()


def tensor_of(array):
    """A result as a tensor of the same memory."""
    if array.dtype == arena.BFLOAT16:
        return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_dlpack(array)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Tensors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dtypes = {
            number: torch.bfloat16 if number == BF16 else getattr(torch, dtype.name) for number, dtype in arena.DTYPES.items()
        }
        cls.runtime = RealRuntime({f"id{number}": identity(number) for number in cls.dtypes})
        cls.client = starling.Client(os.path.join(cls.runtime.folder, cls.runtime.name + ".sock"), timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.runtime.stop()

    def ways(self):
        yield self.client.infer
        yield lambda *request: self.client.submit(*request).result(30)
        yield lambda *request: asyncio.run(self.client.infer_async(*request))

    def counting(self, dtype, rows, columns):
        values = torch.arange(rows * columns).reshape(rows, columns)
        return (values % 2 if dtype is torch.bool else values).to(dtype)

    def test_every_type_in_every_form_comes_back(self):
        for number, dtype in self.dtypes.items():
            x = self.counting(dtype, 10, 4)
            forms = {
                "dense": x,
                "every other row": x[::2],
                "every other column": self.counting(dtype, 10, 8)[:, ::2],
                "transposed": self.counting(dtype, 4, 10).T,
                "from the second row on": x[1:],
                "one row for all": x[:1].expand(5, 4),
                "no rows": x[:0],
            }
            for form, tensor in forms.items():
                for way in self.ways():
                    with self.subTest(dtype=dtype, form=form):
                        y = way(f"id{number}", tensor)
                        self.assertEqual(y.dtype, arena.DTYPES[number])
                        np.testing.assert_array_equal(y.view(np.int16) if number == BF16 else y, bits(tensor))

    def test_results_share_their_memory_and_live_as_long_as_the_tensor(self):
        for number, dtype in self.dtypes.items():
            x, before = self.counting(dtype, 1000, 4), self.client.info().arena_used_bytes
            y = self.client.infer(f"id{number}", x)
            tensor = tensor_of(y)
            with self.subTest(dtype=dtype):
                self.assertIs(tensor.dtype, dtype)
                self.assertEqual(tensor.data_ptr(), y.__array_interface__["data"][0])
                part = tensor[3:5]
                del y, tensor
                gc.collect()
                self.assertGreater(self.client.info().arena_used_bytes, before)
                self.assertTrue(torch.equal(part, x[3:5]))
                del part
                gc.collect()
                self.assertEqual(self.client.info().arena_used_bytes, before)

    def test_a_tensor_outlives_the_client(self):
        with starling.Client(os.path.join(self.runtime.folder, self.runtime.name + ".sock"), timeout=60) as client:
            tensor = torch.from_dlpack(client.infer("id1", torch.ones(1000, 4)))
        del client
        gc.collect()
        self.assertEqual(tensor.sum(), 4000)

    def test_a_tensor_over_the_arena_is_asked_with(self):
        for number, dtype in self.dtypes.items():
            room = tensor_of(self.client.empty((10, 4), arena.DTYPES[number]))
            room.copy_(self.counting(dtype, 10, 4))
            y = self.client.infer(f"id{number}", room)
            self.assertEqual(y.tobytes(), bits(room).tobytes(), dtype)

    def test_the_same_kind_is_converted(self):
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool):
            x = self.counting(dtype, 3, 4)
            np.testing.assert_array_equal(self.client.infer("id1", x), x.float().numpy())
        y = self.client.infer("id16", torch.full((1, 4), 1.5))
        self.assertTrue(torch.equal(tensor_of(y), torch.full((1, 4), 1.5, dtype=torch.bfloat16)))
        conjugate = torch.tensor([[1 + 2j] * 4]).conj().imag  # which has its sign apart
        np.testing.assert_array_equal(self.client.infer("id1", conjugate), conjugate.resolve_neg().numpy())

    def test_what_cannot_be_read_is_refused(self):
        for x, words in (
            (torch.ones(2, 4, requires_grad=True), r"gradient.*x\.detach\(\)"),
            (torch.ones(2, 4, requires_grad=True) * 2, r"gradient.*x\.detach\(\)"),
            (torch.nn.Parameter(torch.ones(2, 4)), r"gradient.*x\.detach\(\)"),
            (torch.ones(2, 4, dtype=torch.bfloat16, requires_grad=True), r"gradient.*x\.detach\(\)"),
            (torch.ones(2, 4).to(torch.float8_e4m3fn), r"x\.float\(\) of a type that NumPy lacks"),
            (torch.ones(2, 4, dtype=torch.complex64), "wants float32, got complex64"),
            (torch.eye(4).to_sparse(), "cannot be read through DLPack"),
            (torch.ones(2, 4, device="meta"), "meta.*wants memory of the host"),
            (torch.tensor(1.0), r"wants float32 \[N,4\], got float32 \[\]"),
        ):
            for way in self.ways():
                with self.subTest(x=x), self.assertRaisesRegex(starling.InvalidRequest, words):
                    way("id1", x)

    def test_a_copy_in_the_arena_has_the_type_of_the_tensor(self):
        for number, dtype in self.dtypes.items():
            x = self.counting(dtype, 3, 4)
            copy = self.client.array(x)
            self.assertEqual((copy.dtype, copy.tobytes()), (arena.DTYPES[number], bits(x).tobytes()))


if __name__ == "__main__":
    unittest.main()
