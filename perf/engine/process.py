# SPDX-License-Identifier: Apache-2.0
"""An engine as a process that takes orders: one line out, one line of JSON back, with a time limit."""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile


class EngineError(Exception):
    """Why an engine did not do what it was told: its own text, or how it died."""


class Process:
    def __init__(self, name, command, cpus, environment=None):
        self.name = name
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
            bufsize=1,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # what it starts ends with it
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )

    def answer(self, seconds):
        """The next line; a process that is late is ended."""
        readable, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not readable:
            self.end()
            raise EngineError(f"no answer within {seconds} s")
        line = self.process.stdout.readline()
        if not line:
            raise EngineError(self._death())
        reply = json.loads(line)
        if "error" in reply:
            raise EngineError(reply["error"])
        return reply

    def order(self, text, seconds=240):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise EngineError(self._death()) from None
        return self.answer(seconds)

    def _death(self):
        code = self.process.wait(10)
        self.stderr.seek(0)
        last = self.stderr.read().strip().splitlines()[-1:]
        return " ".join([f"killed by signal {-code}" if code < 0 else f"ended with status {code}", *last])[:400]

    def memory(self):
        """Bytes resident now, and at most so far."""
        fields = {}
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                name, _, value = line.partition(":")
                fields[name] = value
        if "VmRSS" not in fields:  # it has ended and not been waited for
            raise EngineError(self._death())
        return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.stderr.closed:
            self.end()
