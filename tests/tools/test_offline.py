# SPDX-License-Identifier: Apache-2.0
"""test_offline.py STARLING DIGITS: `starling offline` beside `starling serve`.

Answers are compared with what ONNX Runtime has predicted (DIGITS/expected). Files are read and written here byte by byte, so that
no code is shared with what is tested, and no package is needed.
"""

import array
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

STARLING, DIGITS = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL, PIXELS, CLASSES = "resnet", 64, 10
KILL_SECONDS = 6
HANG_SECONDS = 120
TIMES = 2 if b"__asan_init" in pathlib.Path(STARLING).read_bytes() else 100  # the images, one behind the other


def npy(shape, data, descr="<f4", order="False"):
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (descr, order, "".join("%d, " % n for n in shape))
    header = text.encode() + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def floats(path):
    values = array.array("f")
    values.frombytes(path.read_bytes())
    return values


IMAGES = (DIGITS / "test-images.f32").read_bytes()
EXPECTED = floats(DIGITS / "expected" / (MODEL + ".f32"))
N = len(IMAGES) // (4 * PIXELS)


class Offline(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "models").mkdir()
        (self.folder / "models" / MODEL).symlink_to((DIGITS / "models" / MODEL).resolve())
        self.name = "offline-%d" % os.getpid()
        self.environment = os.environ | {
            "XDG_STATE_HOME": str(self.folder / "state"),
            "STARLING_SOCKET_DIR": str(self.folder / "run"),
        }
        self.runtime = None
        self.start()
        self.addCleanup(self.stop)

    def start(self):
        self.runtime = subprocess.Popen(
            [STARLING, "serve", "--name", self.name, str(self.folder / "models")], stderr=subprocess.PIPE, text=True, env=self.environment
        )
        for line in self.runtime.stderr:
            if "event=ready" in line:
                break
        # What it says later is read by nobody, and is little.

    def stop(self, sign=signal.SIGTERM):
        self.runtime.send_signal(sign)
        self.runtime.wait()
        self.runtime.stderr.close()

    def offline(self, *arguments, status=0):
        done = subprocess.run([STARLING, "offline", "--name", self.name, *map(str, arguments)], capture_output=True, text=True, env=self.environment)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else done.stdout

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def jobs(self):
        return {job["job"]: job for job in json.loads(self.offline("list", "--json"))}

    def await_state(self, job, *states):
        until = time.monotonic() + HANG_SECONDS
        while (state := self.jobs()[job]["state"]) not in states:
            self.assertLess(time.monotonic(), until, self.jobs()[job])
            time.sleep(0.02)
        return state

    def check(self, path, times=1, first=0, samples=N):
        content = path.read_bytes()
        begin = 10 + int.from_bytes(content[8:10], "little")
        self.assertIn(b"'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)" % (times * samples, CLASSES), content[:begin])
        got = array.array("f")
        got.frombytes(content[begin:])
        self.assertEqual(len(got), times * samples * CLASSES)
        wanted = EXPECTED[first * CLASSES : (first + samples) * CLASSES]
        for k in range(times):
            part = got[k * len(wanted) : (k + 1) * len(wanted)]
            self.assertTrue(all(abs(a - b) <= 1e-5 for a, b in zip(part, wanted)), "repetition %d" % k)

    def test_a_file_and_a_folder_are_computed_and_listed(self):
        whole = self.write("in.npy", npy((N, 1, 8, 8), IMAGES))
        out = self.folder / "out.npy"
        job = int(self.offline("submit", "--wait", MODEL, whole, out))
        self.check(out)
        self.assertEqual((self.jobs()[job]["state"], self.jobs()[job]["done"]), ("done", N))
        self.assertIn("exists", self.offline("submit", MODEL, whole, out, status=1))
        self.offline("cancel", job)
        self.check(out)
        self.assertEqual(self.jobs(), {})
        for i, (first, n) in enumerate(((0, 20), (20, 1), (21, 70))):
            content = IMAGES[first * 256 : (first + n) * 256]
            self.write("folder/%d.npy" % i, npy((n, 1, 8, 8) if n > 1 else (1, 8, 8), content))
        self.offline("submit", "--wait", "--replace", "--rule", "none", MODEL, self.folder / "folder", out)
        self.check(out, samples=91)

    def test_what_is_wrong_is_said_at_once(self):
        out = self.folder / "out.npy"
        cases = (
            (npy((N, 1, 8, 8), IMAGES * 2, "<f8"), "float64.*wants float32"),
            (npy((N, 8, 8), IMAGES), "3 axes.*wants 4"),
            (npy((N, 1, 4, 16), IMAGES), "axis 2 has 4.*wants 8"),
            (npy((N, 1, 8, 8), IMAGES, order="True"), "Fortran order"),
            (npy((N, 1, 8, 8), IMAGES[:-1]), "its shape takes"),
            (npy((N, 1, 8, 8), IMAGES, "<c8"), "type <c8"),
            (npy((0, 1, 8, 8), b""), "no samples"),
            (npy((2**40, 2**40, 8, 8), b""), "its shape takes"),
            (b"\x93NUMPY\x01\x00\xff\x00{}", "ends within its header"),
            (b"", "no .npy file"),
        )
        for content, text in cases:
            self.assertRegex(self.offline("submit", MODEL, self.write("in.npy", content), out, status=1), text)
        self.write("mixed/a.npy", npy((1, 1, 8, 8), IMAGES[:256]))
        self.write("mixed/b.txt", b"")
        self.assertRegex(self.offline("submit", MODEL, self.folder / "mixed", out, status=1), "b.txt: a folder of samples has .npy files alone")
        self.write("differ/a.npy", npy((1, 1, 8, 8), IMAGES[:256]))
        self.write("differ/b.npy", npy((1, 1, 4, 8), IMAGES[:128]))
        self.assertRegex(self.offline("submit", MODEL, self.folder / "differ", out, status=1), "b.npy: its samples differ")
        good = self.write("in.npy", npy((N, 1, 8, 8), IMAGES))
        self.assertRegex(self.offline("submit", "none", good, out, status=1), 'no model "none"')
        self.assertRegex(self.offline("submit", MODEL, good, self.folder / "out.txt", status=1), "is a .npy file")
        self.assertRegex(self.offline("submit", "--needs", "accuracy=2", MODEL, good, out, status=1), "accuracy")
        self.assertRegex(self.offline("pause", "77", status=1), "no job 77")
        self.assertEqual(self.jobs(), {})
        self.assertEqual(list(self.folder.glob("out*")), [])

    def test_a_job_is_paused_resumed_and_cancelled_and_waits_for_its_runtime(self):
        times = TIMES
        source = self.write("in.npy", npy((times * N, 1, 8, 8), IMAGES * times))
        out = self.folder / "out.npy"
        job = int(self.offline("submit", "--rule", "none", MODEL, source, out))
        self.offline("pause", job)
        self.assertIn(self.jobs()[job]["state"], ("paused", "done"))
        self.stop()
        self.offline("resume", job)
        if self.jobs()[job]["state"] != "done":
            self.await_state(job, "waiting")
        self.start()
        self.await_state(job, "done")
        self.check(out, times)
        job = int(self.offline("submit", "--replace", MODEL, source, out))
        self.offline("cancel", job)
        self.assertNotIn(job, self.jobs())
        self.assertEqual([path.name for path in self.folder.glob("out.npy*")], ["out.npy"])

    def test_a_job_whose_folder_is_removed_ends_and_leaves_nothing(self):
        source = self.write("in.npy", npy((TIMES * N, 1, 8, 8), IMAGES * TIMES))
        job = int(self.offline("submit", "--rule", "none", MODEL, source, self.folder / "out.npy"))
        self.stop()
        if self.await_state(job, "waiting", "done") == "done":
            self.skipTest("the job was done before its runtime ended")
        process = self.jobs()[job]["process"]
        shutil.rmtree(self.folder / "state")
        until = time.monotonic() + HANG_SECONDS
        while os.path.exists("/proc/%d" % process):
            self.assertLess(time.monotonic(), until, "its process goes on")
            time.sleep(0.02)
        self.assertEqual(list(self.folder.glob("out*")), [])
        self.start()

    def test_an_input_that_changes_ends_the_job_with_its_name(self):
        times = TIMES
        source = self.write("in.npy", npy((times * N, 1, 8, 8), IMAGES * times))
        job = int(self.offline("submit", "--rule", "none", MODEL, source, self.folder / "out.npy"))
        self.offline("pause", job)
        if self.jobs()[job]["state"] == "paused":
            self.write("in.npy", npy((times * N, 1, 8, 8), IMAGES * (times - 1) + bytes(len(IMAGES))))
            self.offline("resume", job)
            self.await_state(job, "failed")
            self.assertRegex(self.jobs()[job]["why"], "in.npy: it has changed")

    def test_either_side_is_killed_at_any_moment_and_nothing_is_lost_or_doubled(self):
        times = TIMES
        source = self.write("in.npy", npy((times * N, 1, 8, 8), IMAGES * times))
        out = self.folder / "out.npy"
        dice = random.Random(os.getpid())
        job = int(self.offline("submit", "--rule", "none", MODEL, source, out))
        until = time.monotonic() + KILL_SECONDS
        kills = killed = 0
        while time.monotonic() < until and self.jobs()[job]["state"] != "done":
            time.sleep(dice.random() * 0.2)
            if dice.random() < 0.6:
                process = self.jobs()[job]["process"]
                if process not in (0, killed) and self.jobs()[job]["state"] in ("running", "waiting"):
                    os.kill(process, signal.SIGKILL)
                    killed = process
                    self.await_state(job, "stopped", "done")
                if self.jobs()[job]["state"] != "done":
                    self.offline("resume", job)
            else:
                self.stop(signal.SIGKILL)
                self.start()
            kills += 1
        self.await_state(job, "done")
        self.check(out, times)
        self.assertEqual(self.jobs()[job]["done"], times * N)
        print("%d kills" % kills)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
