# SPDX-License-Identifier: Apache-2.0
"""Images and sequences of any size through `starling serve`, as it is by default: one plan computes all of them, as NumPy does. Skipped
where `starling` is not built."""

import json
import os
import unittest

import numpy as np
import onnx_file as onnx
import starling
from world import RealRuntime

F32 = 1
HIDDEN = 16
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 100, 129)


def weights(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]), dtype=np.float32)


FIRST, SECOND, DEPTHWISE = weights(16, 3, 3, 3), weights(16, 16, 3, 3), weights(16, 1, 3, 3)
INPUT, STATE, BIAS = weights(1, 4 * HIDDEN, 8), weights(1, 4 * HIDDEN, HIDDEN), weights(1, 8 * HIDDEN)


def image_model():
    """Two convolutions, the second with what the first has made beside it; a depthwise one, a pool."""
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        onnx.node("Conv", ["x", "first"], ["a"], **same),
        onnx.node("Relu", ["a"], ["b"]),
        onnx.node("Conv", ["b", "second"], ["c"], **same),
        onnx.node("Add", ["c", "b"], ["d"]),
        onnx.node("Conv", ["d", "depthwise"], ["e"], group=16, **same),
        onnx.node("MaxPool", ["e"], ["y"], kernel_shape=[3, 3], **same),
    ]
    constants = [onnx.constant(name, F32, array) for name, array in (("first", FIRST), ("second", SECOND), ("depthwise", DEPTHWISE))]
    return onnx.model(nodes, [onnx.port("x", F32, ("N", 3, "H", "W"))], [onnx.port("y", F32, ("N", 16, "H", "W"))], constants)


def windows(x, fill=0.0):
    """[N, C, H, W, 3, 3]"""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))


def image_answer(x):
    if not x.size:
        return np.zeros((x.shape[0], 16, *x.shape[2:]))
    b = np.maximum(np.einsum("nchwij,fcij->nfhw", windows(x), FIRST), 0)
    d = np.einsum("nchwij,fcij->nfhw", windows(b), SECOND) + b
    return windows(np.einsum("nchwij,cij->nchw", windows(d), DEPTHWISE[:, 0]), -np.inf).max((4, 5))


def sequence_model():
    nodes = [onnx.node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=HIDDEN)]
    constants = [onnx.constant(name, F32, array) for name, array in (("w", INPUT), ("r", STATE), ("b", BIAS))]
    return onnx.model(nodes, [onnx.port("x", F32, ("T", "N", 8))], [onnx.port("y", F32, ("T", 1, "N", HIDDEN))], constants)


def sequence_answer(x):
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    state, cell, steps = np.zeros((x.shape[1], HIDDEN)), np.zeros((x.shape[1], HIDDEN)), []
    for row in x:
        i, o, f, c = np.split(row @ INPUT[0].T + state @ STATE[0].T + BIAS[0, : 4 * HIDDEN] + BIAS[0, 4 * HIDDEN :], 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
        state = sigmoid(o) * np.tanh(cell)
        steps.append(state)
    return np.stack(steps)[:, None] if steps else np.zeros((0, 1, x.shape[1], HIDDEN))


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "starling is not built")
class Sizes(unittest.TestCase):
    def served(self, models):
        runtime = RealRuntime(models)
        self.addCleanup(runtime.stop)
        client = runtime.connect()
        self.addCleanup(client.close)
        for name in models:
            while f'model-ready model="{name}[any]"' not in runtime.said():
                self.assertIsNone(runtime.process.poll(), runtime.said())
        return runtime, client

    def plans(self, runtime):
        return {model["name"] for model in json.loads(runtime.stats("--json"))["models"]} - {"(others)"}

    def check(self, client, name, x, wanted):
        got = client.infer(name, x)
        self.assertEqual(got.shape, wanted.shape)
        if wanted.size:
            np.testing.assert_allclose(got, wanted, atol=2e-5 * max(1, np.abs(wanted).max()), err_msg=str(x.shape))

    def test_images_and_sequences_of_any_size_are_computed_by_one_plan_each(self):
        runtime, client = self.served({"image": image_model(), "sequence": sequence_model()})
        random = np.random.default_rng(3)
        for i, height in enumerate(SIZES):
            x = random.standard_normal((i % 4, 3, max(1, height), max(1, SIZES[i * 7 % len(SIZES)]))).astype(np.float32)
            self.check(client, "image", x, image_answer(x))
            x = random.standard_normal((SIZES[i], (i + 1) % 5, 8)).astype(np.float32)
            self.check(client, "sequence", x, sequence_answer(x))
        self.assertEqual(self.plans(runtime), {"image", "image[any]", "sequence", "sequence[any]"})

    def requests(self, runtime):
        """Of the image model and its plans, which count what they could not answer as well."""
        return sum(model["requests"] for model in json.loads(runtime.stats("--json"))["models"] if model["name"].startswith("image"))

    def test_no_request_of_about_the_same_size_is_computed_a_second_time_for_the_room_that_its_output_wants(self):
        runtime, client = self.served({"image": image_model()})
        wants = [(61, 64), (64, 64), (40, 64), (64, 50), (64, 70), (32, 32)]  # rows and columns; 16 channels
        for i, (height, width) in enumerate(wants):
            x = np.ones((1, 3, height, width), np.float32)
            self.check(client, "image", x, image_answer(x))
            if not i:
                first = self.requests(runtime)
        self.assertEqual(first, 2, "the room for an answer of more than 64 KiB is learned")
        self.assertEqual(self.requests(runtime), first + len(wants) - 1)

    def test_a_size_that_a_window_does_not_fit_is_refused_with_node_and_value_and_the_next_is_computed(self):
        _, client = self.served({"image": image_model()})
        with self.assertRaisesRegex(starling.InvalidRequest, r'node "\w*" \(Conv\): Conv: input 0 has 2 elements with padding'):
            client.infer("image", np.zeros((1, 3, 0, 5), np.float32))
        x = np.ones((1, 3, 1, 1), np.float32)
        self.check(client, "image", x, image_answer(x))


if __name__ == "__main__":
    unittest.main()
