# SPDX-License-Identifier: Apache-2.0
"""Images and sequences of any size through `starling serve`, as it is by default: one plan computes all of them, as NumPy does. Skipped
where `starling` is not built."""

import json
import os
import signal
import subprocess
import time
import unittest

import numpy as np
import onnx_file as onnx
import starling
from world import LIMIT, RealRuntime

F32 = 1
HIDDEN = 16
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 100, 129)


def weights(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]), dtype=np.float32)


FIRST, SECOND, DEPTHWISE = weights(16, 3, 3, 3), weights(16, 16, 3, 3), weights(16, 1, 3, 3)
OUT, WIDE = weights(64, 64), weights(64, 1 << 14)
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


def attention_model():
    """Products of what the request brings by itself: of each size a kernel of its own."""
    nodes = [
        onnx.node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        onnx.node("MatMul", ["x", "t"], ["scores"]),
        onnx.node("Softmax", ["scores"], ["p"], axis=-1),
        onnx.node("MatMul", ["p", "x"], ["seen"]),
        onnx.node("MatMul", ["seen", "out"], ["y"]),
    ]
    constants = [onnx.constant("out", F32, OUT)]
    return onnx.model(nodes, [onnx.port("x", F32, ("N", "L", 64))], [onnx.port("y", F32, ("N", "L", 64))], constants)


def attention_answer(x):
    scores = np.exp(x @ x.transpose(0, 2, 1) - (x @ x.transpose(0, 2, 1)).max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True) @ x @ OUT


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
    configuration = None

    def served(self, models):
        runtime = RealRuntime(models, configuration=self.configuration)
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

    def processes(self, runtime):
        """Those that compute."""
        return [runtime.process.pid]

    def anonymous_bytes(self, runtime):
        total = 0
        for pid in self.processes(runtime):
            with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
                total += next(int(line.split()[1]) * 1024 for line in file if line.startswith("Anonymous:"))
        return total

    def ledger(self, runtime):
        return {row["name"]: row["bytes"] for row in json.loads(runtime.stats("--json"))["memory"]}

    def workers(self, runtime):
        """What `starling models --verbose` says of the workers of each model."""
        said = subprocess.run(
            [os.environ["STARLING_COMMAND"], "models", "--name", runtime.name, "--verbose", "--json"],
            env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
            stdout=subprocess.PIPE,
            check=True,
        )
        return {model["name"]: model["workers"] for model in json.loads(said.stdout)}

    def check_packed(self, runtime, before):
        """A few forms, once for all workers; what the ledger says is what they show."""
        shown = {name: max((w["packed_bytes"] for w in workers), default=0) for name, workers in self.workers(runtime).items()}
        packed = self.ledger(runtime)["packed"]
        self.assertEqual(packed, sum(bytes for name, bytes in shown.items() if name.endswith("[any]")))
        self.assertGreaterEqual(packed, OUT.nbytes)
        self.assertLess(packed, 8 * (OUT.nbytes + FIRST.nbytes + SECOND.nbytes + DEPTHWISE.nbytes))
        self.assertGreaterEqual(packed, before["packed"])

    def test_five_hundred_sizes_take_no_more_memory_than_the_largest_and_some_kernels(self):
        runtime, client = self.served({"image": image_model(), "attention": attention_model()})
        random = np.random.default_rng(4)
        sizes = [(int(n) % 23 + 40, int(n) // 23 + 40) for n in random.permutation(500)]
        feeds = {
            "image": lambda i: random.standard_normal((1, 3, *sizes[i])).astype(np.float32),
            "attention": lambda i: random.standard_normal((1, i + 20, 64)).astype(np.float32),
        }
        answers = {"image": image_answer, "attention": attention_answer}
        for _ in range(3):  # the largest, so that memory of one run is there
            client.infer("image", np.zeros((1, 3, 63, 63), np.float32))
            client.infer("attention", np.zeros((1, 520, 64), np.float32))
        before = self.anonymous_bytes(runtime)
        ledger = self.ledger(runtime)
        for i in range(500):
            for name, feed in feeds.items():
                x = feed(i)
                self.check(client, name, x, answers[name](x)) if i % 50 == 0 else client.infer(name, x)
        self.assertLess(self.anonymous_bytes(runtime) - before, 64 << 20)
        self.check_packed(runtime, ledger)

    def test_a_size_that_a_window_does_not_fit_is_refused_with_node_and_value_and_the_next_is_computed(self):
        _, client = self.served({"image": image_model()})
        with self.assertRaisesRegex(starling.InvalidRequest, r'node "\w*" \(Conv\): Conv: input 0 has 2 elements with padding'):
            client.infer("image", np.zeros((1, 3, 0, 5), np.float32))
        x = np.ones((1, 3, 1, 1), np.float32)
        self.check(client, "image", x, image_answer(x))


def wide_model():
    """Of little that a run makes beside large weights: y = the sum of each row of x [N, L, 64] times them."""
    nodes = [onnx.node("MatMul", ["x", "wide"], ["rows"]), onnx.node("ReduceSum", ["rows"], ["y"], keepdims=0)]
    constants = [onnx.constant("wide", F32, WIDE)]
    return onnx.model(nodes, [onnx.port("x", F32, ("N", "L", 64))], [onnx.port("y", F32, ())], constants)


class IsolatedSizes(Sizes):
    """The same, computed by processes of their own: each binds sizes by itself."""

    configuration = "model_defaults: {isolation: process}"

    def processes(self, runtime):
        """The workers; those that compile are children of the runtime as well."""
        pids = []
        with open(f"/proc/{runtime.process.pid}/task/{runtime.process.pid}/children", encoding="utf-8") as children:
            for pid in children.read().split():
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    pids += [int(pid)] if file.read().split(b"\0")[1:2] == [b"worker"] else []
        return pids

    def check_packed(self, runtime, before):
        """Each process has its own, and counts it with what its runs make."""
        self.assertEqual(self.ledger(runtime)["packed"], 0)

    def test_what_a_process_packs_is_promised(self):
        runtime, client = self.served({"wide": {"1/model.onnx": wide_model(), "config.yaml": b"instances: 1\n"}})
        for i in range(64):
            x = np.ones((1, i % 8 + 1, 64), np.float32)
            np.testing.assert_allclose(client.infer("wide", x), (i % 8 + 1) * WIDE.sum(dtype=np.float64), rtol=1e-3)
        (worker,) = self.workers(runtime)["wide[any]"]
        self.assertGreaterEqual(worker["dynamic_used_bytes"], WIDE.nbytes + (64 << 10))
        self.assertGreaterEqual(worker["dynamic_bytes"], worker["dynamic_used_bytes"])
        self.assertGreaterEqual(self.ledger(runtime)["dynamic"], worker["dynamic_bytes"])

    def test_a_process_answers_as_a_thread_does(self):
        configured = {"1/model.onnx": attention_model(), "config.yaml": b"isolation: none\n"}
        runtime, client = self.served({"process": attention_model(), "thread": configured})
        random = np.random.default_rng(6)
        for size in random.integers(0, 200, 30):
            x = random.standard_normal((size % 3 + 1, size, 64)).astype(np.float32)
            wanted = attention_answer(x) if size else np.zeros_like(x)
            for name in ("process", "thread"):
                self.check(client, name, x, wanted)
        self.assertEqual(self.plans(runtime), {"process", "process[any]", "thread", "thread[any]"})
        self.assertGreater(runtime.batches("process[any]", "process"), 0)
        self.assertEqual(runtime.batches("thread[any]", "process"), 0)

    def burst(self, runtime, client, feeds, rooms):
        """Requests that all wait before the first is computed."""
        pids = self.processes(runtime)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        futures = [client.submit("attention", x, outputs={"y": room}) for x, room in zip(feeds, rooms, strict=True)]
        time.sleep(0.02)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        for x, future in zip(feeds, futures, strict=True):
            np.testing.assert_allclose(future.result(LIMIT), attention_answer(x), atol=1e-4)

    def test_requests_of_one_size_are_computed_together_as_far_as_their_outputs_have_room(self):
        config = b"instances: 1\ndynamic_bytes_max: 4 MiB\n"
        runtime, client = self.served({"attention": {"1/model.onnx": attention_model(), "config.yaml": config}})
        random = np.random.default_rng(7)
        for size in range(1, 30):  # what jobs take is learned
            client.infer("attention", np.ones((2, size, 64), np.float32))
        for rows in (8, 2048):  # of the rooms, each of 2 MiB at last
            rooms = [client.empty((4, rows, 64)) for _ in range(8)]
            before, sizes = runtime.batches("attention[any]", "process"), range(rows // 100 + 2, rows // 100 + 8)
            for size in sizes:
                feeds = [random.standard_normal((i % 3 + 1, size, 64)).astype(np.float32) for i in range(8)]
                self.burst(runtime, client, feeds, rooms)
            self.assertLess(runtime.batches("attention[any]", "process") - before, 8 * len(sizes))
        self.assertEqual(self.plans(runtime), {"attention", "attention[any]"})

    def test_a_request_whose_process_is_killed_ends_with_that_and_the_next_size_is_computed(self):
        runtime, client = self.served({"attention": {"1/model.onnx": attention_model(), "config.yaml": b"instances: 1\n"}})
        causes, size = [], 1200
        until = time.monotonic() + LIMIT
        while not causes:  # what it had not begun is computed by the next one
            self.assertLess(time.monotonic(), until, runtime.said())
            size += 1
            future = client.submit("attention", np.ones((2, size, 64), np.float32))
            time.sleep(0.005)
            for pid in self.processes(runtime):
                os.kill(pid, signal.SIGKILL)
            try:
                future.result(LIMIT)
            except starling.ModelFailed as failed:
                causes.append(str(failed))
            x = np.ones((2, size - 1000, 64), np.float32)
            self.check(client, "attention", x, attention_answer(x))
            self.assertEqual(self.plans(runtime), {"attention", "attention[any]"})
        self.assertIn("its process was killed by signal 9 (Killed)", causes[0])


if __name__ == "__main__":
    unittest.main()
