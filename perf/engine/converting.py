# SPDX-License-Identifier: Apache-2.0
"""ONNX files in the formats of engines that have their own. A converter is a process, because it writes where it likes and may crash."""

import importlib.util
import os
import shutil
import subprocess
import sys

import onnx

_SECONDS = 100
_MNN = "import sys, _tools; _tools.mnnconvert(sys.argv)"  # the command of the wheel would install packages and send statistics


def output_names(path):
    return [value.name for value in onnx.load(path, load_external_data=False).graph.output]


def _run(command, folder, made):
    """The converter's last words when it does not make the files."""
    result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS)
    if result.returncode != 0 or not all(os.path.exists(path) for path in made):
        words = (result.stderr.strip() or result.stdout.strip() or "no word").splitlines()
        raise RuntimeError(f"not converted (status {result.returncode}): {words[-1][:200]}")


def to_ncnn(path, inputs, folder):
    """By pnnx, for the shapes of @inputs. The program alone: the package around it would import PyTorch."""
    program = os.path.join(importlib.util.find_spec("pnnx").submodule_search_locations[0], "pnnx")
    kinds = {"float32": "f32", "int64": "i64"}
    shapes = ",".join(f"[{','.join(map(str, a.shape))}]{kinds[str(a.dtype)]}" for a in inputs.values())
    stem = os.path.join(folder, "model")
    shutil.copyfile(path, stem + ".onnx")
    _run([program, stem + ".onnx", f"inputshape={shapes}", "fp16=0", f"ncnnparam={stem}.param", f"ncnnbin={stem}.bin"], folder,
         [stem + ".param", stem + ".bin"])  # fmt: skip
    return stem


def to_mnn(path, folder):
    stem = os.path.join(folder, "model.mnn")
    shutil.copyfile(path, stem + ".onnx")
    _run([sys.executable, "-c", _MNN, "-f", "ONNX", "--modelFile", stem + ".onnx", "--MNNModel", stem], folder, [stem])
    return stem
