# SPDX-License-Identifier: Apache-2.0
"""Initializers that are inputs too: requests give some, or none, of any model that lists them. Skipped where `starling` is not built."""

import os
import subprocess
import threading
import unittest

import numpy as np
import onnx_file as onnx
import starling
from test_models import BIAS, F32, I64, WEIGHTS, adaptable, optional
from world import RealRuntime

LAYERS, WIDTH = 12, 8
FACTORS = np.random.default_rng(11).standard_normal((LAYERS, WIDTH, WIDTH)).astype(np.float32)
MANY = 1200  # more than a model may have inputs


def layered(listed, ir=8):
    """y = x F0 F1 ...: the factors are initializers, and inputs too where they are listed."""
    names = [f"f{i}" for i in range(LAYERS)]
    values = ["x"] + [f"h{i}" for i in range(LAYERS - 1)] + ["y"]
    return onnx.model(
        [onnx.node("MatMul", [values[i], names[i]], [values[i + 1]]) for i in range(LAYERS)],
        [onnx.port("x", F32, ("N", WIDTH))] + [onnx.port(name, F32, (WIDTH, WIDTH)) for name in names if listed],
        [onnx.port("y", F32, ("N", WIDTH))],
        [onnx.constant(name, F32, factor) for name, factor in zip(names, FACTORS)],
        ir=ir,
    )


def growing():
    """y [N, T, 3] = x w of any length T."""
    return onnx.model(
        [onnx.node("MatMul", ["x", "w"], ["y"])],
        [onnx.port("x", F32, ("N", "T", 3)), onnx.port("w", F32, (3, 3))],
        [onnx.port("y", F32, ("N", "T", 3))],
        [onnx.constant("w", F32, WEIGHTS)],
    )


def summing():
    """y = the sums of x [N, 2, 3] along axes that an initializer says: a request's would decide how many dimensions y has."""
    return onnx.model(
        [onnx.node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        [onnx.port("x", F32, ("N", 2, 3)), onnx.port("axes", I64, (1,))],
        [onnx.port("y", F32, ("N", 3))],
        [onnx.constant("axes", I64, np.array([1], np.int64))],
    )


def misdeclared():
    """y = x c, of which the file says another size than it has: nothing that a request could give."""
    return onnx.model(
        [onnx.node("Mul", ["x", "c"], ["y"])],
        [onnx.port("x", F32, ("N", 2)), onnx.port("c", F32, (2,))],
        [onnx.port("y", F32, ("N", 2))],
        [onnx.constant("c", F32, np.array([3], np.float32))],
    )


def crowded():
    """y = x c0, of more initializers that are listed than a model may have inputs."""
    return onnx.model(
        [onnx.node("Mul", ["x", "c0"], ["y"])],
        [onnx.port("x", F32, ("N", 2))] + [onnx.port(f"c{i}", F32, (1,)) for i in range(MANY)],
        [onnx.port("y", F32, ("N", 2))],
        [onnx.constant(f"c{i}", F32, np.array([3], np.float32)) for i in range(MANY)],
    )


def configured(model, text):
    return {"1/model.onnx": model, "config.yaml": text}


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Optional(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = RealRuntime(
            {
                "lora": adaptable("N"),
                "apart": configured(adaptable("N"), b"isolation: process\n"),
                "fixed": adaptable(1),
                "always": optional(adaptable("N")),
                "off": configured(adaptable("N"), b"optional_inputs: false\n"),
                "reloaded": adaptable("N"),
                "listed": layered(True),
                "plain": layered(False),
                "old": layered(True, ir=3),
                "growing": growing(),
                "summing": summing(),
                "crowded": crowded(),
                "misdeclared": misdeclared(),
            }
        )
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)

    def adapted(self, x, w=WEIGHTS, s=np.float32(2), b=BIAS):
        return s * (x @ w) + b

    def gifts(self, random):
        """What requests give beside x."""
        w, b = random.standard_normal((3, 3), np.float32), random.standard_normal(3, np.float32)
        return [{}, {"w": w}, {"b": b}, {"s": np.float32(-1)}, {"w": w, "s": np.float32(3), "b": b}]

    def served(self):
        return {model.name for model in self.client.models()}

    def test_any_of_them_may_be_given_and_the_constant_stands_for_the_others(self):
        random = np.random.default_rng(1)
        for model, sizes in (("lora", (1, 4, 130, 3)), ("apart", (1, 5)), ("always", (2, 7)), ("fixed", (1,))):
            for samples in sizes:
                x = random.standard_normal((samples, 3), np.float32)
                for given in [*self.gifts(random), {}]:
                    y = self.client.infer(model, {"x": x, **given})
                    np.testing.assert_allclose(y, self.adapted(x, **given), rtol=1e-4, atol=1e-4, err_msg=f"{model} {samples} {sorted(given)}")

    def test_what_is_declared_otherwise_than_it_is_stays_a_constant(self):
        x = np.ones((2, 2), np.float32)
        np.testing.assert_array_equal(self.client.infer("misdeclared", x), 3 * x)
        with self.assertRaises(starling.InvalidRequest):
            self.client.infer("misdeclared", {"x": x, "c": np.ones(1, np.float32)})

    def test_requests_that_give_other_values_or_none_are_in_flight_together(self):
        failures = []

        def ask(model, seed):
            random = np.random.default_rng(seed)
            try:
                with self.runtime.connect() as client:
                    for _ in range(20):
                        asked = []
                        for given in self.gifts(random):
                            x = random.standard_normal((int(random.integers(1, 9)), 3), np.float32)
                            asked.append((x, given, client.submit(model, {"x": x, **given})))
                        for x, given, future in asked:
                            np.testing.assert_allclose(future.result(60), self.adapted(x, **given), rtol=1e-4, atol=1e-4)
            except BaseException as failure:  # noqa: BLE001: told below
                failures.append(failure)

        threads = [threading.Thread(target=ask, args=(model, seed)) for seed in range(3) for model in ("lora", "apart", "always")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(failures)

    def test_the_inputs_say_which_are_optional(self):
        for model in ("lora", "apart", "always", "fixed"):
            ports = self.client.model(model).inputs
            self.assertEqual([(p.name, p.optional) for p in ports], [("x", False), ("w", True), ("s", True), ("b", True)])
            self.assertEqual((ports[1].shape, ports[3].shape), ((3, 3), (3,)))
        names = [p.name for p in self.client.model("listed").inputs]
        self.assertEqual(names, ["x"] + [f"f{i}" for i in range(LAYERS)])

    def test_files_that_had_to_list_all_and_models_that_say_so_have_constants(self):
        for model in ("off", "old", "plain"):
            self.assertEqual([p.name for p in self.client.model(model).inputs], ["x"])

    def test_who_gives_nothing_has_the_plan_of_constants_and_no_other_is_made(self):
        x = np.random.default_rng(2).standard_normal((5, WIDTH), np.float32)
        for _ in range(3):
            wanted = self.client.infer("plain", x)
            for model in ("listed", "old"):
                np.testing.assert_array_equal(self.client.infer(model, x), wanted)
        self.assertNotIn("listed[given]", self.served())
        given = np.eye(WIDTH, dtype=np.float32)
        y = self.client.infer("listed", {"x": x, "f3": given})
        expected = x
        for i, factor in enumerate(FACTORS):
            expected = expected @ (given if i == 3 else factor)
        np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-2)
        self.assertIn("listed[given]", self.served())
        np.testing.assert_array_equal(self.client.infer("listed", x), wanted)

    def test_models_with_open_dimensions_take_them_at_each_size(self):
        random = np.random.default_rng(3)
        for samples, length in ((1, 4), (3, 4), (2, 6), (1, 4)):
            x, w = random.standard_normal((samples, length, 3), np.float32), random.standard_normal((3, 3), np.float32)
            np.testing.assert_allclose(self.client.infer("growing", {"x": x}), x @ WEIGHTS, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(self.client.infer("growing", {"x": x, "w": w}), x @ w, rtol=1e-4, atol=1e-5)

    def test_another_shape_or_type_is_refused_and_the_model_goes_on(self):
        x = np.zeros((2, 3), np.float32)
        for model in ("lora", "always"):
            with self.assertRaisesRegex(starling.InvalidRequest, r'input "w": wants float32 \[3,3\], got float32 \[2,3\]'):
                self.client.infer(model, {"x": x, "w": x})
            with self.assertRaisesRegex(starling.InvalidRequest, 'input "b"'):
                self.client.infer(model, {"x": x, "b": np.array(["a", "b", "c"])})
            with self.assertRaises(starling.InvalidRequest):
                self.client.infer(model, {"w": WEIGHTS})
            np.testing.assert_allclose(self.client.infer(model, {"x": x}), self.adapted(x))

    def test_what_decides_the_shape_of_an_output_is_computed_a_sample_at_a_time_or_refused(self):
        x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        with self.assertRaisesRegex(starling.InvalidRequest, "2 samples, and the model has no batch: a request is 1"):
            self.client.infer("summing", {"x": x, "axes": np.array([1], np.int64)})
        for axis in (1, 2):
            y = self.client.infer("summing", {"x": x[:1], "axes": np.array([axis], np.int64)})
            np.testing.assert_array_equal(y, x[:1].sum(axis=axis))
        np.testing.assert_array_equal(self.client.infer("summing", {"x": x}), x.sum(axis=1))

    def test_of_more_than_a_model_may_have_all_are_constants(self):
        self.assertEqual([p.name for p in self.client.model("crowded").inputs], ["x"])
        np.testing.assert_array_equal(self.client.infer("crowded", np.ones((2, 2), np.float32)), np.full((2, 2), 3))

    def test_a_reload_brings_the_constants_that_are_not_given(self):
        path = os.path.join(self.runtime.folder, "models", "reloaded", "1", "model.onnx")
        x, w = np.eye(3, dtype=np.float32)[:2], np.full((3, 3), 7, np.float32)
        before = adaptable("N")
        np.testing.assert_allclose(self.client.infer("reloaded", {"x": x, "w": w}), self.adapted(x, w))
        for bias in (np.float32([5, 6, 7]), np.float32([-1, 0, 1])):
            with open(path + ".new", "wb") as file:
                file.write(before.replace(BIAS.tobytes(), bias.tobytes()))
            os.rename(path + ".new", path)
            subprocess.run(
                [os.environ["STARLING_COMMAND"], "reload", "--name", self.runtime.name, "reloaded"],
                env=dict(os.environ, STARLING_SOCKET_DIR=self.runtime.folder),
                check=True,
            )
            for _ in range(2):
                np.testing.assert_allclose(self.client.infer("reloaded", {"x": x}), self.adapted(x, b=bias), rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(self.client.infer("reloaded", {"x": x, "w": w}), self.adapted(x, w, b=bias), rtol=1e-4)


if __name__ == "__main__":
    unittest.main()
