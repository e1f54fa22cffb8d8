# SPDX-License-Identifier: Apache-2.0
"""What a model's own config.yaml says, as it shows at `starling serve`. Skipped where `starling` is not built."""

import json
import os
import subprocess
import tempfile
import time
import unittest

import numpy as np
import onnx_file as onnx
import starling
import test_models as models
from world import RealRuntime


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Configured(unittest.TestCase):
    def serve(self, nets, configuration="", *arguments):
        """A runtime whose own file says @configuration."""
        runtime = RealRuntime(nets, *arguments, configuration=configuration)
        self.addCleanup(runtime.stop)
        return runtime

    def models(self, runtime):
        """What `starling models --verbose` says, by name."""
        said = subprocess.run(
            [os.environ["STARLING_COMMAND"], "models", "--name", runtime.name, "--verbose", "--json"],
            env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
            stdout=subprocess.PIPE,
            check=True,
        )
        return {model["name"]: model for model in json.loads(said.stdout)}

    def said_of(self, runtime, model):
        """What the log says of it, when all are loaded."""
        return [line for line in runtime.said().splitlines() if f"model={model} " in line]

    def test_links_of_weights_lead_into_the_folders_that_the_configuration_names(self):
        weights = np.arange(6, dtype=np.float32).reshape(3, 2)
        net = onnx.model(
            [onnx.node("MatMul", ["x", "w"], ["y"])],
            [onnx.port("x", 1, ("N", 3))],
            [onnx.port("y", 1, ("N", 2))],
            [onnx.external("w", 1, (3, 2), "w.bin")],
        )
        with tempfile.TemporaryDirectory() as folder:
            for name in "far", "models/net/1":
                os.makedirs(f"{folder}/{name}")
            with open(f"{folder}/far/blob", "wb") as file:
                file.write(weights.tobytes())
            with open(f"{folder}/models/net/1/model.onnx", "wb") as file:
                file.write(net)
            os.symlink(f"{folder}/far/blob", f"{folder}/models/net/1/w.bin")
            refusing = RealRuntime(f"{folder}/models")
            try:
                with refusing.connect() as client, self.assertRaisesRegex(starling.StarlingError, 'external data "w.bin" leads outside'):
                    client.model("net")
            finally:
                refusing.stop()
            runtime = self.serve(f"{folder}/models", f"data_folders: [{folder}/far]\n")
            x = np.ones((2, 3), np.float32)
            with runtime.connect() as client:
                np.testing.assert_array_equal(client.infer("net", x), x @ weights)

    def test_a_size_of_a_dimension_that_no_input_has_is_an_error_that_names_the_inputs(self):
        def net(text):
            return {"1/model.onnx": models.sequence_major(), "config.yaml": text}

        runtime = self.serve(
            {
                "right": net(b"shapes: ['T=4']\n"),
                "wrong": net(b"shapes: ['T=4', 'height=4']\n"),
                "open": net(b"shapes: ['height=4']\n"),
                "defaults": net(b"batch_max: 4\n"),
                "prepared": net(b"prepared_shapes: ['T=4,N=2,height=2']\n"),
                "fixed": {"1/model.onnx": models.fixed(), "config.yaml": b"prepared_shapes: ['T=4']\n"},
            },
            "model_defaults: {shapes: ['width=3'], prepared_shapes: ['T=2,N=1,depth=3']}",
        )
        runtime.connect().close()
        self.wait_until(lambda: "event=ready" in runtime.said())
        refused = 'shapes: no input has an open dimension \\"height\\": x [T,N,3]'
        for name in ("wrong", "open"):
            failed = [line for line in self.said_of(runtime, name) if "event=model-failed" in line]
            self.assertIn(refused, " ".join(failed))
        self.assertIn("event=model-ready", self.said_of(runtime, "right")[0])
        self.assertFalse([line for line in self.said_of(runtime, "defaults") if "no input" in line])
        prepared = [line for line in self.said_of(runtime, "prepared") if "event=shape-not-loaded" in line]
        self.assertIn('prepared_shapes: no input has an open dimension \\"height\\": open are', prepared[0])
        self.assertIn('dimension \\"T\\": none is open', " ".join(self.said_of(runtime, "fixed")))

    def test_an_ensemble_of_members_with_open_dimensions_wants_their_sizes(self):
        def net(text=b""):
            return {"1/model.onnx": models.sequence_major(), "config.yaml": text}

        sized = {f"sized{i}": net(b"shapes: ['T=4', 'N=2']\n") for i in range(2)}
        ensembles = {
            "both": {"config.yaml": b"ensemble: {members: [open0, open1], rule: mean}\n"},
            "together": {"config.yaml": b"ensemble: {members: [sized0, sized1], rule: mean}\n"},
        }
        runtime = self.serve({"open0": net(), "open1": net()} | sized | ensembles)
        x = np.ones((4, 2, 3), np.float32)
        with runtime.connect() as client:
            wanted = client.infer("open0", x)
            np.testing.assert_allclose(client.infer("together", x), wanted, atol=1e-6)
            with self.assertRaisesRegex(starling.ModelFailed, 'dimension "[NT]" of member "open0" is open: .* shapes'):
                client.infer("both", x)
            np.testing.assert_array_equal(client.infer("open1", x), wanted)

    def test_batches_that_grow_and_shrink_never_run_out_of_arena(self):
        runtime = self.serve(
            {"net": models.turning(models.F32)},
            "limits: {client: {arena_bytes: 4 MiB}, uid: {arena_bytes: 4 MiB}}",
        )
        with runtime.connect(arena_bytes=1 << 16) as client:
            for bytes in (1 << 10, 3 << 20, 1 << 20, 2 << 20, 7 << 17) * 20:
                array = client.empty(bytes, np.uint8)
                array[-1] = 1
                del array
            self.assertLessEqual(client.info().arena_bytes, 4 << 20)

    def unused(self, nets, configuration, *arguments):
        """What the log says of options that nobody uses, when all models are loaded."""
        runtime = RealRuntime(nets, *arguments, configuration=configuration)
        try:
            self.wait_until(lambda: "event=ready" in runtime.said())
            return [line for line in runtime.said().splitlines() if "event=option-unused" in line]
        finally:
            runtime.stop()

    def test_a_size_of_all_models_that_none_of_them_has_is_said_once(self):
        nets = {"net": models.sequence_major(), "batched": models.turning(models.F32), "fixed": models.fixed(), "broken": b"none"}
        arguments = ("-O", "shapes=T=4,height=2")
        for _ in range(2):  # compiled, and from the cache
            said = self.unused(nets, "", *arguments)
            self.assertEqual(len(said), 1, said)
            self.assertIn('shapes: no input of a model that is served has an open dimension \\"height\\"', said[0])
            self.assertIn(" warning ", said[0])

    def test_a_size_of_all_models_that_one_of_them_has_is_not_said(self):
        batched = models.turning(models.F32)
        own = {"1/model.onnx": models.sequence_major(), "config.yaml": b"shapes: ['T=4', 'N=2']\n"}
        self.assertEqual(self.unused({"net": models.stateful(), "fixed": models.fixed()}, "model_defaults: {shapes: ['T=4']}"), [])
        self.assertEqual(self.unused({"net": models.stateful()}, "model_defaults: {shapes: ['T=4', 'N=2']}"), [])
        self.assertEqual(self.unused({"net": batched}, "model_defaults: {shapes: ['N=2']}"), [])
        self.assertEqual(self.unused({"net": own, "other": batched}, "model_defaults: {shapes: ['T=5', 'N=3']}"), [])
        self.assertEqual(self.unused({"net": b"none"}, "model_defaults: {shapes: ['T=4']}"), [])

    def test_what_is_for_processes_is_said_where_there_are_none(self):
        def net(text):
            return {"1/model.onnx": models.fixed(), "config.yaml": text}

        runtime = self.serve(
            {
                "crash": net(b"on_crash: rerun\n"),
                "hang": net(b"hang_ms: 5\n"),
                "process": net(b"on_crash: rerun\nhang_ms: 60000\nisolation: process\n"),
                "defaults": net(b"batch_max: 4\n"),
            },
            "model_defaults: {hang_ms: 60000}",
        )
        self.wait_until(lambda: "event=ready" in runtime.said())
        said = [line for line in runtime.said().splitlines() if "warning event=option-unused" in line]
        self.assertEqual(len(said), 2, said)
        self.assertIn('model \\"crash\\": on_crash is for workers that are processes', " ".join(said))
        self.assertIn('model \\"hang\\": hang_ms is for workers that are processes', " ".join(said))

    def test_the_log_has_the_label_of_whoever_attaches(self):
        runtime = self.serve({"net": models.fixed()}, "log_level: debug")
        for role in ("client", "reader", "admin"):
            runtime.connect(label=f"a {role}", role=role).close()
            self.wait_until(lambda: f'label="a {role}"' in runtime.said())

    def test_a_gpu_that_is_not_there_is_no_lack_of_memory(self):
        runtime = self.serve({"net": {"1/model.onnx": models.turning(models.F32), "config.yaml": b"backend: cuda\n"}})
        self.wait_until(lambda: "event=ready" in runtime.said())
        failed = [line for line in self.said_of(runtime, "net") if "event=model-failed" in line]
        if not failed or "No such device" not in failed[0]:
            self.skipTest("a build without this backend, or a machine with a GPU")
        self.assertIn("there is no GPU that its backend can use here", failed[0])
        self.assertNotIn("bytes", failed[0])

    def test_what_the_dispatcher_computes_is_not_configured(self):
        runtime = self.serve({"net": models.turning(models.F32)})
        with runtime.connect(role="admin") as admin:

            def the_dispatcher_computes_it():
                if len(self.models(runtime)["net"]["workers"]) > 1:
                    return True
                # A load times a sample: where others had the core meanwhile the model is the workers'.
                admin.unload("net")
                admin.load("net")
                return False

            self.wait_until(the_dispatcher_computes_it)
        reasons = [worker["batch_reason"] for worker in self.models(runtime)["net"]["workers"]]
        self.assertIn("what the dispatcher itself computes at once, as threads.inline_us says; batching holds none of it", reasons)
        self.assertNotIn("configured", reasons)

    def with_sizes(self, runtime, name):
        return next(model for model in json.loads(runtime.stats("--json"))["models"] if model["name"] == name)["with_sizes"]

    def test_sizes_that_make_room_for_others_take_nothing_out_of_what_their_model_has_counted(self):
        net = {"1/model.onnx": models.sequence_major(), "config.yaml": b"shapes_max: 1\nany_size: false\n"}
        runtime = self.serve({"net": net, "fixed": models.fixed()})
        with runtime.connect() as client:
            for count, size in enumerate((2, 2, 3, 4, 2, 5), 1):
                client.infer("net", np.ones((size, 1, 3), np.float32))
                self.wait_until(lambda: runtime.said().count("event=model-unloaded") == max(0, count - 2))
                self.wait_until(lambda: self.with_sizes(runtime, "net")["completed"] == count)  # the log goes before the page
                self.assertIsNone(self.with_sizes(runtime, "fixed"))
        line = next(line for line in runtime.stats().splitlines() if line.startswith("    with its sizes"))
        self.assertIn("  requests 6  samples 6  done 6  failed 0  ", line)

    def wait_until(self, condition):
        deadline = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it does not come to that")
            time.sleep(0.01)

    def test_an_empty_list_overrides_the_defaults(self):
        defaults = """\
threads: {inline_us: 0}
model_defaults: {batch_sizes: [1, 4], fuse: auto, prepared_shapes: ['T=2', 'T=4'], shapes_max: 2}
"""
        own = b"batch_sizes: []\nfuse: []\nprepared_shapes: []\nshapes_max: 1\n"
        runtime = self.serve(
            {
                "defaults": models.turning(models.F32),
                "own": {"1/model.onnx": models.turning(models.F32), "config.yaml": own},
                "many": {"1/model.onnx": models.turning(models.F32), "config.yaml": own + b"instances: 3\n"},
            },
            defaults,
        )
        runtime.connect().close()
        served = self.models(runtime)
        self.assertEqual([worker["batch_max"] for worker in served["defaults"]["workers"]], [4, 1])
        self.assertEqual([worker["batch_max"] for worker in served["own"]["workers"]], [32])
        self.assertEqual([worker["batch_max"] for worker in served["many"]["workers"]], [32] * 3)
