# SPDX-License-Identifier: Apache-2.0
"""Nets with shortcuts: ResNet, ResNeXt, DenseNet."""


def _convolved(net, x, channels, kernel, name, batch_norm=None, **options):
    """A convolution with its batch norm folded in, as exporters do, or beside it when `batch_norm` names one."""
    if batch_norm is None:
        return net.conv(x, channels, kernel, name=name, **options)
    gain = options.pop("gain", 1.0)
    return net.batch_norm(net.conv(x, channels, kernel, name=name, bias=False, **options), gain, name=batch_norm)


def _shortcut(net, x, channels, stride, unfolded):
    if stride == 1 and x.channels == channels:
        return x
    with net.scope("downsample"):
        return _convolved(net, x, channels, 1, "downsample.0", "downsample.1" if unfolded else None, stride=stride)


def _join(net, x, out, stride, unfolded):
    """An identity shortcut is positive already: the ReLU takes next to nothing from it, and half of a projected one."""
    shortcut = _shortcut(net, x, out.channels, stride, unfolded)
    total = net.add(out, shortcut)
    return net.relu(total, x.power + 0.7 * out.power if shortcut is x else total.power / 2)


def _basic_block(net, x, width, stride, unfolded):
    out = net.relu(_convolved(net, x, width, 3, "conv1", "bn1" if unfolded else None, stride=stride))
    out = _convolved(net, out, width, 3, "conv2", "bn2" if unfolded else None, gain=0.3)
    return _join(net, x, out, stride, unfolded)


def _bottleneck(net, x, width, stride, groups, group_width):
    inner = width * group_width * groups // 64
    out = net.relu(net.conv(x, inner, 1, name="conv1"))
    out = net.relu(net.conv(out, inner, 3, stride, groups=groups, name="conv2"))
    out = net.conv(out, width * 4, 1, gain=0.3, name="conv3")
    return _join(net, x, out, stride, False)


def resnet(net, depths, bottleneck, groups=1, group_width=64, unfolded=False):
    x = net.image(3, 224)
    x = net.relu(_convolved(net, x, 64, 7, "conv1", "bn1" if unfolded else None, stride=2))
    with net.scope("maxpool"):
        x = net.max_pool(x, 3, 2, 1)
    for i, depth in enumerate(depths):
        with net.scope(f"layer{i + 1}"):
            for j in range(depth):
                stride = 2 if i > 0 and j == 0 else 1
                with net.scope(f"layer{i + 1}.{j}"):
                    if bottleneck:
                        x = _bottleneck(net, x, 64 << i, stride, groups, group_width)
                    else:
                        x = _basic_block(net, x, 64 << i, stride, unfolded)
    net.classify(x)


def _dense_layer(net, features, growth):
    """The first batch norm reads a concatenation, so it cannot be folded; the second follows a convolution and was."""
    x = net.concat(features) if len(features) > 1 else features[0]
    x = net.relu(net.batch_norm(x, name="norm1"))
    x = net.relu(net.conv(x, 4 * growth, 1, name="conv1"))
    return net.conv(x, growth, 3, bias=False, name="conv2")


def densenet(net, depths, growth=32, width=64):
    x = net.image(3, 224)
    with net.scope("features"):
        x = net.relu(net.conv(x, width, 7, 2, name="conv0"))
        x = net.max_pool(x, 3, 2, 1)
        for i, depth in enumerate(depths):
            features = [x]
            with net.scope(f"denseblock{i + 1}"):
                for j in range(depth):
                    with net.scope(f"denselayer{j + 1}"):
                        features.append(_dense_layer(net, features, growth))
                x = net.concat(features)
            if i + 1 < len(depths):
                with net.scope(f"transition{i + 1}"):
                    x = net.relu(net.batch_norm(x, name="norm"))
                    x = net.average_pool(net.conv(x, x.channels // 2, 1, bias=False, name="conv"), 2, 2)
        x = net.batch_norm(x, name="norm5")
    net.classify(net.relu(x), name="classifier")
