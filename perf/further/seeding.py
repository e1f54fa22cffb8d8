# SPDX-License-Identifier: Apache-2.0
"""Seeded weights for any module of PyTorch, such that activations keep their size from the first layer to the last.

Every parameter is drawn from one generator that is seeded with the model's name. Then one run on seeded inputs visits the layers in
the order in which they compute: a convolution or a product has its weights scaled so that its output has a standard deviation of one,
a batch norm gets the statistics of what it reads. So engines that differ in a layer differ visibly in the answer.

Sources: D. Mishkin, J. Matas, "All you need is a good init", 2016, section 3 (layer-sequential unit variance).
"""

import math
import zlib

import numpy as np
import torch
from torch import nn

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_MAGNIFIED = 2.0  # at most, by one layer: what fades within a branch is not brought back, for rounding errors would come with it
_PRODUCTS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d)


def generator(name):
    return np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))


def seed_module(module, name, example):
    """`example` holds the arguments of the module: a tuple, of which later layers see what earlier ones make."""
    module.eval()
    random = generator(name)
    with torch.no_grad():
        for owner in module.modules():
            for label, parameter in owner.named_parameters(recurse=False):
                parameter.copy_(torch.from_numpy(_drawn(random, owner, label, parameter)))
        _calibrate(module, example)
        for owner in module.modules():
            if getattr(owner, "bias", None) is not None and _is_product(owner):
                owner.bias.copy_(torch.from_numpy(_normal(random, owner.bias.shape, 0.1)))
    return module


def _normal(random, shape, deviation, mean=0.0):
    return (random.standard_normal(tuple(shape), np.float32) * np.float32(deviation) + np.float32(mean)).astype(np.float32)


def _is_norm(owner):
    return isinstance(owner, _BATCH_NORMS) or "Norm" in type(owner).__name__


def _is_product(owner):
    """Layers of which each output is a weighted sum; transformers has one of its own, with the weight turned."""
    return isinstance(owner, _PRODUCTS) or type(owner).__name__ == "Conv1D"


def _is_standardised(owner):
    """Convolutions that scale their weights themselves."""
    return "Std" in type(owner).__name__


def _gain(owner):
    """One, but for layers that whoever builds the network marks with `seeded_gain`."""
    return getattr(owner, "seeded_gain", 1.0)


def _drawn(random, owner, label, parameter):
    shape = parameter.shape
    if _is_norm(owner) and parameter.dim() == 1:
        return _normal(random, shape, 0.1, mean=0.0 if "bias" in label or "beta" in label else _gain(owner))
    if _is_product(owner):
        return np.zeros(shape, np.float32) if label == "bias" else _normal(random, shape, 1 / math.sqrt(_fan_in(owner, shape)))
    if isinstance(owner, nn.Embedding):
        return _normal(random, shape, 1.0)
    if parameter.dim() < 2 and "bias" not in label:
        return random.uniform(0.5, 1.0, tuple(shape)).astype(np.float32)  # scales of a branch, gains, temperatures
    if label.endswith("proj_weight"):
        return _normal(random, shape, 1 / math.sqrt(shape[-1]))
    return _normal(random, shape, 0.1 if "bias" in label else 0.5)  # positions, class tokens, queries of a decoder


def _fan_in(owner, shape):
    if type(owner).__name__ == "Conv1D":
        return shape[0]
    return math.prod(shape[1:])


def _calibrate(module, example):
    handles = []
    for owner in module.modules():
        if isinstance(owner, _BATCH_NORMS) and owner.track_running_stats:
            handles.append(owner.register_forward_pre_hook(_take_statistics))
        elif _is_product(owner) and not _is_standardised(owner):
            handles.append(owner.register_forward_hook(_scale_weight))
    module(*example)
    for handle in handles:
        handle.remove()


def _rounded(value):
    """Two digits, so that the order in which a processor adds does not show in the file."""
    return float(f"{value:.2g}")


def _scale_weight(owner, _, output):
    if getattr(owner, "seeded", False):
        return None
    owner.seeded = True
    scale = _rounded(_gain(owner) / max(float(output.std()), 1 / _MAGNIFIED))
    owner.weight.mul_(scale)
    return output * scale


def _take_statistics(owner, inputs):
    """
    Half of each channel's mean, and the spread around that: with the whole mean taken away, each norm of a chain magnifies what is
    left, and with it the rounding errors; with none, all inputs look alike at the end.
    """
    if getattr(owner, "seeded", False):
        return
    owner.seeded = True
    values = inputs[0]
    axes = [axis for axis in range(values.dim()) if axis != 1]
    mean = values.mean(axes) / 2
    spread = (values - mean.reshape([1, -1, *[1] * (values.dim() - 2)])).square().mean(axes)
    owner.running_mean.copy_(torch.tensor([_rounded(v) for v in mean.tolist()]))
    owner.running_var.copy_(torch.tensor([_rounded(max(v, 1 / _MAGNIFIED**2)) for v in spread.tolist()]))
