# SPDX-License-Identifier: Apache-2.0
"""Gelu in its forms: Gelu, BiasGelu, FastGelu with and without a bias, QuickGelu."""

import numpy as np
from case import node


def make(family):
    shapes = {"vector": (7,), "matrix": (3, 16), "sequence": (2, 5, 24), "long": (1, 3, 130)}
    for name, shape in shapes.items():
        random = family.random(name)
        x = 3 * random.standard_normal(shape, np.float32)
        bias = random.standard_normal(shape[-1:], np.float32)
        family.add(f"gelu_{name}", [node("Gelu", ["x"], ["y"])], {"x": x})
        family.add(f"fast_{name}", [node("FastGelu", ["x"], ["y"])], {"x": x})
        family.add(f"fast_bias_{name}", [node("FastGelu", ["x", "bias"], ["y"])], {"x": x, "bias": bias})
        family.add(f"fast_constant_bias_{name}", [node("FastGelu", ["x", "bias"], ["y"])], {"x": x}, {"bias": bias})
        family.add(f"bias_{name}", [node("BiasGelu", ["x", "bias"], ["y"])], {"x": x, "bias": bias})
        family.add(f"bias_constant_{name}", [node("BiasGelu", ["x", "bias"], ["y"])], {"x": x}, {"bias": bias})
        family.add(f"quick_{name}", [node("QuickGelu", ["x"], ["y"])], {"x": x})
        family.add(f"quick_alpha_{name}", [node("QuickGelu", ["x"], ["y"], alpha=0.7)], {"x": x})
        family.add(f"quick_silu_{name}", [node("QuickGelu", ["x"], ["y"], alpha=1.0)], {"x": x})
