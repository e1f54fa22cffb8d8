# SPDX-License-Identifier: Apache-2.0
"""`starling bench query`: every request that was due ends once, in every way at the same times; who answers is who has to, whatever the machine is busy with."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
STARLING = os.path.join(os.environ["PROGRAMS"], "starling")
DIGITS = ROOT / "client/examples/digits/models"
NETWORKS = {"mlp": 0.9783, "lenet": 0.9866}
ENDS = ("right", "degraded", "poor", "late", "refused", "failed")
TASK = "task:\n  variants: [mlp, lenet]\n  accuracy: [0.9783, 0.9866]\n  cost: [1, 3]\n  load: all\n"
WISHES = ("accuracy=0.98", "accuracy=0.97", "accuracy=0.99,least=0.98", "accuracy=0.99")  # lenet; mlp; lenet as least; nobody


class Query(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="starling-query-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for name in NETWORKS:
            (cls.folder / f"models/{name}/1").mkdir(parents=True)
            (cls.folder / f"models/{name}/1/model.onnx").symlink_to(DIGITS / name / "1/model.onnx")
        (cls.folder / "models/read").mkdir()
        (cls.folder / "models/read/config.yaml").write_text(TASK, encoding="utf-8")
        cls.environment = dict(os.environ, XDG_CACHE_HOME=str(cls.folder / "cache"), STARLING_SOCKET_DIR=str(cls.folder))
        cls.name = f"query-{os.getpid()}"
        said = cls.folder / "said"
        with open(said, "w", encoding="utf-8") as log:
            runtime = subprocess.Popen([STARLING, "serve", "--name", cls.name, str(cls.folder / "models")], env=cls.environment, stderr=log)
        cls.addClassCleanup(runtime.wait)
        cls.addClassCleanup(runtime.terminate)
        while "event=ready" not in said.read_text(encoding="utf-8"):
            if runtime.poll() is not None:
                raise RuntimeError(said.read_text(encoding="utf-8"))
            time.sleep(0.05)

    @classmethod
    def run_tool(cls, *words):
        return subprocess.run([STARLING, *words], capture_output=True, text=True, check=False, env=cls.environment)

    def query(self, *words):
        return self.run_tool("bench", "query", "--runtime", self.name, "read", *words)

    def test_every_request_ends_once_and_goes_to_whom_its_way_says(self):
        words = [word for wish in WISHES for word in ("--wish", wish)]
        ended = self.query(*words, "--rate", "300,900,300", "--seconds", "0.2", "--turns", "2", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads(ended.stdout)
        self.assertEqual(result["wishes"], list(WISHES))
        self.assertEqual([way["way"] for way in result["ways"]], ["choice", "accurate", "cheapest"])
        dues = [wish["due"] for wish in result["ways"][0]["turns"][0]["wishes"]]
        self.assertTrue(all(dues))
        for way in result["ways"]:
            self.assertEqual(len(way["turns"]), 2)
            for turn in way["turns"]:
                with self.subTest(way["way"]):
                    self.check_turn(way["way"], turn, dues)

    def check_turn(self, way, turn, dues):
        for counts in turn["wishes"] + turn["steps"]:
            self.assertEqual(counts["due"], sum(counts[end] for end in ENDS))
            self.assertEqual(counts["late"] + counts["failed"], 0, "nobody has said when")
        self.assertEqual([wish["due"] for wish in turn["wishes"]], dues)
        self.assertEqual(sum(step["due"] for step in turn["steps"]), sum(dues))
        self.assertGreater(turn["steps"][1]["due"], turn["steps"][0]["due"] + turn["steps"][2]["due"])
        self.assertGreater(turn["core_seconds"], 0)
        first, second, least, nobody = turn["wishes"]
        if way == "choice":
            self.assertEqual((first["right"], second["right"], least["degraded"], nobody["refused"]), tuple(dues))
            self.assertEqual(turn["answered_by"], {"lenet": dues[0] + dues[2], "mlp": dues[1]})
            self.assertIn("accuracy of at least 0.99", turn["first_error"])
        elif way == "accurate":
            self.assertEqual((first["right"], second["right"], least["degraded"], nobody["poor"]), tuple(dues))
            self.assertEqual(turn["answered_by"], {"lenet": sum(dues)})
        else:
            self.assertEqual((first["poor"], second["right"], least["poor"], nobody["poor"]), tuple(dues))
            self.assertEqual(turn["answered_by"], {"mlp": sum(dues)})

    def test_what_comes_too_late_is_late_with_and_without_a_deadline(self):
        for more in ([], ["--deadlines"]):
            ended = self.query("--wish", "accuracy=0.98,latency_ms=0.0001", "--rate", "200", "--seconds", "0.3", "--turns", "1", "--ways", "lenet", "--json", *more)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            wish = json.loads(ended.stdout)["ways"][0]["turns"][0]["wishes"][0]
            self.assertEqual((wish["late"], wish["due"] > 0), (wish["due"], True))

    def test_a_closed_loop_keeps_so_many_in_flight_and_answers_all(self):
        before = time.time()
        ended = self.query("--wish", "accuracy=0.97", "--concurrency", "3", "--seconds", "0.2", "--turns", "2", "--ways", "choice,mlp,lenet", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads(ended.stdout)
        self.assertEqual((result["concurrency"], result["rates"]), (3, []))
        for way in result["ways"]:
            for turn in way["turns"]:
                (wish,) = turn["wishes"]
                self.assertGreaterEqual(wish["due"], 3)
                self.assertEqual(wish["right"], wish["due"])
                self.assertEqual(turn["answered_by"], {"lenet" if way["way"] == "lenet" else "mlp": wish["due"]})
                self.assertLessEqual(wish["p50_ns"], wish["p99_ns"])
                self.assertLessEqual(wish["p99_ns"] * 0.98, wish["max_ns"])
                self.assertGreaterEqual(turn["seconds"], 0.2)
                self.assertLess(before, turn["begun_unix_ns"] / 1e9)
                self.assertLess(turn["begun_unix_ns"] / 1e9, time.time())

    def test_a_choice_by_itself_wants_no_runtime_and_is_as_right_as_brute_force(self):
        for variants in (1, 175, 256):
            ended = self.run_tool("bench", "query", "--choice", str(variants), "--seconds", "0.2", "--turns", "2", "--json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            result = json.loads(ended.stdout)
            self.assertEqual((result["variants"], len(result["turns"])), (variants, 2))
            for turn in result["turns"]:
                self.assertEqual(turn["wrong"], 0)
                self.assertGreater(turn["brute_force"]["n"], 0)
                self.assertGreater(turn["choices"]["n"], turn["renewals"]["n"])
                self.assertLessEqual(turn["renewals"]["n"], turn["rewritten"])
        said = self.run_tool("bench", "query", "--choice", "5", "--seconds", "0.1", "--turns", "1").stdout
        for text in ("choices", "renewals", "brute force", "0 choices were wrong"):
            self.assertIn(text, said)

    def test_without_json_there_is_a_table_of_each_way_and_wish(self):
        ended = self.query("--wish", WISHES[0], "--rate", "200", "--seconds", "0.1", "--turns", "1")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for text in ("choice: ", "accurate: ", "cheapest: ", WISHES[0], *ENDS):
            self.assertIn(text, ended.stdout)

    def test_what_is_wrong_is_named_and_where_help_is(self):
        for words, status, texts in (
            (["--wish", "accuracy=2"], 2, ["--wish accuracy=2", "accuracy", "1"]),
            (["--wish", "speed=2"], 2, ["speed"]),
            (["--rate", "0"], 2, ["--rate 0", "0.01"]),
            (["--rate", "5,"], 2, ["--rate 5,"]),
            (["--ways", "choice,nonesuch"], 2, ["nonesuch", "read"]),
            (["--in-flight", "0"], 2, ["in-flight", "1"]),
            (["other"], 2, ["one task"]),
            (["--choice", "257"], 2, ["choice", "256"]),
            (["--choice", "5"], 2, ["--choice"]),
            (["--concurrency", "0"], 2, ["concurrency", "1"]),
        ):
            with self.subTest(words):
                ended = self.query(*words)
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr.count("\n")), (status, "", 2), ended.stderr)
                for text in texts:
                    self.assertIn(text, ended.stderr)
        ended = self.run_tool("bench", "query", "--runtime", self.name, "nonesuch")
        self.assertEqual((ended.returncode, ended.stderr.count("\n")), (1, 1), ended.stderr)
        self.assertIn("nonesuch", ended.stderr)


if __name__ == "__main__":
    unittest.main()
