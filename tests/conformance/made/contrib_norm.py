# SPDX-License-Identifier: Apache-2.0
"""SkipLayerNormalization, SkipSimplifiedLayerNormalization, SimplifiedLayerNormalization, EmbedLayerNormalization."""

import itertools

import numpy as np
from case import node

B, S, H = 3, 5, 24


def floats(random, *shape):
    return random.standard_normal(shape, np.float32)


def make_skips(family):
    for simple, bias, total, skip in itertools.product((0, 1), (0, 1), (0, 1), ("same", "shared", "matrix")):
        if simple and skip == "shared" and total:
            continue
        case = f"skip{'_simple' * simple}{'_bias' * bias}{'_sum' * total}_{skip}"
        random = family.random(case)
        inputs = {"x": floats(random, B, S, H), "skip": floats(random, *{"same": (B, S, H), "shared": (1, S, H), "matrix": (S, H)}[skip])}
        constants = {"gamma": floats(random, H), "beta": floats(random, H), "bias": floats(random, H)}
        names = ["x", "skip", "gamma"] + ([] if simple else ["beta"]) + (["bias"] if bias else [])
        operator = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
        outputs = ["y", "", "", "sum"] if total else ["y"]
        family.add(
            case,
            [node(operator, names, outputs, epsilon=1e-5 if bias else None)],
            inputs,
            {name: constants[name] for name in names[2:]},
            outputs=[name for name in outputs if name],
        )
    random = family.random("skip")
    constants = {"gamma": floats(random, H), "bias": floats(random, H)}
    no_beta = node("SkipLayerNormalization", ["x", "skip", "gamma", "", "bias"], ["y"], epsilon=1e-3)
    family.add("skip_no_beta", [no_beta], {"x": floats(random, B, S, H), "skip": floats(random, B, S, H)}, constants)
    flat = node("SkipLayerNormalization", ["x", "skip", "gamma"], ["y"], epsilon=1e-3)
    family.add("skip_flat", [flat], {"x": floats(random, 7, H), "skip": floats(random, 7, H)}, {"gamma": constants["gamma"]})


def make_simple(family):
    random = family.random("simple")
    for name, axis, epsilon, shape in (("last", -1, 1e-5, (H,)), ("two", 1, 1e-3, (S, H)), ("usual", None, None, (H,))):
        one = node("SimplifiedLayerNormalization", ["x", "gamma"], ["y"], domain="", axis=axis, epsilon=epsilon, stash_type=1)
        family.add(f"simple_{name}", [one], {"x": floats(random, B, S, H)}, {"gamma": floats(random, *shape)})


def make_embeddings(family):
    for segments, mask, places, index in itertools.product((0, 1), (0, 1), ("none", "all", "shared"), (0, 1)):
        case = f"embed{'_segments' * segments}{'_mask' * mask}_{places}{'_sum' * index}"
        random = family.random(case)
        inputs = {"ids": random.integers(0, 50, (B, S), np.int32)}
        names = ["ids", "segments" if segments else "", "words", "positions", "kinds" if segments else "", "gamma", "beta"]
        names += ["mask" if mask else "", "places" if places != "none" else ""]
        if segments:
            inputs["segments"] = random.integers(0, 2, (B, S), np.int32)
        if mask:
            inputs["mask"] = random.integers(0, 2, (B, S), np.int32)
        if places != "none":
            inputs["places"] = random.integers(0, 9, (B if places == "all" else 1, S), np.int32)
        tables = {"words": (50, H), "positions": (9, H), "kinds": (2, H), "gamma": (H,), "beta": (H,)}
        constants = {name: floats(random, *shape) for name, shape in tables.items() if name in names}
        while not names[-1]:
            names.pop()
        outputs = ["y", "index", "sum"] if index else ["y", "index"]
        one = node("EmbedLayerNormalization", names, outputs, epsilon=1e-5 if mask else None, mask_index_type=1 if mask else None)
        family.add(case, [one], inputs, constants, outputs=outputs)


def make(family):
    make_skips(family)
    make_simple(family)
    make_embeddings(family)
