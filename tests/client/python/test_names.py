# SPDX-License-Identifier: Apache-2.0
"""Names of models of any length: what is served, and every place where a user meets one. Skipped where `starling` is not built."""

import json
import os
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import numpy as np
import onnx_file as onnx
import starling
from world import LIMIT, RealRuntime

F32 = 1
LONGEST = 1024
NAMES = {
    "short": "m",
    "old": "a" * 63,
    "over": "b" * 64,
    "folder": "c" * 255,
    "almost": "d" * (LONGEST - 1),
    "one": "e" * (LONGEST - 1) + "1",
    "two": "e" * (LONGEST - 1) + "2",
    "wide": "名" * 341 + "z",
    "accents": "é" * 512,
}
TOO_LONG = "f" * (LONGEST + 1)
ENSEMBLE = "g" * LONGEST


def adding(number):
    """y [N, T] = x + number, of any T."""
    return onnx.model(
        [onnx.node("Add", ["x", "number"], ["y"])],
        [onnx.port("x", F32, ("N", "T"))],
        [onnx.port("y", F32, ("N", "T"))],
        [onnx.constant("number", F32, np.array([number], np.float32))],
    )


def fixed(number):
    """The same of T = 2, and never another one."""
    return onnx.model(
        [onnx.node("Add", ["x", "number"], ["y"])],
        [onnx.port("x", F32, ("N", 2))],
        [onnx.port("y", F32, ("N", 2))],
        [onnx.constant("number", F32, np.array([number], np.float32))],
    )


def configured(name, **more):
    return "".join(f"{key}: {value}\n" for key, value in {"name": f'"{name}"', **more}.items()).encode()


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Names(unittest.TestCase):
    def serve(self, models, configuration=None, ready=True):
        runtime = RealRuntime(models, configuration=configuration)
        self.addCleanup(runtime.stop)
        if ready:
            self.wait_until(lambda: "event=ready" in runtime.said())
        return runtime

    def wait_until(self, condition):
        for _ in range(20 * LIMIT):
            if condition():
                return
            time.sleep(0.05)
        self.fail("it does not come to that")

    def command(self, runtime, *arguments, status=0):
        done = subprocess.run(
            [os.environ["STARLING_COMMAND"], *arguments],
            env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def models(self):
        """A folder for each, beside the one whose name a folder has itself."""
        files = {
            key: {"1/model.onnx": fixed(i), "config.yaml": configured(name)} for i, (key, name) in enumerate(NAMES.items())
        }
        files[NAMES["folder"]] = files.pop("folder")["1/model.onnx"]
        files["one"]["7/model.onnx"] = fixed(100)
        files["one"]["config.yaml"] = configured(NAMES["one"], version_policy="{all: true}")
        files["longer"] = {"1/model.onnx": fixed(0), "config.yaml": configured(TOO_LONG)}
        members = f'{{members: ["{NAMES["one"]}:1", "{NAMES["two"]}"], rule: mean}}'
        files["ensemble"] = {"config.yaml": configured(ENSEMBLE, ensemble=members)}
        return files

    def answers(self):
        """By name: what it adds."""
        sums = {name: i for i, name in enumerate(NAMES.values())}
        first, second = sums[NAMES["one"]], sums[NAMES["two"]]
        sums[NAMES["one"]] = sums[NAMES["one"] + ":7"] = 100
        sums[NAMES["one"] + ":1"] = first
        sums[ENSEMBLE] = (first + second) / 2
        return sums

    def expect_answers(self, client, sums):
        x = np.array([[1, 2], [3, 4]], np.float32)
        for name, number in sums.items():
            np.testing.assert_array_equal(client.infer(name, x), x + number, err_msg=name)

    def remove_page(self, runtime):
        """What it left behind, as it was killed."""
        page = "/dev/shm/starling." + runtime.name
        if os.path.exists(page):
            os.remove(page)

    def fetch(self, address, path):
        """Status and text; 0: nobody listens yet."""
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{address}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except urllib.error.URLError:
            return 0, ""

    def test_each_name_is_its_own_and_shown_whole(self):
        runtime = self.serve(self.models(), configuration="trace: {sampling: 1}\n")
        sums = self.answers()
        with runtime.connect() as client:
            self.expect_answers(client, sums)
            self.assertEqual({entry.name for entry in client.models()} - {"longer"}, set(sums))
            self.assertIn(repr(NAMES["two"]), repr(client.model(NAMES["two"])))
            with self.assertRaises(starling.NotFound):
                client.model("e" * (LONGEST - 1) + "3")
            with self.assertRaises(starling.NotFound):
                client.model("e" * (LONGEST - 1))
            self.expect_shown(runtime, client, sums)
        said = [line for line in runtime.said().splitlines() if "event=model-ready" in line]
        for name in NAMES.values():
            self.assertTrue([line for line in said if f"model={name} " in line or f'model="{name}" ' in line], name)

    def expect_shown(self, runtime, client, sums):
        stats = json.loads(runtime.stats("--json"))
        self.assertEqual({model["name"] for model in stats["models"]} - {"(others)", "longer"}, set(sums))
        self.assertLessEqual({NAMES["one"], NAMES["two"], NAMES["wide"]}, {worker["model"] for worker in stats["workers"]})
        self.assertLessEqual({ENSEMBLE, NAMES["accents"]}, {queue["model"] for queue in stats["queues"]})
        text = runtime.stats()
        listed = self.command(runtime, "models", "--name", runtime.name)
        for name in sums:
            self.assertIn(f"model {name}  ready", text)
            self.assertIn(f"{name} ", listed)
        path = os.path.join(runtime.folder, "trace.json")
        trace = subprocess.Popen(
            [os.environ["STARLING_COMMAND"], "trace", "-o", path, "--requests", "40", "--seconds", "20", runtime.name],
            env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
            stderr=subprocess.DEVNULL,
        )
        while trace.poll() is None:
            self.expect_answers(client, {name: sums[name] for name in (NAMES["two"], NAMES["wide"])})
        with open(path) as file:
            traced = json.dumps(json.load(file), ensure_ascii=False)
        self.assertIn(NAMES["two"], traced)
        self.assertIn(NAMES["wide"], traced)

    def test_a_longer_name_is_refused_with_value_and_limit(self):
        runtime = self.serve(self.models())
        refusal = "is not a name: it has 1025 bytes, a model's has at most 1024"
        left_out = [line for line in runtime.said().splitlines() if "event=model-left-out" in line]
        self.assertEqual(len(left_out), 1, left_out)
        self.assertIn(refusal, left_out[0])
        self.assertIn("ready failed_models=1", runtime.said())
        with runtime.connect() as client, self.assertRaises(starling.ModelFailed) as failed:
            client.model("longer")
        self.assertIn(refusal, str(failed.exception))
        self.assertIn("...", str(failed.exception))
        self.assertIn("has 1 to 1151 bytes, this one 2000", self.command(runtime, "load", "n" * 2000, "--name", runtime.name, status=1))

    def test_a_name_of_any_length_is_loaded_again_and_unloaded(self):
        runtime = self.serve(self.models())
        folder = os.path.join(runtime.folder, "models", "two")
        x = np.zeros((1, 2), np.float32)
        with runtime.connect() as client:
            os.mkdir(os.path.join(folder, "2"))
            with open(os.path.join(folder, "2", "model.onnx"), "wb") as file:
                file.write(fixed(50))
            self.command(runtime, "reload", NAMES["two"], "--name", runtime.name)
            self.assertEqual(client.infer(NAMES["two"], x)[0, 0], 50)
            self.assertEqual(client.infer(NAMES["one"], x)[0, 0], 100)
            self.command(runtime, "unload", NAMES["wide"], "--name", runtime.name)
            self.assertNotIn(NAMES["wide"], {entry.name for entry in client.models()})
            self.command(runtime, "load", NAMES["wide"], "--name", runtime.name)
            self.expect_answers(client, {NAMES["wide"]: self.answers()[NAMES["wide"]]})
            refused = self.command(runtime, "unload", "e" * (LONGEST - 1) + "3", "--name", runtime.name, status=1)
            self.assertIn("...", refused)
            runtime.process.send_signal(signal.SIGHUP)
            self.wait_until(lambda: "event=reloaded" in runtime.said() or "event=reload" in runtime.said())
            self.expect_answers(client, {ENSEMBLE: (self.answers()[NAMES["one"] + ":1"] + 50) / 2})

    def test_sizes_of_an_open_model_have_its_whole_name(self):
        name = "h" * LONGEST
        runtime = self.serve({"open": {"1/model.onnx": adding(3), "config.yaml": configured(name)}})
        with runtime.connect() as client:
            x = np.zeros((1, 5), np.float32)
            np.testing.assert_array_equal(client.infer(name, x), x + 3)
        stats = json.loads(runtime.stats("--json"))
        self.assertEqual({model["name"] for model in stats["models"]} - {"(others)"}, {name, name + "[any]"})
        whole = next(model for model in stats["models"] if model["name"] == name)
        self.assertEqual(whole["with_sizes"]["requests"], 1)

    def test_the_exporter_and_a_post_mortem_have_names_whole(self):
        runtime = self.serve(self.models())
        x = np.zeros((1, 2), np.float32)
        with runtime.connect() as client:
            for name in (NAMES["two"], NAMES["wide"], ENSEMBLE):
                client.infer(name, x)
            exporter = subprocess.Popen(
                [os.environ["STARLING_COMMAND"], "exporter", "--listen", "127.0.0.1:0", runtime.name],
                env=dict(os.environ, STARLING_SOCKET_DIR=runtime.folder),
                stderr=subprocess.PIPE,
                text=True,
            )
            self.addCleanup(exporter.stderr.close)
            try:
                address = exporter.stderr.readline().split()[-1]
                self.assertRegex(address, r"^127\.0\.0\.1:\d+$")
                metrics = self.fetch(address, "/metrics")[1]
                shown = json.loads(self.fetch(address, "/api/stats")[1])
                status, ready = self.fetch(address, "/readyz")  # what is not served is in the way, and named
            finally:
                exporter.terminate()
                exporter.wait()
            self.assertEqual(status, 503)
            self.assertIn("at most 1024", ready)
            for name in (NAMES["two"], NAMES["wide"], ENSEMBLE):
                self.assertIn(f'model="{name}"', metrics)
                self.assertIn(name, json.dumps(shown, ensure_ascii=False))
            self.addCleanup(self.remove_page, runtime)
            runtime.process.send_signal(signal.SIGKILL)
            runtime.process.wait()
        dead = self.command(runtime, "postmortem", "--name", runtime.name)
        said = json.loads(self.command(runtime, "postmortem", "--json", "--name", runtime.name))
        for name in (NAMES["two"], NAMES["wide"], ENSEMBLE):
            self.assertIn(name, dead)
            self.assertIn(name, json.dumps(said, ensure_ascii=False))


if __name__ == "__main__":
    unittest.main()
