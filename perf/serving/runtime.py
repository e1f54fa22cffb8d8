# SPDX-License-Identifier: Apache-2.0
"""`starling serve`, as it starts by default, for a script that measures or checks it: a repository of links to ONNX files in a folder of its
own, which goes with the runtime. The runtime ends with the script even when nobody closes it."""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time

import starling

LOAD_SECONDS = 600


def end_with_parent():
    """For preexec_fn: a script that is killed cannot end what it started."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def write_repository(folder, models, ensembles, instances=1, configs=None, tasks=None):
    """`models`: {name: ONNX file}, each with so many workers; `ensembles`: {name: [members]}, whose mean is the answer; `configs`: {name:
    lines of its config.yaml}; `tasks`: likewise, of folders that have nothing else."""
    for name, path in models.items():
        version = os.path.join(folder, name, "1")
        os.makedirs(version)
        os.symlink(os.path.abspath(path), os.path.join(version, "model.onnx"))
        config = (configs or {}).get(name, f"instances: {instances}\n")
        with open(os.path.join(folder, name, "config.yaml"), "w", encoding="utf-8") as file:
            file.write(config)
    for name, members in ensembles.items():
        os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, name, "config.yaml"), "w", encoding="utf-8") as file:
            file.write(f"ensemble:\n  members: [{', '.join(members)}]\n  rule: mean\n")
    for name, config in (tasks or {}).items():
        os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, name, "config.yaml"), "w", encoding="utf-8") as file:
            file.write(config)


class Runtime:
    def __init__(self, command, models, ensembles=None, instances=1, configs=None, arguments=(), tasks=None):
        self.folder = tempfile.mkdtemp(prefix="starling-serving-")
        repository = os.path.join(self.folder, "models")
        os.mkdir(repository)
        write_repository(repository, models, ensembles or {}, instances, configs, tasks)
        self.log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        self.name = f"serving-{os.getpid()}"
        self.socket = os.path.join(self.folder, self.name + ".sock")
        self.process = subprocess.Popen([command, "serve", "--name", self.name, *arguments, repository], stdin=subprocess.DEVNULL, stderr=self.log,
                                        env=dict(os.environ, STARLING_SOCKET_DIR=self.folder), preexec_fn=end_with_parent)  # fmt: skip

    def connect(self, **options):
        """A client, once every model is served; `options` are those of starling.Client. Without an answer the runtime is closed."""
        try:
            return self._connect(options)
        except BaseException:
            self.close()
            raise

    def _connect(self, options):
        until = time.monotonic() + LOAD_SECONDS
        while True:
            try:
                return starling.Client(self.socket, timeout=1, **options)
            except starling.NotFound:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"no runtime: {self.said()}") from None
                time.sleep(0.1)

    def said(self):
        """The warnings and errors of its log."""
        self.log.seek(0)
        lines = [line for line in self.log if " error event=" in line or " warning event=" in line]
        return " ".join(lines).strip() or "the log says nothing"

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))

    def proportional_bytes(self):
        """Resident bytes, of each page its share among all mappings of it: what is mapped twice counts once."""
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)
