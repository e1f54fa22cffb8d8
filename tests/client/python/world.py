# SPDX-License-Identifier: Apache-2.0
"""A runtime for each test: the fake one of tests/client as a process of its own, or the real one where a test needs its models."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np
import starling

LIMIT = 120  # seconds in which what must come has come

# A shell starts what goes on in the background with SIGINT ignored, and Python then takes no interrupt: the tests are interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)


def asleep(task):
    """Returns when this thread waits: it has been seen to sleep, and not to run or to be about to, a hundred times."""
    seen = 0
    while seen < 100:
        time.sleep(0.001)
        with open(f"/proc/self/task/{task}/stat") as file:
            seen += file.read().rpartition(")")[2].split()[0] == "S"


def counting(rows, columns=4):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


class FakeRuntime:
    """$STARLING_FAKE_RUNTIME on a socket in a folder of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="starling-python-")
        self.socket = os.path.join(self.folder, "s.sock")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [os.environ["STARLING_FAKE_RUNTIME"], self.socket], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("the fake runtime does not start")

    def stop(self):
        """As if it hung: takes nothing, answers nothing, lives."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder)


class RealRuntime:
    """$STARLING_COMMAND serving a repository: a folder, or {name: bytes of its ONNX file, or files of its folder}."""

    def __init__(self, models, *arguments, configuration=None):
        self.folder = tempfile.mkdtemp(prefix="starling-python-")
        if configuration is not None:  # of the runtime itself
            with open(os.path.join(self.folder, "config.yaml"), "w") as file:
                file.write(configuration)
            arguments = ("--config", file.name, *arguments)
        self.name = f"python-{os.getpid()}"
        self.arguments = [*arguments, models if isinstance(models, str) else self._write(models)]
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [os.environ["STARLING_COMMAND"], "serve", "--name", self.name, *self.arguments],
            env=dict(os.environ, STARLING_SOCKET_DIR=self.folder),
            stderr=self.log,
        )

    def _write(self, models):
        for name, files in models.items():
            files = files if isinstance(files, dict) else {"1/model.onnx": files}
            for path, content in files.items():
                path = os.path.join(self.folder, "models", name, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(content)
        return os.path.join(self.folder, "models")

    def connect(self, **options):
        """Waits for models to load, but not for a runtime that has ended."""
        while True:
            try:
                return starling.Client(os.path.join(self.folder, self.name + ".sock"), timeout=60, **options)
            except starling.NotFound:
                if self.process.poll() is not None:
                    raise RuntimeError(f"the runtime has ended: {self.said()}") from None

    def said(self):
        """Its log."""
        self.log.seek(0)
        return self.log.read()

    def stats(self, *arguments):
        """What `starling stats` says."""
        return subprocess.run(
            [os.environ["STARLING_COMMAND"], "stats", self.name, *arguments],
            env=dict(os.environ, STARLING_SOCKET_DIR=self.folder),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def batches(self, model, executor):
        """Batches of the model that executors of this kind have computed, as `starling stats` says."""
        workers = json.loads(self.stats("--json"))["workers"]
        return sum(w["batches"] for w in workers if w["model"] == model and w["executor"] == executor)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


class WorldCase(unittest.TestCase):
    """A test with a fake runtime and a client of it."""

    def setUp(self):
        self.runtime = FakeRuntime()
        self.addCleanup(self.runtime.remove)
        self.client = self.connect()
        self.addCleanup(self.client.close)

    def connect(self, **options):
        return starling.Client(self.runtime.socket, timeout=60, **options)

    def signal_when_waiting(self, number):
        """Sends this thread a signal, once it waits."""
        thread, task = threading.get_ident(), threading.get_native_id()

        def send():
            asleep(task)
            signal.pthread_kill(thread, number)

        sending = threading.Thread(target=send)
        sending.start()
        return sending

    def close_before_answers(self, client):
        """Closes the client while the runtime does not answer, which goes on once close() waits for it."""
        task = threading.get_native_id()

        def go_on():
            asleep(task)
            self.runtime.go_on()

        going_on = threading.Thread(target=go_on)
        going_on.start()
        client.close()
        going_on.join()

    def interrupt_infer(self, client, **options):
        """A request that Ctrl-C ends, while the runtime does not answer."""
        with self.assertRaises(KeyboardInterrupt):
            pressing = self.signal_when_waiting(signal.SIGINT)
            client.infer("echo", np.ones((1, 4), np.float32), **options)
        pressing.join()
