# SPDX-License-Identifier: Apache-2.0
"""What may be given to a request and asked of it: types, tensors of other packages, empty batches, names of outputs, and what objects say."""

import asyncio
import pickle
import sys
import tracemalloc
import unittest
import unittest.mock

import numpy as np
import starling
from starling import arena
from world import LIMIT, WorldCase, counting


class Tensor:
    """Of a package of its own, that shows its memory through DLPack alone."""

    def __init__(self, array, device=(1, 0), error=None):
        self.array, self.device, self.error = array, device, error

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        if self.error:
            raise self.error
        return self.array.__dlpack__()


class Torch:
    """As much of PyTorch as the client may meet: a module with types, tensors that NumPy and DLPack refuse as torch 2 does."""

    bfloat16, int16, float32 = object(), object(), object()

    class Tensor:
        def __init__(self, array, dtype, requires_grad=False, device=(1, 0)):
            self.array, self.dtype, self.requires_grad, self.device = array, dtype, requires_grad, device
            self.negated = False  # whose memory has the other sign

        def is_neg(self):
            return self.negated

        def resolve_neg(self):
            return Torch.Tensor(-self.array, self.dtype)

        def detach(self):
            return Torch.Tensor(self.array, self.dtype)

        def view(self, dtype):
            return Torch.Tensor(self.array, dtype)  # of integers, which require nothing

        def __dlpack_device__(self):
            if self.device is None:
                raise ValueError("Unknown device type meta for Dlpack")
            return self.device

        def __dlpack__(self, **_):
            if self.requires_grad:
                raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
            if self.dtype is Torch.bfloat16:
                raise BufferError("Unsupported dtype in DLTensor.")
            return self.array.__dlpack__()

        def __array__(self, dtype=None, copy=None):
            if self.requires_grad:
                raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
            if self.dtype is Torch.bfloat16:
                raise TypeError("Got unsupported ScalarType BFloat16")
            return self.array


class Arrayish:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Values(WorldCase):
    def ways(self):
        yield self.client.infer
        yield lambda *request, **options: self.client.submit(*request, **options).result(LIMIT)
        yield lambda *request, **options: asyncio.run(self.client.infer_async(*request, **options))

    def gives(self, x, expected, model="echo"):
        for way in self.ways():
            result = way(model, x)
            self.assertEqual(result.dtype, np.float32)
            np.testing.assert_array_equal(result, expected)

    def refuses(self, x, text, model="echo"):
        for way in self.ways():
            with self.assertRaisesRegex(starling.InvalidRequest, text):
                way(model, x)

    def ids(self, x):
        return self.client.infer("pair", [counting(len(x), 2), x])["ids_out"]

    def test_the_same_kind_is_converted(self):
        for dtype in ("f2", ">f2", "f8", ">f8", ">f4", "i1", "i4", ">i4", "u8", "?"):
            x = counting(5).astype(dtype)
            with self.subTest(dtype=dtype):
                self.gives(x, x.astype(np.float32))
        kind = self.client.model("pair").inputs[1].dtype
        self.assertEqual(kind.kind, "i")
        for dtype in ("i1", "i2", "i4", ">i8", "u1", "?"):
            np.testing.assert_array_equal(self.ids(np.ones((5, 3), dtype)), np.ones((5, 3), kind))

    def test_another_kind_is_refused_with_the_call_that_converts(self):
        self.refuses(counting(5).astype(np.complex64), r"wants float32, got complex64: x\.astype\(np\.float32\) makes it one")
        self.refuses(counting(5).astype(object), "wants float32, got object")
        self.refuses("a text", "wants float32, got <U6")
        with self.assertRaisesRegex(starling.InvalidRequest, r'model "pair": input "ids" wants int\d+, got float32: x\.astype\(np\.int\d+\)'):
            self.ids(np.ones((5, 3), np.float32))

    def test_python_numbers_have_no_width(self):
        self.gives([[1, 2, 3, 4]], [[1, 2, 3, 4]])
        self.gives([[1.5, 2, 3, 4]], [[1.5, 2, 3, 4]])
        np.testing.assert_array_equal(self.ids([[1, 2, 3]]), [[1, 2, 3]])
        with self.assertRaisesRegex(starling.InvalidRequest, "got float64"):
            self.ids([[1.5, 2, 3]])
        self.refuses([[1, 2, 3, 4], [1]], 'input "x" is no array: ')

    def test_integers_that_do_not_fit_are_named(self):
        dtype = self.client.model("pair").inputs[1].dtype
        limits = np.iinfo(dtype)
        with self.assertRaisesRegex(starling.InvalidRequest, f"has the value {limits.max + 1}, {dtype} goes from {limits.min} to {limits.max}"):
            self.ids(np.full((1, 3), limits.max + 1, np.uint64))

    def test_other_packages_share_their_memory(self):
        self.gives(Tensor(counting(5)), counting(5))
        self.gives(Tensor(counting(4, 5).T), counting(4, 5).T)
        self.gives(Tensor(counting(5).astype(np.float64)), counting(5))
        self.gives(Arrayish(counting(5)), counting(5))
        self.gives(memoryview(counting(5)), counting(5))
        self.refuses(Tensor(counting(5), (2, 1)), r'input "x" lies on cuda:1, wants memory of the host: x\.cpu\(\)')
        self.refuses(Tensor(counting(5), error=BufferError("it needs gradients.")), r"it needs gradients; x\.detach\(\) of what needs")

    def test_tensors_of_torch_are_read_as_what_they_are(self):
        bits = np.array([[0x3F80, 0x4000, 0x4040, 0xBF80]], np.uint16)
        with unittest.mock.patch.dict(sys.modules, torch=Torch):
            self.gives(Torch.Tensor(bits, Torch.bfloat16), [[1, 2, 3, -1]])
            self.gives(Torch.Tensor(counting(5), Torch.float32), counting(5))
            other = Torch.Tensor(counting(5), Torch.float32)
            other.negated = True
            self.gives(other, -counting(5))
            for dtype, array in ((Torch.bfloat16, bits), (Torch.float32, counting(5))):
                self.refuses(Torch.Tensor(array, dtype, True), r'input "x" cannot be read through DLPack: .* gradients?.*; x\.detach\(\)')
            self.refuses(Torch.Tensor(bits, Torch.float32, device=None), "lies on Unknown device type meta.*, wants memory of the host")
            copy = self.client.array(Torch.Tensor(bits, Torch.bfloat16))
            self.assertEqual(copy.dtype, arena.BFLOAT16)
            np.testing.assert_array_equal(copy.view(np.uint16), bits)

    def test_what_suits_is_copied_into_the_arena_and_nowhere_else(self):
        x = counting(1024)  # the most that the model takes
        arena_array = self.client.array(x)
        for value in (x, Tensor(x), Arrayish(x), memoryview(x), arena_array):
            self.client.infer("echo", value)
            tracemalloc.start()
            y = self.client.infer("echo", value)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            with self.subTest(value=type(value)):
                self.assertLess(peak, x.nbytes)
            del y
        self.runtime.stop()  # while it is in flight an array of the arena has no copy there
        before = self.client.info().arena_used_bytes
        future = self.client.submit("echo", arena_array)
        self.assertLess(self.client.info().arena_used_bytes - before, 1.5 * x.nbytes)
        self.runtime.go_on()
        future.result(LIMIT)

    def test_a_batch_of_none_has_outputs_of_no_rows(self):
        for x in (counting(0), [], self.client.empty((0, 4)), np.zeros((0, 4))):
            for way in self.ways():
                y = way("echo", x)
                self.assertEqual((y.shape, y.dtype), ((0, 4), np.float32))
        for way in self.ways():
            result = way("pair", {"x": counting(0, 2), "ids": []})
            self.assertEqual({name: y.shape[0] for name, y in result.items()}, {"y": 0, "ids_out": 0})
        y = self.client.empty((5, 4))
        self.assertEqual(self.client.infer("echo", counting(0), outputs=y).shape, (0, 4))
        self.assertEqual(self.client.submit("echo", counting(0)).times, (0, 0, 0, 0))
        self.refuses(counting(0, 5), r"wants float32 \[N,4\], got (float32 )?\[0,5\]")
        self.refuses(np.zeros((5, 0), np.float32), r"wants float32 \[N,4\], got (float32 )?\[5,0\]")
        with self.assertRaisesRegex(starling.InvalidRequest, 'input "ids" has 5 samples, others have 0'):
            self.client.infer("pair", [counting(0, 2), np.ones((5, 3), np.int64)])

    def test_outputs_are_chosen_by_name(self):
        x, ids = counting(5, 2), np.arange(15).reshape(5, 3)
        for way in self.ways():
            np.testing.assert_array_equal(way("pair", [x, ids], outputs=["ids_out"]), ids)
            self.assertEqual(list(way("pair", [x, ids], outputs=("ids_out", "y"))), ["ids_out", "y"])
            np.testing.assert_array_equal(way("echo", counting(5), outputs=["y"]), counting(5))
            self.assertEqual(way("pair", [x[:0], ids[:0]], outputs=["ids_out"]).shape, (0, 3))
            with self.assertRaisesRegex(starling.InvalidRequest, 'model "pair", version 1: there is no output "z": outputs are "y", "ids_out"'):
                way("pair", [x, ids], outputs=["y", "z"])

    def test_what_was_not_chosen_keeps_no_memory(self):
        x, ids = self.client.array(counting(500, 2)), self.client.array(np.arange(1500).reshape(500, 3))
        before = self.client.info().arena_used_bytes
        whole = self.client.infer("pair", [x, ids])
        of_all = self.client.info().arena_used_bytes - before
        del whole
        chosen = self.client.infer("pair", [x, ids], outputs=["y"])
        self.assertLess(self.client.info().arena_used_bytes - before, of_all)
        self.assertEqual(chosen.shape, (500, 2))


class Objects(WorldCase):
    def test_objects_say_what_they_are(self):
        future = self.client.submit("echo", counting(1))
        future.result(LIMIT)
        self.assertEqual(repr(future), '<Future of "echo": finished>')
        self.assertRegex(repr(self.client), r"^Client\('/.*s\.sock', role='client'\)$")
        self.assertRegex(repr(self.client.model("echo")), r"^Model\('echo', inputs=\[Port\('x', float32, \(None, 4\)\)\], outputs=")
        with self.connect() as closed:
            pass
        self.assertIn(", closed)", repr(closed))

    def test_what_belongs_to_a_process_is_not_pickled(self):
        for thing, words in (
            (self.client, "a Client cannot be pickled: it is a connection of this process"),
            (self.client.model("echo"), "a Model cannot be pickled: it belongs to a client of this process; pass its name"),
            (self.client.submit("echo", counting(1)), "a Future cannot be pickled"),
        ):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with self.assertRaisesRegex(TypeError, words):
                    pickle.dumps(thing, protocol)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(self.client.array(counting(2)))), counting(2))


class Ends(WorldCase):
    def test_every_call_says_that_the_runtime_is_gone(self):
        model = self.client.model("echo")
        future = self.client.submit("echo", counting(1))
        future.result(LIMIT)
        self.runtime.kill()
        for name, call in (
            ("infer", lambda: self.client.infer("echo", counting(1))),
            ("infer of a Model", lambda: self.client.infer(model, counting(1))),
            ("submit", lambda: self.client.submit("echo", counting(1)).result(LIMIT)),
            ("infer_async", lambda: asyncio.run(self.client.infer_async("echo", counting(1)))),
            ("empty", lambda: self.client.empty(64 << 20)),
            ("model", lambda: self.client.model("pair")),
            ("reconnect", lambda: self.client.reconnect()),
            ("connect", lambda: starling.Client(self.runtime.socket)),
        ):
            with self.subTest(call=name), self.assertRaises(starling.RuntimeGone):
                call()
        self.client.close()
        for name, call in (
            ("infer", lambda: self.client.infer("echo", counting(1))),
            ("submit", lambda: self.client.submit("echo", counting(1))),
            ("infer_async", lambda: asyncio.run(self.client.infer_async("echo", counting(1)))),
            ("empty", lambda: self.client.empty(4)),
            ("reconnect", lambda: self.client.reconnect()),
        ):
            with self.subTest(closed=name), self.assertRaisesRegex(starling.RuntimeGone, "the client is closed"):
                call()
        self.client.close()
        self.runtime.start()


if __name__ == "__main__":
    unittest.main()
