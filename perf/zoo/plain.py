# SPDX-License-Identifier: Apache-2.0
"""Nets without shortcuts: LeNet, VGG, SqueezeNet, GoogLeNet, Inception, and Xception, which has a few."""


def lenet(net):
    x = net.image(1, 32)
    x = net.max_pool(net.relu(net.conv(x, 6, 5, pad=0, name="conv1")), 2, 2)
    x = net.max_pool(net.relu(net.conv(x, 16, 5, pad=0, name="conv2")), 2, 2)
    value, n = net.op("Flatten", [x.name], axis=1), x.channels * x.height * x.width
    for name, width, power in (("fc1", 120, x.power), ("fc2", 84, 0.5)):
        value, n = net.op("Relu", [net.gemm(value, n, width, power, name)]), width
    net.output(net.gemm(value, n, 10, 0.5, "fc3"), "output", ["N", 10])


def vgg(net, depths):
    x = net.image(3, 224)
    with net.scope("features"):
        for i, depth in enumerate(depths):
            for j in range(depth):
                x = net.relu(net.conv(x, min(64 << i, 512), 3, name=f"features.{i}.{j}"))
            x = net.max_pool(x, 2, 2)
    value, n = net.op("Flatten", [x.name], axis=1), x.channels * x.height * x.width
    with net.scope("classifier"):
        value = net.op("Relu", [net.gemm(value, n, 4096, x.power, "classifier.0")])
        value = net.op("Relu", [net.gemm(value, 4096, 4096, 0.5, "classifier.3")])
        value = net.gemm(value, 4096, 1000, 0.5, "classifier.6")
    net.output(value, "output", ["N", 1000])


def squeezenet(net):
    x = net.relu(net.conv(net.image(3, 224), 64, 3, 2, pad=0, name="features.0"))
    x = net.max_pool(x, 3, 2, ceil=True)
    for i, (squeeze, expand) in enumerate([(16, 64)] * 2 + [(32, 128)] * 2 + [(48, 192)] * 2 + [(64, 256)] * 2):
        with net.scope(f"fire{i + 2}"):
            x = net.relu(net.conv(x, squeeze, 1, name="squeeze"))
            x = net.concat([net.relu(net.conv(x, expand, k, name=f"expand{k}x{k}")) for k in (1, 3)])
        if i in (1, 3):
            x = net.max_pool(x, 3, 2, ceil=True)
    x = net.global_pool(net.relu(net.conv(x, 1000, 1, name="classifier.1")))
    net.output(net.op("Flatten", [x.name], axis=1), "output", ["N", 1000])


def _chain(net, x, layers, name):
    """Convolutions with ReLU, each (channels, kernel) or (channels, kernel, stride, pad)."""
    with net.scope(name):
        for i, layer in enumerate(layers):
            x = net.relu(net.conv(x, *layer, name=f"{name}.{i}"))
    return x


_GOOGLENET = (
    (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None,
    (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128), None,
    (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
)  # fmt: skip


def googlenet(net):
    x = net.max_pool(_chain(net, net.image(3, 224), [(64, 7, 2)], "conv1"), 3, 2, ceil=True)
    x = net.max_pool(_chain(net, x, [(64, 1), (192, 3)], "conv2"), 3, 2, ceil=True)
    for i, widths in enumerate(_GOOGLENET):
        if widths is None:
            x = net.max_pool(x, 3 if i == 2 else 2, 2, ceil=True)
            continue
        a, b0, b, c0, c, d = widths
        with net.scope(f"inception{i}"):
            branches = [_chain(net, x, [(a, 1)], "branch1"), _chain(net, x, [(b0, 1), (b, 3)], "branch2")]
            branches += [_chain(net, x, [(c0, 1), (c, 3)], "branch3")]
            branches += [_chain(net, net.max_pool(x, 3, 1, 1, ceil=True), [(d, 1)], "branch4")]
            x = net.concat(branches)
    net.classify(x)


def _inception_a(net, x, pool_width):
    pooled = net.average_pool(x, 3, 1, 1)
    return [
        _chain(net, x, [(64, 1)], "branch1x1"),
        _chain(net, x, [(48, 1), (64, 5)], "branch5x5"),
        _chain(net, x, [(64, 1), (96, 3), (96, 3)], "branch3x3dbl"),
        _chain(net, pooled, [(pool_width, 1)], "branch_pool"),
    ]


def _inception_b(net, x):
    return [
        _chain(net, x, [(384, 3, 2, 0)], "branch3x3"),
        _chain(net, x, [(64, 1), (96, 3), (96, 3, 2, 0)], "branch3x3dbl"),
        net.max_pool(x, 3, 2),
    ]


def _inception_c(net, x, width):
    row, column = (1, 7), (7, 1)
    pooled = net.average_pool(x, 3, 1, 1)
    return [
        _chain(net, x, [(192, 1)], "branch1x1"),
        _chain(net, x, [(width, 1), (width, row), (192, column)], "branch7x7"),
        _chain(net, x, [(width, 1), (width, column), (width, row), (width, column), (192, row)], "branch7x7dbl"),
        _chain(net, pooled, [(192, 1)], "branch_pool"),
    ]


def _inception_d(net, x):
    return [
        _chain(net, x, [(192, 1), (320, 3, 2, 0)], "branch3x3"),
        _chain(net, x, [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, 0)], "branch7x7x3"),
        net.max_pool(x, 3, 2),
    ]


def _inception_e(net, x):
    def split(y, name):
        return net.concat([_chain(net, y, [(384, (1, 3))], name + "a"), _chain(net, y, [(384, (3, 1))], name + "b")])

    pooled = net.average_pool(x, 3, 1, 1)
    return [
        _chain(net, x, [(320, 1)], "branch1x1"),
        split(_chain(net, x, [(384, 1)], "branch3x3_1"), "branch3x3_2"),
        split(_chain(net, x, [(448, 1), (384, 3)], "branch3x3dbl_1"), "branch3x3dbl_3"),
        _chain(net, pooled, [(192, 1)], "branch_pool"),
    ]


def inception_v3(net):
    x = _chain(net, net.image(3, 299), [(32, 3, 2, 0), (32, 3, 1, 0), (64, 3)], "Conv2d_1")
    x = net.max_pool(x, 3, 2)
    x = net.max_pool(_chain(net, x, [(80, 1), (192, 3, 1, 0)], "Conv2d_3"), 3, 2)
    blocks = [(_inception_a, 32), (_inception_a, 64), (_inception_a, 64), (_inception_b,)]
    blocks += [(_inception_c, width) for width in (128, 160, 160, 192)] + [(_inception_d,), (_inception_e,), (_inception_e,)]
    for i, (block, *widths) in enumerate(blocks):
        with net.scope(f"Mixed_{i}"):
            x = net.concat(block(net, x, *widths))
    net.classify(x)


def _separable(net, x, channels, name, gain=1.0):
    """Depthwise, pointwise and a batch norm of its own, as the Keras model has it."""
    with net.scope(name):
        x = net.conv(x, x.channels, 3, groups=x.channels, bias=False, name="depthwise")
        x = net.conv(x, channels, 1, bias=False, name="pointwise")
        return net.batch_norm(x, gain, epsilon=1e-3, name="bn")


def _xception_block(net, x, widths, stride, first_relu=True):
    out = x
    for i, width in enumerate(widths):
        out = net.relu(out) if i > 0 or first_relu else out
        out = _separable(net, out, width, f"sepconv{i + 1}", 0.3 if i + 1 == len(widths) else 1.0)
    if stride == 1:
        return net.add(out, x)
    out = net.max_pool(out, 3, 2, 1)
    return net.add(out, net.batch_norm(net.conv(x, widths[-1], 1, stride, bias=False, name="skip"), epsilon=1e-3, name="skipbn"))


def xception(net):
    x = net.image(3, 299)
    x = net.relu(net.batch_norm(net.conv(x, 32, 3, 2, 0, bias=False, name="conv1"), epsilon=1e-3, name="bn1"))
    x = net.relu(net.batch_norm(net.conv(x, 64, 3, 1, 0, bias=False, name="conv2"), epsilon=1e-3, name="bn2"))
    blocks = [((128, 128), 2), ((256, 256), 2), ((728, 728), 2), *[((728,) * 3, 1)] * 8, ((728, 1024), 2)]
    for i, (widths, stride) in enumerate(blocks):
        with net.scope(f"block{i + 1}"):
            x = _xception_block(net, x, widths, stride, i > 0)
    x = net.relu(_separable(net, x, 1536, "conv3"))
    net.classify(net.relu(_separable(net, x, 2048, "conv4")))
