# SPDX-License-Identifier: Apache-2.0
"""The Python client against the real runtime and the models of client/examples/digits. Skipped where `starling` is not built."""

import asyncio
import os
import tempfile
import unittest

import numpy as np
from world import RealRuntime

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "client", "examples", "digits")

REQUESTS_MAX = 50000


def load(name, *shape):
    return np.fromfile(os.path.join(DIGITS, name), np.float32).reshape(shape)


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Digits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = RealRuntime(os.path.join(DIGITS, "models"))
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)
        cls.images = cls.client.array(load("test-images.f32", -1, 1, 8, 8))

    def test_ensemble_agrees_with_onnx_runtime(self):
        probabilities = self.client.infer("digits", self.images)
        np.testing.assert_allclose(probabilities, load("expected/digits.f32", -1, 10), atol=1e-5)

    def test_requests_of_any_size_give_the_same_answers(self):
        expected = load("expected/lenet.f32", -1, 10)
        futures, start = [], 0
        for size in [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144] * 2:
            part = slice(start, start + size)
            futures.append((part, self.client.submit("lenet", self.images[part])))
            start = (start + size) % 400
        for part, future in futures:
            np.testing.assert_allclose(future.result(60), expected[part], atol=1e-5)

    def test_event_loop(self):
        async def main():
            parts = [slice(i, i + 7) for i in range(0, 560, 7)]
            results = await asyncio.gather(*(self.client.infer_async("mlp", self.images[part]) for part in parts))
            expected = load("expected/mlp.f32", -1, 10)
            for part, result in zip(parts, results):
                np.testing.assert_allclose(result, expected[part], atol=1e-5)

        asyncio.run(main())

    def load_again(self, member):
        """A load times a sample: where others had the core meanwhile the network is the workers'."""
        with self.runtime.connect(role="admin") as admin:
            admin.unload("digits")
            admin.unload(member)
            admin.load(member)
            admin.load("digits")

    def test_a_small_network_is_computed_by_the_dispatcher_itself(self):
        """In the default configuration. The first requests may be a worker's: what they take is learned."""
        expected = load("expected/mlp.f32", -1, 10)
        for i in range(REQUESTS_MAX):
            row = i % len(expected)
            result = self.client.infer("mlp", self.images[row : row + 1])
            np.testing.assert_allclose(result, expected[row : row + 1], atol=1e-5)
            if i % 500 == 499 and self.runtime.batches("mlp", "inline") > 0:
                return
            if i % 5000 == 4999:
                self.load_again("mlp")
        self.fail(f"after {REQUESTS_MAX} requests: {self.runtime.said()}")


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class WithoutInline(unittest.TestCase):
    def test_inline_us_of_0_leaves_all_to_workers(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("threads: {inline_us: 0}\n")
            file.flush()
            runtime = RealRuntime(os.path.join(DIGITS, "models"), "--config", file.name)
            self.addCleanup(runtime.stop)
            with runtime.connect() as client:
                images = load("test-images.f32", -1, 1, 8, 8)
                for row in range(500):
                    client.infer("mlp", images[row : row + 1])
                self.assertEqual(runtime.batches("mlp", "inline"), 0)
                self.assertGreater(runtime.batches("mlp", "thread"), 0)


if __name__ == "__main__":
    unittest.main()
