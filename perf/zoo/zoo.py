# SPDX-License-Identifier: Apache-2.0
"""Writes the zoo: the models that the papers serve, as ONNX files with seeded weights, the same bytes on each run.

    zoo.py --out DIR [--only NAME,NAME] [--resume]   writes DIR/NAME.onnx
    zoo.py --list                                    names, and what they are
    zoo.py --check DIR [--only ...]                  the checker of `onnx`, and a run by ONNX Runtime where it is installed; input and
                                                     answer are written beside the model: NAME.input.PORT.npy, NAME.output.PORT.npy
"""

import os
import sys

import mobile
import model_set
import plain
import residual
import sequence
from net import Net

BERT_BASE = sequence.Shape(layers=12, width=768, heads=12, inner=3072, length=128)
MINILM = sequence.Shape(layers=6, width=384, heads=12, inner=1536, length=128)
ZOO = {
    "resnet18": (lambda net: residual.resnet(net, (2, 2, 2, 2), False, unfolded=True), "ResNet-18, batch norms not folded"),
    "resnet34": (lambda net: residual.resnet(net, (3, 4, 6, 3), False), "ResNet-34"),
    "resnet50": (lambda net: residual.resnet(net, (3, 4, 6, 3), True), "ResNet-50"),
    "resnet101": (lambda net: residual.resnet(net, (3, 4, 23, 3), True), "ResNet-101"),
    "resnet152": (lambda net: residual.resnet(net, (3, 8, 36, 3), True), "ResNet-152"),
    "resnext50": (lambda net: residual.resnet(net, (3, 4, 6, 3), True, 32, 4), "ResNeXt-50 32x4d"),
    "densenet121": (lambda net: residual.densenet(net, (6, 12, 24, 16)), "DenseNet-121, half of its batch norms cannot be folded"),
    "vgg16": (lambda net: plain.vgg(net, (2, 2, 3, 3, 3)), "VGG-16"),
    "vgg19": (lambda net: plain.vgg(net, (2, 2, 4, 4, 4)), "VGG-19"),
    "inceptionv3": (plain.inception_v3, "Inception v3, 299 x 299"),
    "xception": (plain.xception, "Xception, 299 x 299, batch norms not folded"),
    "googlenet": (plain.googlenet, "GoogLeNet"),
    "squeezenet": (plain.squeezenet, "SqueezeNet 1.1"),
    "lenet": (plain.lenet, "LeNet-5, 1 x 32 x 32"),
    "mobilenetv2": (mobile.mobilenet_v2, "MobileNet v2"),
    "mobilenetv3": (mobile.mobilenet_v3, "MobileNet v3 large: hard swish, squeeze and excite"),
    "efficientnet-b0": (mobile.efficientnet_b0, "EfficientNet-B0: swish, squeeze and excite"),
    "efficientnet-lite0": (mobile.efficientnet_lite0, "EfficientNet-lite0, batch norms not folded"),
    "efficientnet-lite0-trained": (
        mobile.efficientnet_lite0_trained,
        "EfficientNet-lite0, trained on ImageNet, padding as an operator",
    ),
    "shufflenetv2": (mobile.shufflenet_v2, "ShuffleNet v2 x1.0"),
    "ssd-mobilenet": (mobile.ssd_mobilenet, "SSD on MobileNet v1, 300 x 300, with NonMaxSuppression"),
    "bert-base": (lambda net: sequence.bert(net, BERT_BASE), "BERT-base, 128 tokens, layer norms taken apart"),
    "xlnet-base": (
        lambda net: sequence.xlnet(net, sequence.Shape(12, 768, 12, 3072, 128, vocabulary=32000)),
        "XLNet-base, 128 tokens, Einsum and relative positions",
    ),
    "vit-small": (lambda net: sequence.vit(net, sequence.Shape(12, 384, 6, 1536, 197, epsilon=1e-6)), "ViT-small/16, 224 x 224"),
    "minilm": (lambda net: sequence.minilm(net, MINILM), "MiniLM-L6, 128 tokens, LayerNormalization"),
    "minilm-trained": (
        lambda net: sequence.minilm_trained(net, sequence.Shape(6, 384, 12, 1536, 0)),
        "all-MiniLM-L6-v2, trained, dynamic sequence length S",
    ),
    "lstm": (sequence.lstm, "two layers of LSTM, 100 steps"),
    "gru": (sequence.gru, "two layers of GRU, 100 steps"),
    "transformer-tiny": (
        lambda net: sequence.bert(net, sequence.Shape(2, 64, 4, 128, 16, vocabulary=1000)),
        "BERT cut down, 16 tokens",
    ),
}


def write(name, path):
    """A file appears whole or not at all."""
    net = Net(name)
    ZOO[name][0](net)
    data = net.model().SerializeToString(deterministic=True)
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.replace(path + ".part", path)
    return len(data)


if __name__ == "__main__":
    sys.exit(model_set.main(__doc__, {name: what for name, (_, what) in ZOO.items()}, write))
