# SPDX-License-Identifier: Apache-2.0
"""Every network of the zoo through `starling serve` and the Python client, beside ONNX Runtime.

    served.py --zoo DIR [--command build/release/bin/starling] [--only NAME,NAME] [--batches 1,3]

One line for each network: the largest difference of any output, relative to the output's largest value, at each batch. Exit status 1
when a network is refused, or differs in shape, in type, or by more than 1e-4.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "client", "python"))

import numpy as np
import onnx
import onnxruntime

import checking
import starling
import starling.errors

ERROR_LIMIT = 1e-4
LOAD_SECONDS = 600


class Runtime:
    """`starling serve` with one model, and a client of it."""

    def __init__(self, command, path, name):
        self.folder = tempfile.mkdtemp(prefix="starling-zoo-")
        version = os.path.join(self.folder, "models", name, "1")
        os.makedirs(version)
        os.symlink(os.path.abspath(path), os.path.join(version, "model.onnx"))
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.process = subprocess.Popen(
            [command, "serve", "--name", f"zoo-{os.getpid()}", os.path.join(self.folder, "models")],
            env=dict(os.environ, STARLING_SOCKET_DIR=self.folder),
            stderr=self.log,
        )
        try:
            self.client = self._connect(os.path.join(self.folder, f"zoo-{os.getpid()}.sock"))
        except BaseException:
            self.close()
            raise

    def _connect(self, socket):
        until = time.monotonic() + LOAD_SECONDS
        while True:
            try:
                return starling.Client(socket, timeout=1, tensors_per_request=64, queue_depth=8)
            except starling.NotFound:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"no runtime: {self.said()}") from None

    def said(self):
        """The warnings and errors of its log."""
        self.log.seek(0)
        lines = [line for line in self.log if " error event=" in line or " warning event=" in line]
        return " ".join(lines).strip() or "the log says nothing"

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


def _difference(got, expected):
    """Relative to the largest value; of integers and booleans, how many differ is the difference."""
    if got.shape != expected.shape:
        raise ValueError(f"shape {got.shape}, ONNX Runtime {expected.shape}")
    if got.dtype != expected.dtype:
        raise ValueError(f"type {got.dtype}, ONNX Runtime {expected.dtype}")
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind != "f":
        return float((got != expected).mean())
    scale = max(np.abs(expected).max(), np.finfo(np.float32).tiny)
    return float(np.abs(got.astype(np.float64) - expected).max() / scale)


def _answers(client, name, inputs):
    model = client.model(name)
    answer = client.infer(model, {key: client.array(value) for key, value in inputs.items()})
    return list(answer.values()) if isinstance(answer, dict) else [answer]


def compare(command, path, name, batches):
    """[largest difference at each batch]; an exception says what was refused."""
    model = onnx.load(path, load_external_data=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    runtime = Runtime(command, path, name)
    try:
        worst = []
        for batch in batches:
            inputs = checking.inputs_of(model, batch)
            expected = session.run(None, inputs)
            got = _answers(runtime.client, name, inputs)
            worst.append(max(_difference(a, b) for a, b in zip(got, expected, strict=True)))
            del got
        return worst
    except starling.errors.StarlingError as error:
        raise RuntimeError(f"{error}; {runtime.said()}") from None
    finally:
        runtime.client.close()
        runtime.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", metavar="DIR", required=True, help="the folder with the models")
    parser.add_argument("--command", metavar="FILE", default=os.path.join(HERE, "../../build/release/bin/starling"))
    parser.add_argument("--only", metavar="NAMES", help="these models alone, separated by commas")
    parser.add_argument("--batches", metavar="LIST", default="1,3")
    options = parser.parse_args()
    batches = [int(batch) for batch in options.batches.split(",")]
    names = options.only.split(",") if options.only else sorted(f[:-5] for f in os.listdir(options.zoo) if f.endswith(".onnx"))
    failed = 0
    for name in names:
        try:
            worst = compare(options.command, os.path.join(options.zoo, name + ".onnx"), name, batches)
            said = ", ".join(f"batch {batch} {error:.1e}" for batch, error in zip(batches, worst))
            failed += max(worst) > ERROR_LIMIT
        except Exception as error:  # one network's failure is a line, the others go on
            said, failed = f"FAILED: {type(error).__name__}: {error}", failed + 1
        print(f"{name:28}{said}", flush=True)
    print(f"{len(names) - failed} of {len(names)} agree to {ERROR_LIMIT:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
