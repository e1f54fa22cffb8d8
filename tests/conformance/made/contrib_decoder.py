# SPDX-License-Identifier: Apache-2.0
"""GroupQueryAttention and RotaryEmbedding: prompts and next tokens, padded or not, caches, heads that share keys, windows, biases."""

import itertools

import numpy as np
from case import node

HEADS, LENGTH, BATCH, MOST = 4, 16, 2, 32


def floats(random, *shape):
    return random.standard_normal(shape, np.float32)


def caches(length):
    """Of cosines and sines, a row for each place."""
    angles = np.arange(MOST)[:, None] / 10000.0 ** (np.arange(length // 2) / (length // 2))
    return {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}


def add_rotary(family, case, rows=5, batch=3, by_heads=False, one_place=False, turned=LENGTH, **attributes):
    random = family.random(case)
    shape = (batch, HEADS, rows, LENGTH) if by_heads else (batch, rows, HEADS * LENGTH)
    places = np.array([3], np.int64) if one_place else random.integers(0, MOST, (batch, rows), np.int64)
    inputs = {"x": floats(random, *shape), "places": places}
    operator = node("RotaryEmbedding", ["x", "places", "cos", "sin"], ["y"], **attributes)
    family.add(case, [operator], inputs, caches(turned))


def add_group(family, case, rows=1, past=6, key_heads=2, padded=False, packed=False, rotary=False, bias=False, given_places=False, **attributes):
    random = family.random(case)
    keys = past + rows
    # Of each sample as many keys count. Where they differ, what lies behind them in a cache means nothing.
    lengths = np.full(BATCH, keys) if not padded else np.array([keys, keys - 2])
    if packed:
        inputs = {"q": floats(random, BATCH, rows, (HEADS + 2 * key_heads) * LENGTH)}
    else:
        inputs = {"q": floats(random, BATCH, rows, HEADS * LENGTH)}
        inputs |= {name: floats(random, BATCH, rows, key_heads * LENGTH) for name in ("k", "v")}
    if past:
        inputs |= {name: floats(random, BATCH, key_heads, past, LENGTH) for name in ("past_k", "past_v")}
        for name in ("past_k", "past_v"):
            inputs[name][1, :, lengths[1] - rows :] = 0
    inputs["lengths"] = (lengths - 1).astype(np.int32)
    constants = {"total": np.array(keys, np.int32)} | (caches(LENGTH) if rotary else {})
    if given_places:
        inputs["places"] = random.integers(0, MOST, (BATCH, rows), np.int64)
    if bias:
        inputs["bias"] = floats(random, 1, HEADS, rows, keys)
    known = inputs | constants
    names = [name if name in known else "" for name in ("q", "k", "v", "past_k", "past_v", "lengths", "total", "cos", "sin", "places", "bias")]
    while not names[-1]:
        names.pop()
    operator = node(
        "GroupQueryAttention",
        names,
        ["y", "present_k", "present_v"],
        num_heads=HEADS,
        kv_num_heads=key_heads,
        do_rotary=int(rotary) or None,
        **attributes,
    )
    family.add(case, [operator], inputs, constants, outputs=["y", "present_k", "present_v"])


def make(family):
    for by_heads, interleaved, one_place in itertools.product((0, 1), repeat=3):
        case = f"rotary{'_heads' * by_heads}{'_interleaved' * interleaved}{'_one_place' * one_place}"
        add_rotary(family, case, by_heads=by_heads, one_place=one_place, interleaved=interleaved, num_heads=HEADS)
    add_rotary(family, "rotary_heads_not_told")
    add_rotary(family, "rotary_part", turned=8, num_heads=HEADS, rotary_embedding_dim=8)
    add_rotary(family, "rotary_part_interleaved", turned=8, num_heads=HEADS, rotary_embedding_dim=8, interleaved=1)
    for key_heads, rotary in itertools.product((1, 2, 4), (False, True)):
        case = f"gqa_{key_heads}{'_rotary' * rotary}"
        add_group(family, f"{case}_prompt", rows=5, past=0, key_heads=key_heads, rotary=rotary)
        add_group(family, f"{case}_token", key_heads=key_heads, rotary=rotary)
    add_group(family, "gqa_token_padded", padded=True, rotary=True)
    add_group(family, "gqa_interleaved", rotary=True, rotary_interleaved=1)
    add_group(family, "gqa_places", rotary=True, given_places=True)
    add_group(family, "gqa_packed", packed=True, rotary=True)
    add_group(family, "gqa_packed_prompt", packed=True, rows=5, past=0, rotary=True)
    add_group(family, "gqa_scaled", scale=0.3)
    add_group(family, "gqa_capped", softcap=0.5)
    add_group(family, "gqa_bias", bias=True)
    add_group(family, "gqa_bias_capped", bias=True, softcap=0.5, rows=4, past=0)
    for window in (1, 3):
        add_group(family, f"gqa_window_{window}", local_window_size=window)
        add_group(family, f"gqa_window_{window}_prompt", local_window_size=window, rows=7, past=0)
