# SPDX-License-Identifier: Apache-2.0
"""The int8 variant of a model, as `starling quantize` writes it: one file for all engines."""

import os
import subprocess
import tempfile

import numpy as np
import onnx

CALIBRATION_SEED = 1  # that of the inputs that engines are compared on is 0
SAMPLES = 8  # half of them calibrate, the others say how accurate the variant is


def inputs_of(checking, model, batch, seed):
    """As checking.inputs_of(), in batches of one: what a sample is must not depend on how many there are."""
    samples = [checking.inputs_of(model, 1, seed=seed * 1000 + i) for i in range(batch)]
    return {name: np.concatenate([sample[name] for sample in samples]) for name in samples[0]}


def make(starling, checking, path, folder, max_loss):
    """The path of the variant, made where it is not there yet. Raises RuntimeError with the command's last line."""
    name = os.path.splitext(os.path.basename(path))[0]
    made = os.path.join(folder, f"{name}-int8.onnx")
    if os.path.exists(made) and os.path.getmtime(made) > os.path.getmtime(path):
        return made
    model = onnx.load(path, load_external_data=False)
    sizes = checking.open_sizes(model)
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        for port, array in inputs_of(checking, model, SAMPLES, CALIBRATION_SEED).items():
            np.save(os.path.join(data, port + ".npy"), array)
        where = data if len(model.graph.input) > 1 else os.path.join(data, model.graph.input[0].name + ".npy")
        command = [starling, "quantize", path, "--calibration", where, "--max-loss", str(max_loss), "-o", made + ".part"]
        command += ["-O", "shapes=" + ",".join(f"{symbol}={size}" for symbol, size in sizes.items())] if sizes else []
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"starling quantize ended with {done.returncode}"])[-1])
    os.replace(made + ".part", made)
    return made


def accuracy(path):
    """What `starling quantize` stored in the file: {cosine, float_products, ...}."""
    properties = onnx.load(path, load_external_data=False).metadata_props
    return {p.key.partition(".")[2]: p.value for p in properties if p.key.startswith("starling.")}
