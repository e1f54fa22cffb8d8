# SPDX-License-Identifier: Apache-2.0
"""A runtime for each test: the fake one of tests/client as a process of its own, or the real one where a test needs its models."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import starling


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


class WorldCase(unittest.TestCase):
    """A test with a fake runtime and a client of it."""

    def setUp(self):
        self.runtime = FakeRuntime()
        self.addCleanup(self.runtime.remove)
        self.client = self.connect()
        self.addCleanup(self.client.close)

    def connect(self, **options):
        return starling.Client(self.runtime.socket, timeout=10, **options)
