# SPDX-License-Identifier: Apache-2.0
"""Models with up to 1,024 inputs and outputs, through `starling serve` and clients without options. Skipped where it is not built."""

import os
import subprocess
import threading
import unittest

import numpy as np
import onnx_file as onnx
import starling
from starling import form
from world import RealRuntime

F32 = 1
WIDTH = 2
LIMIT = 1024
TOTALS = (1, 63, 64, 65, 256, 257, 511, 1023, LIMIT)
APART = b"isolation: process\n"


def splits(total):
    """So many tensors as inputs and outputs: few of either, and half of each."""
    return [(0, 1)] if total == 1 else sorted({(1, total - 1), (total - 1, 1), (total // 2, total - total // 2)})


def group(j, n, m):
    """The inputs of output j."""
    return range(j, n, m) if n > m else [j % n] if n else []


def mixing(n, m, factor=1):
    """y_j [N, 2 k] = factor (j + 1) times its k inputs x_i [N, 2], side by side; each input has one output, or each output one input."""
    nodes = [onnx.node("Concat", [f"x{i}" for i in group(j, n, m)], [f"z{j}"], axis=1) for j in range(m) if n]
    nodes += [onnx.node("Mul", [f"z{j}" if n else "one", f"c{j}"], [f"y{j}"]) for j in range(m)]
    widths = [WIDTH * len(group(j, n, m)) or 1 for j in range(m)]
    return onnx.model(
        nodes,
        [onnx.port(f"x{i}", F32, ("N", WIDTH)) for i in range(n)],
        [onnx.port(f"y{j}", F32, ("N" if n else 1, widths[j])) for j in range(m)],
        [onnx.constant("one", F32, np.ones((1, 1), np.float32))]
        + [onnx.constant(f"c{j}", F32, np.array([factor * (j + 1)], np.float32)) for j in range(m)],
    )


def mixed(inputs, n, m, factor=1):
    """What it answers."""
    return [factor * np.float32(j + 1) * np.concatenate([inputs[i] for i in group(j, n, m)], axis=1) for j in range(m)]


def given(n, samples, seed=0):
    random = np.random.default_rng((n, samples, seed))
    return list(random.integers(-99, 99, (n, samples, WIDTH)).astype(np.float32))


def name_of(n, m, kind="threads"):
    return f"{kind}-{n}-{m}"


def named(inputs):
    return {f"x{i}": array for i, array in enumerate(inputs)}


def side_by_side(arrays):
    """Their shapes, and all their values: a comparison of each would take longer than what is tested."""
    return [array.shape for array in arrays], np.concatenate(arrays, axis=None)


def listed(answer):
    """As a list, of one output and of many."""
    return list(answer.values()) if isinstance(answer, dict) else [answer]


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Ports(unittest.TestCase):
    shapes = [split for total in TOTALS for split in splits(total)]
    apart = [(1023, 1), (1, 1023), (512, 512), (257, 256)]
    refused = [(1024, 1), (1, 1024), (512, 513)]

    @classmethod
    def setUpClass(cls):
        models = {name_of(*split): mixing(*split) for split in cls.shapes + cls.refused}
        for split in cls.apart:
            models[name_of(*split, "apart")] = {"1/model.onnx": mixing(*split), "config.yaml": APART}
        models.update((f"member{i}", mixing(400, 300, i + 1)) for i in range(3))
        models["mean"] = {"config.yaml": b"ensemble: {members: [member0, member1, member2], rule: mean}\n"}
        models["side"] = {"config.yaml": b"ensemble: {members: [member0, member2], rule: none}\n"}
        models["wide"] = {"config.yaml": b"ensemble: {members: [member0, member1, member2], rule: none}\n"}
        models["changing"] = mixing(3, 2)
        cls.runtime = RealRuntime(models)
        cls.addClassCleanup(cls.runtime.stop)
        cls.client = cls.runtime.connect()
        cls.addClassCleanup(cls.client.close)

    def check(self, client, model, n, m, samples=1, seed=0, factor=1):
        inputs = given(n, samples, seed)
        self.compare(client.infer(model, named(inputs)), inputs, n, m, factor)

    def compare(self, answer, inputs, n, m, factor=1):
        shapes, values = side_by_side(listed(answer))
        wanted_shapes, wanted = side_by_side(mixed(inputs, n, m, factor))
        self.assertEqual(shapes, wanted_shapes)
        np.testing.assert_array_equal(values, wanted)

    def test_any_number_up_to_the_limit_is_served_to_a_client_without_options(self):
        for n, m in self.shapes:
            if not n:
                continue
            with self.runtime.connect() as client:
                ports = client.model(name_of(n, m))
                self.assertEqual([p.name for p in ports.inputs], [f"x{i}" for i in range(n)])
                self.assertEqual([p.name for p in ports.outputs], [f"y{j}" for j in range(m)])
                for samples in (1, 3, 130):
                    self.check(client, name_of(n, m), n, m, samples)

    def test_worker_processes_serve_as_many(self):
        for n, m in self.apart:
            for samples in (1, 5, 40):
                self.check(self.client, name_of(n, m, "apart"), n, m, samples)

    def test_one_more_is_refused_with_the_numbers_and_the_limit(self):
        for n, m in self.refused:
            with self.assertRaisesRegex(starling.ModelFailed, f"{n} inputs and {m} outputs, {n + m} together, the limit is {LIMIT}"):
                self.client.model(name_of(n, m))
        with self.assertRaisesRegex(starling.ModelFailed, f"400 inputs and 900 outputs, 1300 together, the limit is {LIMIT}"):
            self.client.model("wide")

    def test_requests_of_several_clients_are_batched_and_no_tensor_is_anothers(self):
        for model, n, m in (
            (name_of(512, 512), 512, 512),
            (name_of(1022, 1), 1022, 1),
            (name_of(1, 1023), 1, 1023),
            (name_of(512, 512, "apart"), 512, 512),
        ):
            failures = []

            def ask(number):
                try:
                    with self.runtime.connect() as client:
                        for turn in range(4):
                            inputs = [given(n, 1 + number % 3, 100 * number + 2 * turn + i) for i in range(2)]
                            futures = [client.submit(model, named(x)) for x in inputs]
                            for x, future in zip(inputs, futures):
                                self.compare(future.result(60), x, n, m)
                except BaseException as failure:  # noqa: BLE001: told below
                    failures.append(failure)

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertFalse(failures, model)

    def test_ensembles_combine_as_many_or_have_them_side_by_side(self):
        for samples in (1, 7):
            inputs = given(400, samples)
            for wanted, array in zip(mixed(inputs, 400, 300, 2), listed(self.client.infer("mean", inputs))):
                np.testing.assert_allclose(array, wanted, rtol=1e-6)
        answer = self.client.infer("side", inputs)
        self.assertEqual(len(answer), 600)
        for member, factor in (("member0", 1), ("member2", 3)):
            for j, wanted in enumerate(mixed(inputs, 400, 300, factor)):
                np.testing.assert_array_equal(answer[f"{member}.y{j}"], wanted)

    def test_a_reload_may_have_any_other_number(self):
        path = os.path.join(self.runtime.folder, "models", "changing", "1", "model.onnx")
        for n, m in ((1000, 24), (2, 1), (1, 1023), (64, 65)):
            with open(path + ".new", "wb") as file:
                file.write(mixing(n, m))
            os.rename(path + ".new", path)
            subprocess.run(
                [os.environ["STARLING_COMMAND"], "reload", "--name", self.runtime.name, "changing"],
                env=dict(os.environ, STARLING_SOCKET_DIR=self.runtime.folder),
                check=True,
            )
            client = self.runtime.connect()
            self.addCleanup(client.close)
            for samples in (1, 9):
                self.check(client, "changing", n, m, samples)
            with open(path + ".new", "wb") as file:
                file.write(mixing(LIMIT, 1))
            os.rename(path + ".new", path)
            refused = subprocess.run(
                [os.environ["STARLING_COMMAND"], "reload", "--name", self.runtime.name, "changing"],
                env=dict(os.environ, STARLING_SOCKET_DIR=self.runtime.folder),
                stderr=subprocess.PIPE,
                text=True,
            )
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("1025 together, the limit is 1024", refused.stderr)
            self.check(client, "changing", n, m)

    def test_outputs_that_are_not_wanted_take_no_arena_and_the_others_are_right(self):
        models = [(name_of(1, 1023), 1, 1023, 1), (name_of(1, 1023, "apart"), 1, 1023, 1), (name_of(512, 512), 512, 512, 1)]
        for model, n, m, factor in [*models, ("mean", 400, 300, 2)]:
            for samples in (1, 40, 130):
                with self.runtime.connect() as client:
                    inputs = given(n, samples)
                    arrays = {name: client.array(array) for name, array in named(inputs).items()}
                    before = client.info().arena_used_bytes
                    futures = [client.submit(model, arrays, outputs=["y5"]) for _ in range(2)]
                    self.assertLess(client.info().arena_used_bytes - before, 20 * samples * WIDTH * 4 + 8192)
                    answers = [future.result(60) for future in futures] + [client.infer(model, arrays, outputs=["y5", f"y{m - 1}"])["y5"]]
                    for answer in answers:
                        np.testing.assert_allclose(answer, mixed(inputs, n, m, factor)[5], rtol=1e-6)

    def test_a_model_without_inputs_answers_its_constant(self):
        np.testing.assert_array_equal(self.client.infer(name_of(0, 1), {}), [[1]])

    @unittest.skipUnless(os.environ.get("STARLING_PORTS"), "there is no C program")
    @unittest.skipIf(form.NAME == "native", "a C program has neither form: it runs beside the other one")
    def test_a_c_program_without_options_gives_and_gets_as_many(self):
        socket = os.path.join(self.runtime.folder, self.runtime.name + ".sock")
        for n, m, kind, samples in [(*split, "threads", 2) for split in self.shapes if split[0]] + [(512, 512, "apart", 3)]:
            said = subprocess.run(
                [os.environ["STARLING_PORTS"], socket, name_of(n, m, kind), str(samples), "3"],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
            inputs = [
                np.array([(7 * i + 3 * e + 1) % 31 for e in range(samples * WIDTH)], np.float32).reshape(samples, WIDTH)
                for i in range(n)
            ]
            lines = [line.split(" ") for line in said.splitlines()]
            self.assertEqual([line[0] for line in lines], [f"y{j}" for j in range(m)])
            for wanted, line in zip(mixed(inputs, n, m), lines, strict=True):
                self.assertEqual(list(map(float, line[1:])), wanted.ravel().tolist())


if __name__ == "__main__":
    unittest.main()
