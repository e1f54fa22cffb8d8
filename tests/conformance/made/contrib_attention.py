# SPDX-License-Identifier: Apache-2.0
"""Attention and MultiHeadAttention: masks of all forms, caches, biases, layouts, causal or not, widths that differ."""

import itertools

import numpy as np
from case import node

B, S, HEADS, LENGTH, PAST = 3, 5, 2, 8, 4
WIDTH = HEADS * LENGTH
PLAIN = {"causal": 0, "past": 0, "mask": None, "added": None, "scale": None, "filter": None}


def floats(random, *shape):
    return random.standard_normal(shape, np.float32)


def mask_of(random, kind, queries, keys):
    """Right padding, padding on both sides, or a mask for each key."""
    if kind == "ends":
        return random.integers(1, keys + 1, B, np.int32)
    if kind == "begins":
        begins = random.integers(0, keys // 2, B, np.int32)
        return np.concatenate([random.integers(keys // 2, keys + 1, B, np.int32), begins])
    shape = {"keys": (B, keys), "pairs": (B, queries, keys)}[kind]
    mask = random.integers(0, 2, shape, np.int32)
    mask[..., 0] = 1
    return mask


def bias_of(random, kind, queries, keys):
    shape = {"whole": (B, HEADS), "heads": (1, HEADS), "batch": (B, 1), "one": (1, 1)}[kind]
    return floats(random, *shape, queries, keys)


def add_attention(family, case, sizes=None, bias=True, **options):
    option = PLAIN | options
    random = family.random(case)
    widths = sizes or [WIDTH] * 3
    keys = S + PAST * bool(option["past"])
    inputs, constants = {"x": floats(random, B, S, 12)}, {"w": floats(random, 12, sum(widths)) / 3}
    constants["b"] = floats(random, sum(widths)) * bias
    if option["mask"]:
        inputs["mask"] = mask_of(random, option["mask"], S, keys)
    if option["past"] == "given":
        inputs["past"] = floats(random, 2, B, HEADS, PAST, LENGTH)
    if option["added"]:
        inputs["added"] = bias_of(random, option["added"], S, keys)
    names = [name if name in inputs | constants else "" for name in ("x", "w", "b", "mask", "past", "added")]
    outputs = ["y", "present"] if option["past"] else ["y"]
    attributes = {
        "num_heads": HEADS,
        "unidirectional": option["causal"] or None,
        "qkv_hidden_sizes": sizes,
        "scale": option["scale"],
        "mask_filter_value": option["filter"],
    }
    with_bias = node("Attention", names, outputs, **attributes)
    # ONNX Runtime 1.31 does not survive one without a bias.
    without = node("Attention", [name if name != "b" else "" for name in names], outputs, **attributes)
    family.add(case, [with_bias if bias else without], inputs, constants, outputs=outputs, reference=[with_bias])


def make_attentions(family):
    for causal, past, mask in itertools.product((0, 1), (0, "given"), (None, "ends", "begins", "keys", "pairs")):
        add_attention(family, f"attention{'_causal' * causal}{'_past' * bool(past)}_{mask or 'all'}", causal=causal, past=past, mask=mask)
    for kind in ("whole", "heads", "batch", "one"):
        add_attention(family, f"attention_added_{kind}", added=kind)
    add_attention(family, "attention_added_and_masked", added="heads", mask="keys", causal=1)
    add_attention(family, "attention_no_bias", bias=False)
    add_attention(family, "attention_scaled", scale=0.3)
    add_attention(family, "attention_filter", filter=-2.5, mask="keys")
    add_attention(family, "attention_sizes", sizes=[WIDTH, WIDTH, 3 * HEADS])
    add_attention(family, "attention_sizes_masked", sizes=[2 * HEADS, 2 * HEADS, 5 * HEADS], mask="ends", causal=1)
    add_attention(family, "attention_sizes_equal", sizes=[WIDTH] * 3)


def add_heads(family, case, layout="rows", keys=S, value_length=LENGTH, projected_bias=False, **options):
    option = PLAIN | options
    random = family.random(case)
    total = keys + PAST * bool(option["past"])
    if layout == "rows":
        inputs = {"q": floats(random, B, S, WIDTH), "k": floats(random, B, keys, WIDTH), "v": floats(random, B, keys, HEADS * value_length)}
    else:
        inputs = {"q": floats(random, B, S, WIDTH), "k": floats(random, B, HEADS, keys, LENGTH), "v": floats(random, B, HEADS, keys, LENGTH)}
    constants = {"b": floats(random, 2 * WIDTH + HEADS * value_length)} if projected_bias else {}
    if option["mask"]:
        inputs["mask"] = mask_of(random, option["mask"], S, total)
    if option["added"]:
        inputs["added"] = bias_of(random, option["added"], S, total)
    if option["past"] == "given":
        inputs["past_k"] = floats(random, B, HEADS, PAST, LENGTH)
        inputs["past_v"] = floats(random, B, HEADS, PAST, value_length)
    names = [name if name in inputs | constants else "" for name in ("q", "k", "v", "b", "mask", "added", "past_k", "past_v")]
    while not names[-1]:
        names.pop()
    outputs = ["y", "present_k", "present_v"] if option["past"] else ["y"]
    one = node(
        "MultiHeadAttention",
        names,
        outputs,
        num_heads=HEADS,
        unidirectional=option["causal"] or None,
        scale=option["scale"],
        mask_filter_value=option["filter"],
    )
    family.add(case, [one], inputs, constants, outputs=outputs)


def add_packed(family, case, shapes):
    """Layouts that ONNX Runtime has on other devices only: what they hold, taken apart, is what it computes here."""
    random = family.random(case)
    inputs = {name: floats(random, *shape) for name, shape in shapes.items()}
    packed = list(inputs)[-1]
    parts = ["q", "k", "v"][-inputs[packed].shape[3] :]
    constants = {"rows": np.array([0, 0, -1])} | {f"index_{name}": np.array(i) for i, name in enumerate(parts)}
    reference = []
    for name in parts:
        reference.append(node("Gather", [packed, f"index_{name}"], [f"heads_{name}"], domain="", axis=3))
        reference.append(node("Reshape", [f"heads_{name}", "rows"], [f"rows_{name}"], domain=""))
    rows = [name if name not in parts else f"rows_{name}" for name in ("q", "k", "v")]
    reference.append(node("MultiHeadAttention", rows, ["y"], num_heads=HEADS))
    family.add(case, [node("MultiHeadAttention", list(inputs), ["y"], num_heads=HEADS)], inputs, constants, reference=reference)


def make_heads(family):
    for causal, past, mask in itertools.product((0, 1), (0, "given"), (None, "ends", "keys", "pairs")):
        if past and mask == "ends":
            continue
        add_heads(family, f"heads{'_causal' * causal}{'_past' * bool(past)}_{mask or 'all'}", causal=causal, past=past, mask=mask)
    for kind in ("whole", "heads", "batch", "one"):
        add_heads(family, f"heads_added_{kind}", added=kind)
    add_heads(family, "heads_added_and_masked", added="heads", mask="keys", causal=1)
    add_heads(family, "heads_bias", projected_bias=True)
    add_heads(family, "heads_bias_past", projected_bias=True, past="given")
    add_heads(family, "heads_more_keys", keys=9)
    add_heads(family, "heads_more_keys_bias", keys=9, projected_bias=True, mask="keys")
    add_heads(family, "heads_long_values", value_length=5)
    add_heads(family, "heads_long_values_bias", value_length=5, projected_bias=True)
    add_heads(family, "heads_scaled", scale=0.3)
    add_heads(family, "heads_filter", filter=-2.5, mask="keys")
    add_heads(family, "heads_cross", layout="cross", keys=7)
    add_heads(family, "heads_cross_masked", layout="cross", keys=7, mask="keys")
    add_packed(family, "heads_packed_pairs", {"q": (B, S, WIDTH), "k": (B, 7, HEADS, 2, LENGTH)})
    add_packed(family, "heads_packed", {"q": (B, S, HEADS, 3, LENGTH)})


def make(family):
    make_attentions(family)
    make_heads(family)
