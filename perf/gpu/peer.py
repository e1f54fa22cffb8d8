#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer.py [--seconds S]: ResNet50 and BERT-base by PyTorch on this machine's GPU, as flat JSON.

Each as it is, behind a CUDA graph, and through torch.compile; batch 1 and 64, bfloat16 and (batch 1) float32. Inputs come from
pinned memory and outputs go back to it, as those of a request do. Weights are whatever PyTorch starts with: times do not depend on
them. Whoever fails is a line of its own.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

TOKENS = 128


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        same = channels == 4 * width and stride == 1
        self.side = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return torch.relu(self.main(x) + self.side(x))


def resnet50():
    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Block(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(30522, 768), nn.Embedding(512, 768), nn.LayerNorm(768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True, dropout=0)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)

    def forward(self, tokens):
        places = self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.layers(self.norm(self.words(tokens) + places))


def example(name, batch):
    return torch.randn(batch, 3, 224, 224) if name == "resnet50" else torch.randint(0, 1000, (batch, TOKENS))


def prepare(name, dtype):
    model = (resnet50() if name == "resnet50" else Bert()).eval().cuda().to(dtype)
    return model.to(memory_format=torch.channels_last) if name == "resnet50" else model


def graphed(model, x):
    """What replays a graph of the model that reads x."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    return graph.replay, y


def runner(way, model, x):
    if way == "graph":
        return graphed(model, x)
    if way == "compiled":
        model = torch.compile(model)
        for _ in range(3):
            model(x)
        return graphed(model, x)
    holder = [model(x)]

    def run():
        holder[0] = model(x)

    return run, holder[0]


def measure(name, dtype, batch, way, seconds):
    source = example(name, batch)
    source = (source.to(dtype) if source.is_floating_point() else source).pin_memory()
    x = source.cuda()
    if name == "resnet50":
        x = x.to(memory_format=torch.channels_last)
    run, y = runner(way, prepare(name, dtype), x)
    result = torch.empty(y.shape, dtype=y.dtype).pin_memory()

    def request():
        x.copy_(source, non_blocking=True)
        run()
        result.copy_(y, non_blocking=True)

    for _ in range(20):
        request()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:  # one after another
        start = time.perf_counter()
        request()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:  # ten queued at once
        for _ in range(10):
            request()
        torch.cuda.synchronize()
        count += 10 * batch
    rate = count / (time.perf_counter() - start)
    return {"median_us": round(statistics.median(times) * 1e6, 1), "samples_per_s": round(rate, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, metavar="SECONDS", help="measure for SECONDS seconds (default: %(default)s)")
    seconds = parser.parse_args().seconds / 2
    torch.set_grad_enabled(False)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False  # fp32 is that, as Starling's is
    for name in ("resnet50", "bert-base"):
        for dtype, batch in ((torch.float32, 1), (torch.bfloat16, 1), (torch.bfloat16, 64)):
            for way in ("eager", "graph", "compiled"):
                row = {"model": name, "precision": "fp32" if dtype == torch.float32 else "bf16", "batch": batch, "way": way}
                try:
                    row.update(measure(name, dtype, batch, way, seconds))
                except Exception as error:  # one way's failure is a line, the others go on
                    row["why"] = f"{type(error).__name__}: {error}".split("\n")[0][:120].replace(",", ";").replace('"', "'")
                row["torch"] = torch.__version__
                print(json.dumps(row, separators=(",", ":")), flush=True)
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
