# SPDX-License-Identifier: Apache-2.0
"""What data-dependent steps are promised of memory_max, through `starling serve`. Skipped where `starling` is not built."""

import json
import os
import subprocess
import time
import unittest

import numpy as np
import onnx_file as onnx
import starling
from world import RealRuntime

F32, I64 = 1, 7
MIB = 1 << 20


def resizing():
    """y = x [1, 1, 4, 4] at the sizes that the request says: nearest neighbours."""
    return onnx.model(
        [onnx.node("Resize", ["x", "", "", "sizes"], ["y"])],
        [onnx.port("x", F32, (1, 1, 4, 4)), onnx.port("sizes", I64, (4,))],
        [onnx.port("y", F32, ("A", "B", "C", "D"))],
    )


def repeating():
    """y [n] = x [1], n times, and how many those are: what is large is made and not sent."""
    return onnx.model(
        [onnx.node("Expand", ["x", "n"], ["large"]), onnx.node("ReduceSum", ["large"], ["y"], keepdims=0)],
        [onnx.port("x", F32, (1,)), onnx.port("n", I64, (1,))],
        [onnx.port("y", F32, ())],
    )


def spreading():
    """y [n] = x [1], n times."""
    return onnx.model(
        [onnx.node("Expand", ["x", "n"], ["y"])], [onnx.port("x", F32, (1,)), onnx.port("n", I64, (1,))], [onnx.port("y", F32, ("A",))]
    )


def longs(*values):
    return np.array(values, np.int64)


def sized_by_shapes():
    """Models of x [N, L, 8] whose operator has a size input that is worked out from the shape of x, each with what it makes of x."""
    length = [onnx.node("Shape", ["x"], ["shape"]), onnx.node("Gather", ["shape", "one"], ["length"], axis=0)]
    numbers = {"zero": longs(0), "one": longs(1), "two": longs(2), "four": longs(4), "rest": longs(-1)}

    def of(*nodes):
        constants = [onnx.constant(name, I64, array) for name, array in numbers.items()]
        constants.append(onnx.constant("row", F32, np.arange(8, dtype=np.float32).reshape(1, 1, 8)))
        return onnx.model([*length, *nodes], [onnx.port("x", F32, ("N", "L", 8))], [onnx.port("y", F32, ("A", "B", "C"))], constants)

    sizes = onnx.node("Concat", ["one", "length", "one"], ["sizes"], axis=0)
    row = np.arange(8, dtype=np.float32)
    return {
        "reshape": (
            of(onnx.node("Concat", ["rest", "length", "four"], ["sizes"], axis=0), onnx.node("Reshape", ["x", "sizes"], ["y"])),
            lambda x: x.reshape(-1, x.shape[1], 4),
        ),
        "slice": (
            of(onnx.node("Div", ["length", "two"], ["half"]), onnx.node("Slice", ["x", "zero", "half", "one"], ["y"])),
            lambda x: x[:, : x.shape[1] // 2],
        ),
        "expand": (of(sizes, onnx.node("Expand", ["row", "sizes"], ["rows"]), onnx.node("Add", ["x", "rows"], ["y"])), lambda x: x + row),
        "tile": (of(sizes, onnx.node("Tile", ["row", "sizes"], ["rows"]), onnx.node("Add", ["x", "rows"], ["y"])), lambda x: x + row),
        "pad": (
            of(
                onnx.node("Concat", ["zero", "zero", "zero", "zero", "length", "zero"], ["sizes"], axis=0),
                onnx.node("Pad", ["x", "sizes"], ["y"]),
            ),
            lambda x: np.pad(x, ((0, 0), (0, x.shape[1]), (0, 0))),
        ),
    }


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class DynamicMemory(unittest.TestCase):
    def serve(self, nets, configuration):
        runtime = RealRuntime(nets, configuration=configuration)
        self.addCleanup(runtime.stop)
        client = runtime.connect()
        self.addCleanup(client.close)
        return runtime, client

    def workers(self, runtime):
        """What `starling models --verbose` says of the workers of each model."""
        said = subprocess.run(
            [os.environ["STARLING_COMMAND"], "models", "--name", runtime.name, "--verbose", "--json"],
            env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
            stdout=subprocess.PIPE,
            check=True,
        )
        return {model["name"]: model["workers"] for model in json.loads(said.stdout)}

    def promised(self, runtime):
        """What the ledger says."""
        page = json.loads(runtime.stats("--json"))
        return {row["name"]: row["bytes"] for row in page["memory"]}

    def sum(self, client, name, n):
        return float(client.infer(name, {"x": np.ones(1, np.float32), "n": np.array([n])}, timeout=60))

    def check_growth(self, configuration):
        """One whose runs need more gets more; what the ledger has not is refused, and nothing else is disturbed."""
        runtime, client = self.serve({"one": repeating(), "other": repeating()}, configuration)
        (before,) = self.workers(runtime)["one"]
        self.assertLess(before["dynamic_bytes"], MIB)
        self.assertEqual(self.sum(client, "one", 10 * MIB), 10 * MIB)
        (after,) = self.workers(runtime)["one"]
        self.assertGreaterEqual(after["dynamic_used_bytes"], 40 * MIB)
        self.assertGreaterEqual(after["dynamic_bytes"], after["dynamic_used_bytes"])
        ledger = self.promised(runtime)
        self.assertGreaterEqual(ledger["dynamic"], after["dynamic_bytes"])
        self.assertLess(ledger["dynamic"], 41 * MIB)
        with self.assertRaises(starling.OutOfMemory) as refused:
            self.sum(client, "one", 60 * MIB)
        said = str(refused.exception)
        for word in ("Expand", str(240 * MIB)[:4], f"memory_max {256 * MIB}", "left"):
            self.assertIn(word, said)
        self.assertEqual(self.promised(runtime), ledger)
        self.assertEqual(self.sum(client, "one", 10 * MIB), 10 * MIB)
        self.assertEqual(self.sum(client, "other", 3), 3)
        with self.assertRaises(starling.OutOfMemory) as refused:
            self.sum(client, "other", 80 * MIB)
        self.assertIn(f"dynamic_bytes_max is {256 * MIB}", str(refused.exception))
        return runtime, client

    def test_a_worker_is_promised_what_its_runs_needed(self):
        self.check_growth("limits: {memory_max: 256 MiB, staging_bytes: 8 MiB}")

    def test_a_worker_in_a_process_of_its_own_asks_for_it(self):
        self.check_growth("limits: {memory_max: 256 MiB, staging_bytes: 8 MiB}\nmodel_defaults: {isolation: process}")

    def test_an_output_of_a_process_is_as_large_as_the_ledger_allows(self):
        """Its room takes memory when it is used, and nothing is promised for it before."""
        runtime, client = self.serve({"one": spreading()}, "limits: {memory_max: 540 MiB}\nmodel_defaults: {isolation: process}")
        self.assertLess(self.promised(runtime)["workers"], 2 * MIB)
        large = {"y": client.empty((32 * MIB,))}
        for n, value in ((3, 5), (17 * MIB, 7), (17 * MIB, 8), (11, 9)):
            y = np.asarray(client.infer("one", {"x": np.array([value], np.float32), "n": np.array([n])}, outputs=large, timeout=60))
            self.assertEqual(y.shape, (n,))
            self.assertTrue((y == value).all())
        ledger = self.promised(runtime)
        self.assertGreaterEqual(ledger["dynamic"], 2 * 68 * MIB - MIB)
        (worker,) = self.workers(runtime)["one"]
        self.assertGreaterEqual(worker["dynamic_used_bytes"], 2 * 68 * MIB - MIB)
        # The client has room for it, and the step, but not the process beside.
        with self.assertRaises(starling.OutOfMemory) as refused:
            client.infer("one", {"x": np.ones(1, np.float32), "n": np.array([32 * MIB])}, outputs=large, timeout=60)
        self.assertIn(f"an output of {128 * MIB} bytes", str(refused.exception))
        with self.assertRaises(starling.OutOfMemory) as refused:
            client.infer("one", {"x": np.ones(1, np.float32), "n": np.array([60 * MIB])}, outputs=large, timeout=60)
        self.assertIn(f"memory_max {540 * MIB}", str(refused.exception))
        y = client.infer("one", {"x": np.ones(1, np.float32), "n": np.array([7])}, outputs=large, timeout=60)
        self.assertEqual(np.asarray(y).shape, (7,))

    def test_what_a_model_was_promised_is_left_when_it_is_unloaded(self):
        runtime, client = self.serve({"one": repeating()}, "limits: {memory_max: 512 MiB, staging_bytes: 8 MiB}")
        self.sum(client, "one", 10 * MIB)
        self.assertGreater(self.promised(runtime)["dynamic"], 40 * MIB)
        subprocess.run(
            [os.environ["STARLING_COMMAND"], "unload", "--name", runtime.name, "one"],
            env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        until = time.monotonic() + 120  # its worker ends behind the call
        while self.promised(runtime)["dynamic"] and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(self.promised(runtime)["dynamic"], 0)

    def test_a_size_that_shapes_say_makes_no_step_data_dependent(self):
        nets = sized_by_shapes()
        served = {name: net for name, (net, _) in nets.items()}
        config = "limits: {memory_max: 512 MiB, staging_bytes: 8 MiB}\nmodel_defaults: {any_size: false}"
        runtime, client = self.serve({"by_data": repeating(), **served}, config)
        x = np.arange(96, dtype=np.float32).reshape(2, 6, 8)
        for name, (_, want) in nets.items():
            np.testing.assert_array_equal(client.infer(name, x, timeout=60), want(x))
        self.sum(client, "by_data", 5)
        workers = self.workers(runtime)
        for name in nets:
            sized = [worker for model in workers if model.startswith(f"{name}[") for worker in workers[model]]
            self.assertTrue(sized, name)
            self.assertEqual([worker["dynamic_bytes"] for worker in sized if worker["dynamic_bytes"]], [], name)
        self.assertGreater(sum(w["dynamic_bytes"] for w in workers["by_data"]), 0)

    def test_two_hundred_models_fit_a_gibibyte_and_leave_room_for_an_arena(self):
        names = [f"resize{i}" for i in range(200)]
        runtime, client = self.serve({name: resizing() for name in names}, "limits: {memory_max: 1 GiB}")
        self.assertFalse([line for line in runtime.said().splitlines() if "event=model-failed" in line][:1])
        x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
        for name in names:
            y = client.infer(name, {"x": x, "sizes": np.array([1, 1, 8, 8])}, timeout=60)
            self.assertTrue(np.array_equal(np.asarray(y), x.repeat(2, 2).repeat(2, 3)), name)
        large = client.infer(names[7], {"x": x, "sizes": np.array([1, 1, 2048, 2048])}, timeout=60)
        self.assertEqual(np.asarray(large).shape, (1, 1, 2048, 2048))
        self.assertLess(sum(w["dynamic_bytes"] for name in names for w in self.workers(runtime)[name]), 100 * MIB)


if __name__ == "__main__":
    unittest.main()
