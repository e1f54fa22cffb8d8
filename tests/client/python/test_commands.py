# SPDX-License-Identifier: Apache-2.0
"""Commands that look at one model take what `starling serve` takes. Skipped where `starling` is not built."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import onnx_file as onnx
import test_models as models
from world import RealRuntime

MODELS = {
    "open": lambda: models.sequence_major(),
    "meeting": lambda: models.meeting(),
    "stateful": lambda: models.stateful(),
    "finding": lambda: models.finding(),
    "integers": lambda: models.turning(models.I64),
    "fixed": lambda: models.fixed(),
    "drawing": lambda: models.drawing(),
    "drawing_in_rounds": lambda: models.drawing_in_rounds(),
}
SHAPES = {"open": ["--shape", "x=5x2x3"], "stateful": ["--shape", "x=2x4x3", "--shape", "state=2x2x3"]}


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="starling-commands-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_command(self, *arguments, env=None):
        return subprocess.run([os.environ["STARLING_COMMAND"], *arguments], capture_output=True, text=True, env=env)

    def succeed(self, *arguments, env=None):
        done = self.run_command(*arguments, env=env)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done

    def write(self, path, content):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_inspect_and_profile_take_every_model(self):
        for name, make in MODELS.items():
            path = self.write(name + ".onnx", make())
            with self.subTest(model=name):
                json.loads(self.succeed("inspect", "--json", path).stdout)
                json.loads(self.succeed("profile", "--seconds", "0.02", "--json", path).stdout)
                json.loads(self.succeed("profile", "--seconds", "0.02", "--batch", "3", "--json", path).stdout)

    def test_models_that_draw_or_have_optional_inputs_are_not_merged_and_the_command_says_why(self):
        for make, config, why in (
            (models.drawing, "fuse: auto\n", "models that draw random numbers are not merged"),
            (lambda: models.adaptable(1), "fuse: auto\noptional_inputs: true\n", "models with optional_inputs are not merged"),
        ):
            for i in range(2):
                self.write(f"models/copy{i}/1/model.onnx", make())
                self.write(f"models/copy{i}/config.yaml", config.encode())
            with self.subTest(why=why):
                self.assertIn(why, self.succeed("fuse", os.path.join(self.folder, "models"), "--explain").stdout)

    def test_links_of_weights_lead_into_the_folders_that_the_command_names(self):
        weights = np.arange(6, dtype=np.float32).reshape(3, 2)
        net = onnx.model(
            [onnx.node("MatMul", ["x", "w"], ["y"])],
            [onnx.port("x", 1, ("N", 3))],
            [onnx.port("y", 1, ("N", 2))],
            [onnx.external("w", 1, (3, 2), "w.bin")],
        )
        blob, model = self.write("far/blob", weights.tobytes()), self.write("models/net/1/model.onnx", net)
        os.symlink(blob, os.path.join(os.path.dirname(model), "w.bin"))
        far, other, plan = os.path.dirname(blob), os.path.join(self.folder, "models"), os.path.join(self.folder, "plan")
        env = dict(os.environ, TMPDIR=self.folder, XDG_DATA_HOME=self.folder, XDG_CACHE_HOME=self.folder)
        measure = ["--seconds", "0.01", "--batches", "1", "--devices", "cpu:0", "--confirm", "1"]
        for command, subject in (
            (["inspect"], model),
            (["profile", "--seconds", "0.01"], model),
            (["compile", "-o", plan], model),
            (["optimize", *measure], os.path.join(self.folder, "models/net")),
        ):
            with self.subTest(command=command[0]):
                for wrong in [], ["--data-folder", other]:
                    done = self.run_command(*command, *wrong, subject, env=env)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn('external data "w.bin" leads outside', done.stderr)
                done = self.run_command(*command, "--data-folder", "far", subject, env=env)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn('--data-folder: "far" is not an absolute path', done.stderr)
                self.succeed(*command, "--data-folder", other, "--data-folder", far, subject, env=env)

    def test_a_message_names_the_file_once(self):
        missing = os.path.join(self.folder, "missing.onnx")
        damaged = self.write("damaged.onnx", b"\x08\x08nothing")
        plan = os.path.join(self.folder, "plan")
        for path in (missing, damaged):
            for command in (["inspect"], ["profile"], ["compile", "-o", plan]):
                with self.subTest(command=command[0], path=path):
                    done = self.run_command(*command, path)
                    self.assertEqual(done.returncode, 1)
                    self.assertTrue(done.stderr.startswith(f"starling {command[0]}: {path}: "), done.stderr)
                    self.assertEqual(done.stderr.count(path), 1, done.stderr)

    def test_a_wrong_choice_is_answered_with_all_names(self):
        path = self.write("fixed.onnx", models.fixed())
        done = self.run_command("inspect", "-O", "without_passes=none", path)
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.endswith(",fold-weights,join-mbconv\n"), done.stderr)

    def test_an_open_dimension_has_a_size_that_is_said(self):
        path = self.write("open.onnx", models.stateful())
        self.assertIn('dimension "T" is open and is 64 here', self.succeed("inspect", path).stderr)
        self.assertNotIn('"T"', self.succeed("inspect", "-O", "shapes=T=9", path).stderr)

    def test_a_size_of_a_dimension_that_no_input_has_is_refused(self):
        path = self.write("open.onnx", models.sequence_major())
        plan = os.path.join(self.folder, "plan")
        for command in (["inspect"], ["profile", "--seconds", "0.02"], ["compile", "-o", plan]):
            for shapes in ("T=3,height=4", "height=4"):
                with self.subTest(command=command[0], shapes=shapes):
                    done = self.run_command(*command, "-O", f"shapes={shapes}", path)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(': shapes: no input has an open dimension "height": x [T,N,3]', done.stderr)
                    self.assertNotIn("is open", done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_folder_is_its_newest_version_with_its_configuration(self):
        self.write("repository/net/1/model.onnx", models.fixed())
        self.write("repository/net/2/model.onnx", models.turning(models.F32))
        self.write("repository/net/config.yaml", b"backend: ref\nbatch_max: 4\n")
        folder = os.path.join(self.folder, "repository", "net")
        plan = json.loads(self.succeed("inspect", "--json", folder).stdout)["plan"]
        self.assertEqual(plan["backend"], "ref")
        self.assertEqual(plan["memory"][-1]["batch"], 4)
        plan = json.loads(self.succeed("inspect", "--json", "-O", "backend=cpu", folder).stdout)["plan"]
        self.assertEqual(plan["backend"], "cpu")
        self.succeed("profile", "--seconds", "0.02", folder)

    def test_a_folder_that_is_no_model_says_why(self):
        self.write("repository/net/config.yaml", b"backend: none\n")
        self.write("repository/empty/readme", b"")
        self.write("repository/team/config.yaml", b"ensemble:\n  members: [net]\n")
        for name, text in (("net", "config.yaml:1: backend"), ("empty", "no VERSION/model.onnx"), ("team", "net")):
            done = self.run_command("profile", os.path.join(self.folder, "repository", name))
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)

    def test_a_repository_says_which_models_it_has(self):
        self.write("one/net/1/model.onnx", models.fixed())
        self.write("two/a/1/model.onnx", models.fixed())
        self.write("two/b/1/model.onnx", models.fixed())
        self.write("file/c.onnx", models.fixed())
        for repository, model, words in (("one", "one/net", "its model is"), ("two", "two/a", "give one of its 2 models, as"), ("file", None, None)):
            for command in ("inspect", "profile"):
                path = os.path.join(self.folder, repository)
                done = self.run_command(command, path)
                if model is None:  # a folder with one file is that model
                    self.assertEqual(done.returncode, 0, done.stderr)
                else:
                    expected = f"starling {command}: {path}: a repository; {words} {os.path.join(self.folder, model)}\n"
                    self.assertEqual((done.returncode, done.stderr), (1, expected))

    def bench(self, name, socket):
        """A busy machine may have no time for any request in the shortest time."""
        command = ("bench", "model", name, "--runtime", socket, "--warmup", "0", "--json", *SHAPES.get(name, []))
        done = self.run_command(*command, "--seconds", "0.1")
        if "no request was answered" in done.stderr:
            return self.succeed(*command, "--seconds", "30").stdout
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        return done.stdout

    def test_bench_takes_every_model_that_is_served(self):
        runtime = RealRuntime({name: make() for name, make in MODELS.items()})
        self.addCleanup(runtime.stop)
        runtime.connect().close()
        socket = os.path.join(runtime.folder, runtime.name + ".sock")
        for name in MODELS:
            with self.subTest(model=name):
                self.assertEqual(json.loads(self.bench(name, socket))["requests_failed"], 0)
        done = self.run_command("bench", "model", "fixed", "--runtime", socket, "--shape", "x=2x2x3", "--seconds", "0.5",
                                "--warmup", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("wants float32 [1,2,3], got float32 [2,2,3]", done.stderr)


if __name__ == "__main__":
    unittest.main()
