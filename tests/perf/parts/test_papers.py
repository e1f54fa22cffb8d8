# SPDX-License-Identifier: Apache-2.0
"""Every experiment of papers.sh runs from this build, as a user calls it but for small settings, and so does the drawing of what they found."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "perf/papers/papers.sh"
BIN = os.environ["PROGRAMS"]
DIGITS = ROOT / "client/examples/digits/models"

LIVE = {
    "overhead": ["--rounds", "1", "--images", "16"],
    "memory": ["--only", "mlp"],
    "elastic": ["--only", "mlp", "--loads", "0.1", "--seconds", "0.2", "--saturated", "0.1", "--warmup", "0.05"],
    "diurnal": ["--only", "mlp", "--repeats", "1", "--saturated", "0.1", "--warmup", "0.05"],
    "live": ["--only", "mlp,lenet", "--batches", "8", "--seconds", "0.05"],
    "pause": ["--seconds", "0.3"],
    "netfuse": ["--copies", "2", "--seconds", "0.05", "--rounds", "1", "--networks_of_digits", "mlp64", "--models", "digits-mlp", "--lanes", "2", "--batches", "1",
                "--hybrids", "2"],
    "infaas": ["--loads", "0.2,0.5", "--seconds", "0.3", "--repeats", "1", "--latency_ms", "1000", "--saturated", "0.2"],
    "queries": ["--seconds", "0.2", "--turns", "1", "--saturated", "0.1", "--loads", "0.5,2", "--latency_ms", "1000"],
    "offline": ["--seconds", "0.3", "--settle", "0.3", "--rounds", "1", "--samples", "200000"],
    "fuse_table": ["--copies", "2", "--seconds", "0.2", "--networks_of_digits", "mlp"],
}  # fmt: skip
SIMULATED = {
    "tables": ["--only", "IMN1", "--gpus", "1,2", "--seeds", "1"],
    "policies": ["--only", "ResNet50", "--seeds", "1"],
    "gpulets": ["--only", "equal", "--profiles", "2080ti", "--rates", "0,600", "--sweep", "0"],
}
OF_THE_ZOO = ("memory", "elastic", "diurnal", "live")
PROGRAM = {"tables": "bench-allocation", "policies": "bench-policies", "gpulets": "bench-lets"}


def numbers(value):
    """Every number of a result, however deep."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []
    return [number for inner in value for number in numbers(inner)]


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with contextlib.ExitStack() as stack:
            cls.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="starling-papers-")))
            (cls.folder / "zoo").mkdir()
            for name in ("mlp", "lenet"):
                (cls.folder / f"zoo/{name}.onnx").symlink_to(DIGITS / name / "1/model.onnx")
            cls.addClassCleanup(stack.pop_all().close)

    def run_script(self, *words):
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), STARLING_SOCKET_DIR=str(self.folder), TMPDIR=str(self.folder))
        return subprocess.run([SCRIPT, *map(str, words)], capture_output=True, text=True, check=False, env=environment)

    def result_of(self, name, arguments):
        out = self.folder / f"{name}.json"
        more = ["--zoo", self.folder / "zoo"] if name in OF_THE_ZOO else []
        ended = self.run_script(name, *arguments, *more, "--out", out, "--program", os.path.join(BIN, PROGRAM.get(name, "starling")))
        self.assertEqual(ended.returncode, 0, ended.stdout[-2000:] + ended.stderr[-2000:])
        result = json.loads(out.read_text(encoding="utf-8"))
        self.assertEqual((result["benchmark"], result["live"]), (name, name in LIVE))
        self.assertRegex(result["command"], rf"^perf/papers/papers.sh {name}\b")
        self.assertTrue(result["commit"])
        self.assertGreater(len(numbers(result)), 5)
        return result

    def draw(self, name):
        picture = self.folder / f"{name}.svg"
        ended = self.run_script("plot", self.folder / f"{name}.json", picture)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return xml.etree.ElementTree.parse(picture).getroot()

    def texts(self, drawing):
        return [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]

    def test_live_experiments(self):
        made = subprocess.run([ROOT / "tools/venv.sh", "made", ROOT / "tests/conformance/made/requirements.txt"], capture_output=True, text=True, check=False)
        if made.returncode:
            self.skipTest(f"ONNX Runtime cannot be installed: {made.stderr.strip().splitlines()[-1]}")
        for name, arguments in LIVE.items():
            with self.subTest(name):
                self.result_of(name, arguments)
        for name, ways in (("elastic", 6), ("diurnal", 7)):
            texts = self.texts(self.draw(name))
            self.assertIn("mlp", texts)
            result = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            self.assertEqual(len(result["ways"]), ways)
            self.assertNotEqual(result["networks"][0]["opt_wait_us"], 30000, "a perceptron's wait is none of ResNet152's 30 ms")
            self.assertLessEqual(set(result["ways"]), set(texts), "each way has its line in the legend")

    def test_simulated_experiments(self):
        for name, arguments in SIMULATED.items():
            with self.subTest(name):
                self.result_of(name, arguments)
                self.assertIn("bound", self.texts(self.draw(name)))

    def test_a_name_that_is_none_ends_in_one_line_and_installs_nothing(self):
        for name in ("nonesuch", ""):
            ended = self.run_script(name)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr.count("\n")), (2, "", 1))
            self.assertIn(f'no experiment "{name}"', ended.stderr)

    def test_what_is_no_result_is_not_drawn(self):
        path = self.folder / "other.json"
        path.write_text('{"benchmark": "noop"}', encoding="utf-8")
        ended = self.run_script("plot", path, self.folder / "other.svg")
        self.assertEqual((ended.returncode, ended.stderr.count("\n")), (1, 1))
        self.assertIn("a result of noop", ended.stderr)


if __name__ == "__main__":
    unittest.main()
