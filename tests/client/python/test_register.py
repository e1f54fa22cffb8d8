# SPDX-License-Identifier: Apache-2.0
"""`starling register`, then `starling serve` of what it wrote, and queries: accuracies against predictions of another runtime, adapters against NumPy."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import onnx_file as onnx
from test_digits import DIGITS, load
from test_models import F32
from world import RealRuntime

CALIBRATION = 149  # a quarter of 599


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def resized(x, axis, size):
    """Linear between the centres of pixels, along one axis."""
    n = x.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * n / size - 0.5, 0, n - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, n - 1)
    share = (at - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share


def flat_product(shape, weights, soft=False):
    """Of all numbers of an image."""
    nodes = [onnx.node("Flatten", ["x"], ["f"]), onnx.node("MatMul", ["f", "w"], ["l" if soft else "y"])]
    if soft:
        nodes.append(onnx.node("Softmax", ["l"], ["y"]))
    return onnx.model(
        nodes,
        [onnx.port("x", F32, ("N", *shape))],
        [onnx.port("y", F32, ("N", weights.shape[1]))],
        [onnx.constant("w", F32, weights)],
    )


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Register(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="starling-register-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.repository = self.path("models")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, model):
        with open(self.path(name + ".onnx"), "wb") as file:
            file.write(model)
        return file.name

    def register(self, *arguments, wrong=None):
        """On one core, so that no other is waited for. What it says on stderr; @wrong: what it must say, and nothing else."""
        core = min(os.sched_getaffinity(0))
        done = subprocess.run(
            [os.environ["STARLING_COMMAND"], "register", "--batches", "1,4", "--seconds", "0.02", *arguments],
            env=dict(os.environ, XDG_DATA_HOME=self.path("data"), XDG_CACHE_HOME=self.path("cache")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        if wrong is not None:
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr.splitlines()[-1], wrong)
        else:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def record(self, task):
        with open(self.path("models", ".register", task, "record.json")) as file:
            return json.load(file)

    def task(self, task):
        """{variant: (accuracy, cost)} as its config.yaml has them."""
        with open(self.path("models", task, "config.yaml")) as file:
            text = file.read()
        lists = [re.search(rf"^  {key}: \[(.*)\]$", text, re.M)[1].split(", ") for key in ("variants", "accuracy", "cost")]
        return {name.strip('"'): (float(accuracy), float(cost)) for name, accuracy, cost in zip(*lists)}

    def serve(self, variants):
        runtime = RealRuntime(self.repository)
        self.addCleanup(runtime.stop)
        client = runtime.connect()
        self.addCleanup(client.close)
        for name in variants:  # one that is loaded already is refused, and that is fine
            subprocess.run(
                [os.environ["STARLING_COMMAND"], "load", "--name", os.path.join(runtime.folder, runtime.name + ".sock"), name],
                stderr=subprocess.DEVNULL,
            )
        return client

    def test_digits_are_registered_served_and_asked_by_accuracy(self):
        models = {name: os.path.join(DIGITS, "models", name, "1", "model.onnx") for name in ("mlp", "lenet", "densenet")}
        data = ["--task", "read-digits", "--validation", os.path.join(DIGITS, "test-images.f32"), "--into", self.repository]
        data += ["--labels", os.path.join(DIGITS, "test-labels.u8"), "--kinds", "fp32,int8"]
        self.register(*models.values(), *data)
        labels = np.fromfile(os.path.join(DIGITS, "test-labels.u8"), np.uint8)[CALIBRATION:]
        record = self.record("read-digits")
        self.assertEqual((record["metric"], record["samples"], record["calibration"]), ("top_1", 599, CALIBRATION))
        found = {variant["name"]: variant for variant in record["variants"]}
        self.assertEqual(len(found), 6)
        for name in models:
            right = int((load(f"expected/{name}.f32", -1, 10)[CALIBRATION:].argmax(1) == labels).sum())
            variant = found[name + "-fp32"]
            self.assertEqual((variant["right"], variant["samples"], variant["origin"]), (right, 450, "measured"))
            self.assertAlmostEqual(variant["accuracy"], right / 450)
            self.assertTrue(variant["low"] < variant["accuracy"] < variant["high"] < 1)
            self.assertEqual([point["batch"] for point in variant["profile"]], [1, 4])
        task = self.task("read-digits")
        self.assertEqual(set(task), {name for name, variant in found.items() if not variant["left_out"]})
        for name, variant in found.items():
            if variant["left_out"] and name not in task:
                self.assertFalse(os.path.exists(os.path.join(self.repository, name)))
                self.assertIn(variant["left_out"].split()[0], task, "one that is left out names a variant")

        client = self.serve(task)
        images = load("test-images.f32", -1, 1, 8, 8)
        best = max(accuracy for accuracy, _ in task.values())
        least = (best + min(accuracy for accuracy, _ in task.values())) / 2
        cheapest = min(cost for accuracy, cost in task.values() if accuracy >= least)
        query = client.query("read-digits", accuracy=least, cost=1.1 * cheapest)
        future = client.submit(query, images[CALIBRATION:])
        classes = future.result(60).argmax(1)
        accuracy, cost = task[future.answer.variant]
        self.assertGreaterEqual(accuracy, least)
        self.assertLessEqual(cost, 1.1 * cheapest + 1e-9)
        self.assertAlmostEqual((classes == labels).mean(), accuracy, delta=1.5 / 450)
        future = client.submit(client.query("read-digits"), images[:1])
        future.result(60)
        self.assertAlmostEqual(task[future.answer.variant][0], best)

        # The same again measures nothing, and what was measured stands.
        said = self.register(*models.values(), *data)
        self.assertEqual(said.count("known already"), sum("accuracy" in variant for variant in found.values()))
        self.assertEqual(self.record("read-digits"), record)

        # A budget that is over at once has what is known, and says what is not.
        said = self.register(*models.values(), *data, "--budget", "0", "--max-loss", "0.5", wrong="no variant was measured within the budget")

    def test_adapters_give_what_numpy_does(self):
        random = np.random.default_rng(40)
        x = random.random((40, 3, 8, 8), np.float32)
        np.save(self.path("x.npy"), x)
        weights = {
            "first": random.standard_normal((192, 4), np.float32),
            "last": random.standard_normal((12 * 10 * 3, 5), np.float32) / 4,
            "small": random.standard_normal((3 * 5 * 5, 4), np.float32),
        }
        models = [
            self.write("first", flat_product((3, 8, 8), weights["first"], soft=True)),
            self.write("last", flat_product((12, 10, 3), weights["last"])),
            self.write("small", flat_product((3, 5, 5), weights["small"])),
        ]
        scale, offset = np.array([2, 0.5, -1], np.float32), np.float32(0.25)
        wishes = ["--scale", "last=2,0.5,-1", "--offset", "last=0.25", "--kinds", "fp32"]
        self.register(*models, "--task", "guess", "--validation", self.path("x.npy"), "--into", self.repository, *wishes)
        big = resized(resized(x * scale.reshape(1, 3, 1, 1) + offset, 2, 12), 3, 10).transpose(0, 2, 3, 1)
        expected = {
            "first": softmax(x.reshape(40, -1) @ weights["first"]),
            "last": softmax((big.reshape(40, -1) @ weights["last"])[:, 1:]),
            "small": softmax(resized(resized(x, 2, 5), 3, 5).reshape(40, -1) @ weights["small"]),
        }
        record = self.record("guess")
        self.assertEqual((record["metric"], record["reference"]), ("agreement", "first"))
        classes = {name: y[10:].argmax(1) for name, y in expected.items()}
        adapters = {"first": "", "last": "scale, offset, Resize 8x8 -> 12x10, Transpose NCHW -> NHWC, Slice 5 -> 4 classes, Softmax"}
        adapters["small"] = "Resize 8x8 -> 5x5, Softmax"
        for variant in record["variants"]:
            name = variant["network"]
            self.assertEqual((variant["adapter"], variant["origin"]), (adapters[name], "agreement"))
            self.assertEqual(variant["right"], int((classes[name] == classes["first"]).sum()))
        for name in expected:  # also what another one dominates
            os.makedirs(os.path.join(self.repository, "all", name, "1"))
            made = os.path.join(self.repository, ".register", "guess", name + "-fp32.onnx")
            shutil.copy(made, os.path.join(self.repository, "all", name, "1", "model.onnx"))
        self.repository = os.path.join(self.repository, "all")
        client = self.serve([])
        for name, y in expected.items():
            np.testing.assert_allclose(client.infer(name, x), y, rtol=2e-4, atol=2e-6)

    def test_what_cannot_be_adapted_is_refused_with_port_value_and_limit(self):
        random = np.random.default_rng(41)
        np.save(self.path("x.npy"), random.random((20, 3, 8, 8), np.float32))
        first = self.write("first", flat_product((3, 8, 8), random.standard_normal((192, 4), np.float32), soft=True))
        raw = self.write("raw", flat_product((3, 8, 8), random.standard_normal((192, 4), np.float32)))
        common = ["--task", "guess", "--validation", self.path("x.npy"), "--into", self.repository, "--kinds", "fp32"]

        def refused(wrong, shape, classes, *models):
            rows = int(np.prod(shape))
            other = self.write("other", flat_product(shape, random.standard_normal((rows, classes), np.float32)))
            self.register(*(models or (first, other)), *common, wrong=wrong)

        refused(r'other: input "x" is float32 \[N,1,8,8\], the task\'s is float32 \[N,3,8,8\]: .*channels', (1, 8, 8), 4)
        refused(r'other: output "y" is float32 \[N,7\], the task\'s is float32 \[N,4\]: one class more', (3, 8, 8), 7)
        refused(r'other: output "y" is float32 \[N,3\]', (3, 8, 8), 3)
        refused(r'other: input "x" is float32 \[N,192\].*4 dimensions', (192,), 4)
        refused(r'first: output "y" is of probabilities, the task\'s of logits', (3, 8, 8), 4, raw, first)
        common += ["--scale", "raw=1,2"]
        self.register(first, raw, *common, wrong=r'raw: input "x": 2 numbers of scale for 3 channels')
        self.assertEqual(os.listdir(self.repository), [".register"], "nothing is served of what was refused")


if __name__ == "__main__":
    unittest.main()
