# SPDX-License-Identifier: Apache-2.0
"""perf/sizes: a run with few requests has all that its page names, and refuses answers that are not the peer's."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "perf/sizes"
STREAMS = ("small", "lstm", "fcn")


class SizesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run([ROOT / "tools/venv.sh", "made", ROOT / "tests/conformance/made/requirements.txt"], capture_output=True, text=True, check=False)
        if made.returncode:
            raise unittest.SkipTest(f"ONNX Runtime cannot be installed: {made.stderr.strip().splitlines()[-1]}")
        cls.python = made.stdout.strip()

    def run_script(self, *words):
        build = pathlib.Path(os.environ["PROGRAMS"]).parent
        environment = dict(os.environ, PYTHONPATH=f"{ROOT}/client/python:{ROOT}/perf/serving", STARLING_LIBRARY=str(build / "lib/libstarling.so"))
        command = [self.python, "-B", str(FOLDER / "sizes.py"), "--program", str(build / "bin/starling"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def test_a_short_run_has_every_figure_and_the_right_answers(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "sizes.json"
            ended = self.run_script("--out", str(out), "--models", ",".join(STREAMS), "--peers", "onnxruntime", "--requests", "6",
                                    "--turns", "1", "--memory-sizes", "3")  # fmt: skip
            self.assertEqual(ended.returncode, 0, ended.stdout[-2000:] + ended.stderr[-2000:])
            report = json.loads(out.read_text(encoding="utf-8"))
        self.assertEqual(tuple(row["stream"] for row in report["streams"]), STREAMS)
        for row in report["streams"]:
            with self.subTest(row["stream"]):
                self.assertEqual(row["processor"], report["processor"])
                self.assertLess(row["worst_difference"], 1e-4)
                self.assertEqual(set(row["engines"]), {"starling", "onnxruntime"})
                for figures in row["engines"].values():
                    self.assertTrue(all(value > 0 for value in figures.values()), figures)
                self.assertEqual(set(row["new_sizes"]), {"starling", "onnxruntime"})
                self.assertEqual(len(row["fixed"]), 2)
                self.assertGreater(row["one_over_peer"] * row["flight_over_peer"] * row["flight_p99_over_peer"], 0)
                self.assertEqual(row["memory"]["sizes"], 3)

    def test_models_come_from_seeds(self):
        code = "import sys; sys.path.insert(0, sys.argv[1]); import models; print(models.fcn().SerializeToString() == models.fcn().SerializeToString(), models.sentences(__import__('numpy').random.default_rng(1), 3) == models.sentences(__import__('numpy').random.default_rng(1), 3))"  # fmt: skip
        ended = subprocess.run([self.python, "-B", "-c", code, FOLDER], capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "True True\n", ended.stderr)

    def test_a_stream_that_is_none_is_named(self):
        ended = self.run_script("--out", "/dev/null", "--models", "nonesuch")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn('no stream "nonesuch"', ended.stderr)


if __name__ == "__main__":
    unittest.main()
