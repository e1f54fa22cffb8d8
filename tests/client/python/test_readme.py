# SPDX-License-Identifier: Apache-2.0
"""The first programs that somebody meets run: examples/hello.py, and what the READMEs show. Skipped where `starling` is not built."""

import ast
import asyncio
import concurrent.futures
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
from world import RealRuntime

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
DIGITS = os.path.join(ROOT, "client", "examples", "digits", "models")
HELLO = os.path.join(ROOT, "client", "examples", "hello.py")
PYTHON_README = os.path.join(ROOT, "client", "python", "README.md")
READMES = [os.path.join(ROOT, "README.md"), PYTHON_README]


def blocks(path, language):
    """Each fenced block of that language, with the number of its first line."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(text[: found.start()].count("\n") + 2, found.group(1)) for found in fence.finditer(text)]


def run_block(source, name, names):
    """As a notebook's cell: `await` may stand outside of a function."""
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))  # noqa: S307: the project's own text
    else:
        exec(code, names)


@unittest.skipUnless(os.environ.get("STARLING_COMMAND"), "the runtime is not built")
class FirstProgramsTest(unittest.TestCase):
    def serve(self, models):
        """A runtime that programs find which name none."""
        runtime = RealRuntime(models)
        self.addCleanup(runtime.stop)
        runtime.connect().close()
        os.symlink(runtime.name + ".sock", os.path.join(runtime.folder, "starling.sock"))
        before = os.environ.get("STARLING_SOCKET_DIR")
        os.environ["STARLING_SOCKET_DIR"] = runtime.folder
        self.addCleanup(lambda: os.environ.pop("STARLING_SOCKET_DIR") if before is None else os.environ.update(STARLING_SOCKET_DIR=before))
        return runtime

    def hello(self, *arguments):
        return subprocess.run([sys.executable, "-B", HELLO, *arguments], capture_output=True, text=True)

    def test_hello_asks_any_model(self):
        self.serve(DIGITS)
        for arguments in ((), ("lenet",), ("digits", "starling")):
            done = self.hello(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^probabilities: float32 \[1, 10\] \[[-+.e0-9 \n]*\]\n$")
            self.assertEqual(len(re.findall(r"\d\.\d*", done.stdout)), 10, done.stdout)

    def test_hello_says_in_one_line_what_is_wrong(self):
        runtime = self.serve(DIGITS)
        done = self.hello("no-such-model")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^hello\.py: .*no-such-model.*\n$")
        self.assertNotIn("Traceback", done.stderr)
        runtime.process.terminate()

    def test_every_python_block_of_a_readme_runs(self):
        with open(os.path.join(DIGITS, "lenet", "1", "model.onnx"), "rb") as file:
            lenet = file.read()
        self.serve({"digits": lenet, "mine": lenet})
        n = 0
        for path in READMES:
            for line, source in blocks(path, "python"):
                with self.subTest(readme=os.path.relpath(path, ROOT), line=line):
                    run_block(source, f"{path}:{line}", {"load_images": lambda: np.zeros((300, 1, 8, 8), np.float32)})
                    n += 1
        self.assertGreaterEqual(n, 3)

    def test_the_retry_of_the_readme_outlives_a_runtime_that_is_killed_and_one_that_is_stopped(self):
        runtime = self.serve(DIGITS)
        names = {}
        source = next(source for _, source in blocks(PYTHON_README, "python") if "def ask(" in source)
        exec(source, names)
        image, stop, answers = np.zeros((1, 1, 8, 8), np.float32), threading.Event(), []

        def work(client):
            while not stop.is_set():
                answers.append(names["ask"](client, "lenet", image))

        with runtime.connect() as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
            expected = client.infer("lenet", image)
            asking = pool.submit(work, client)
            try:
                for end in (runtime.process.kill, runtime.process.terminate):
                    seen = len(answers)
                    while len(answers) < seen + 5 and not asking.done():
                        time.sleep(0.01)
                    getattr(runtime.process, end.__name__)()
                    runtime.process.wait()
                    runtime.start()
                seen = len(answers)
                while len(answers) < seen + 5 and not asking.done():
                    time.sleep(0.01)
            finally:
                stop.set()
            asking.result(60)
            for answer in answers:
                np.testing.assert_array_equal(answer, expected)

    def test_five_lines_of_the_readme_serve_ones_own_model(self):
        """The lines themselves, in a folder with nothing but the model; the runtime has a name that no other one has."""
        folder = tempfile.mkdtemp(prefix="starling-readme-")
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(os.path.join(DIGITS, "lenet", "1", "model.onnx"), os.path.join(folder, "mine.onnx"))
        shell, program = blocks(PYTHON_README, "sh")[0][1], blocks(PYTHON_README, "python")[0][1]
        self.assertEqual(len(shell.splitlines()) + len(program.splitlines()), 5)
        name = f"readme-{os.getpid()}"
        os.mkdir(os.path.join(folder, "bin"))
        wrapper = os.path.join(folder, "bin", "starling")
        with open(wrapper, "w") as file:
            file.write(f'#!/bin/sh\nln -s {name}.sock "{folder}/starling.sock"\nexec "{os.environ["STARLING_COMMAND"]}" "$@" --name {name}\n')
        os.chmod(wrapper, 0o755)
        with open(os.path.join(folder, "program.py"), "w") as file:
            file.write(program)
        done = subprocess.run(
            ["bash", "-c", f'{shell}"{sys.executable}" -B program.py; status=$?; kill $!; wait; exit $status'],
            cwd=folder,
            env=dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", STARLING_SOCKET_DIR=folder),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Port('image', float32, (None, 1, 8, 8))", done.stdout)
        self.assertEqual(len(re.findall(r"\d\.\d*", done.stdout)), 10, done.stdout)


if __name__ == "__main__":
    unittest.main()
