# SPDX-License-Identifier: Apache-2.0
"""What `weights: f16` and `bf16` gain on networks that wait for their weights, and what they cost in accuracy: BERT-base at 16 tokens (written
here), VGG-16 and the LSTM of the zoo, and what else is named. The times of one sample, on one thread and by a team of two, are medians of rounds in
which float32 and both kinds of halves take turns; accuracy is what `starling quantize` stores, on random samples."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "zoo"), os.path.join(HERE, "..", "serving")]

import sequence  # noqa: E402
from net import Net  # noqa: E402
from origin import origin  # noqa: E402

WEIGHTS = ("fp32", "f16", "bf16")
SAMPLES = 8


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_bert(path, tokens=16):
    net = Net("bert-base-16")
    sequence.bert(net, sequence.Shape(layers=12, width=768, heads=12, inner=3072, length=tokens))
    with open(path, "wb") as file:
        file.write(net.model().SerializeToString(deterministic=True))


def write_samples(model, folder):
    """The same random samples each time: numbers around 0, indices and masks of 0 and 1."""
    random = np.random.default_rng(1)
    for port in onnx.load(model, load_external_data=False).graph.input:
        shape = [SAMPLES] + [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim][1:]
        if port.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            values = random.standard_normal(shape).astype(np.float32)
        else:
            values = random.integers(0, 1000 if "ids" in port.name and "type" not in port.name else 2, shape, dtype=np.int64)
        np.save(os.path.join(folder, port.name + ".npy"), values)


def plan_bytes(starling, model, weights, folder):
    plan = os.path.join(folder, "plan")
    run(starling, "compile", model, "-o", plan, "-O", "weights=" + weights, "-O", "batch_max=1")
    return os.path.getsize(plan)


def accuracy(starling, model, weights, folder):
    """Lines of "key value", as quantize prints them; what it says where it cannot write the model."""
    try:
        text = run(starling, "quantize", "--weights", weights, "--calibration", folder, "--samples", "1", "-O", "batch_max=1", model,
                   "-o", os.path.join(folder, "variant.onnx"))
    except subprocess.CalledProcessError as refusal:
        return {"accuracy": refusal.stderr.strip()}
    lines = dict(line.split(None, 1) for line in text.splitlines())
    return {key: float(lines[key]) for key in ("cosine", "top_1_agreement") if key in lines}


def times(starling, model, weights, seconds):
    found = json.loads(run(starling, "profile", model, "--nodes", "--threads", "2", "--seconds", str(seconds), "--json", "-O",
                           "weights=" + weights, "-O", "batch_max=1"))
    return found["alone_ns"], found["team_ns"]


def measure(starling, model, rounds, seconds):
    taken = {weights: [] for weights in WEIGHTS}
    with tempfile.TemporaryDirectory() as folder:
        write_samples(model, folder)
        rows = {weights: {"plan_bytes": plan_bytes(starling, model, weights, folder)} for weights in WEIGHTS}
        for weights in WEIGHTS[1:]:
            rows[weights].update(accuracy(starling, model, weights, folder))
    for _ in range(rounds):
        for weights in WEIGHTS:
            taken[weights].append(times(starling, model, weights, seconds))
    for weights, row in rows.items():
        row["alone_ns"], row["team_ns"] = (statistics.median(column) for column in zip(*taken[weights]))
        row["speedup"] = rows["fp32"]["alone_ns"] / row["alone_ns"]
        row["team_speedup"] = rows["fp32"]["team_ns"] / row["team_ns"]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--zoo", required=True, metavar="DIR", help="take the models from DIR, as NAME.onnx (required)")
    parser.add_argument("--starling", required=True, metavar="FILE", help="run the command FILE (required)")
    parser.add_argument("--models", default="bert-base-16,vgg16,lstm", metavar="NAMES", help="measure the networks NAMES (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="take medians of N rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1, metavar="SECONDS", help="profile for SECONDS seconds each time (default: %(default)s)")
    parser.add_argument("--out", metavar="FILE", help="write the result to FILE as JSON, and keep the models that it has (default: none)")
    arguments = parser.parse_args()
    result = origin("perf/weights/weights.sh") | {"models": {}}
    if arguments.out and os.path.exists(arguments.out):
        with open(arguments.out, encoding="utf-8") as file:
            result["models"] = json.load(file)["models"]
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models.split(","):
            path = os.path.join(arguments.zoo, name + ".onnx")
            if name == "bert-base-16":
                path = os.path.join(folder, name + ".onnx")
                write_bert(path)
            result["models"][name] = measure(arguments.starling, path, arguments.rounds, arguments.seconds)
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
