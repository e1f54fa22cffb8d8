# SPDX-License-Identifier: Apache-2.0
"""What networks are, whatever computes them: work, parameters, activations, layers that a runtime launches.

Multiply-adds (10^9), outputs of convolutions (10^6) and parameters (10^6) of one image at the side given: pytorch-image-models,
results/benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv, columns infer_gmacs, infer_macts, param_count, infer_img_size.
Layers: convolutions and matrix products, counted in the papers of the networks.
ResNet skeletons are counted here, by hand as it were: count_skeleton().
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    name: str
    gmacs: float
    macts: float
    mparams: float
    side: int
    layers: int
    plain: bool = False  # 3x3 convolutions of many channels and little else

    @property
    def flops(self):
        return 2e9 * self.gmacs

    @property
    def activation_bytes(self):
        return 4e6 * self.macts

    @property
    def weights_bytes(self):
        return round(4e6 * self.mparams)


RESNET50 = Network("ResNet50", 4.11, 11.11, 25.56, 224, 54)
RESNET101 = Network("ResNet101", 7.83, 16.23, 44.55, 224, 105)
RESNET152 = Network("ResNet152", 11.56, 22.56, 60.19, 224, 156)
DENSENET121 = Network("DenseNet121", 2.87, 6.9, 7.98, 224, 121)
VGG16 = Network("VGG16", 15.47, 13.56, 138.36, 224, 16, plain=True)
VGG19 = Network("VGG19", 19.63, 14.86, 143.67, 224, 19, plain=True)

# Pochelu et al. 2021, section III: IMN1, IMN4 and IMN12 are {ResNet152}, four networks, and those five with seven more.
IMN1 = [RESNET152]
IMN4 = [RESNET50, RESNET101, DENSENET121, VGG19]
IMN12 = [
    *IMN4,
    RESNET152,
    Network("ResNet18", 1.82, 2.48, 11.69, 224, 21),
    Network("ResNet34", 3.67, 3.74, 21.80, 224, 37),
    Network("ResNeXt50", 4.26, 14.4, 25.03, 224, 54),
    Network("InceptionV3", 5.73, 8.97, 23.83, 299, 95),
    Network("Xception", 8.4, 35.83, 22.86, 299, 75),
    VGG16,
    Network("MobileNetV2", 0.31, 6.68, 3.5, 224, 53),
]

# E2bird, table 5.
E2BIRD = [Network("Inceptionv4", 12.28, 15.09, 42.68, 299, 150), RESNET50, RESNET101, RESNET152, VGG16, VGG19]

# Choi et al. 2022 (gpulets), table 4. Of GoogLeNet, SSD-MobileNet and LeNet (Caffe's) multiply-adds, outputs and layers are counted by hand.
GPULETS = [
    Network("LeNet", 0.0023, 0.0152, 0.431, 28, 4),
    Network("GoogLeNet", 1.5, 3.3, 6.62, 224, 58),
    RESNET50,
    Network("SSD-MobileNet", 1.2, 9.7, 6.8, 300, 47),
    VGG16,
]


def stages(blocks):
    """Blocks of the four stages: those of ResNet18 (8) and ResNet34 (16), what is more goes to the third one, as in ResNet101."""
    first, second = min(3, blocks // 4), min(4, blocks // 4)
    return first, second, blocks - first - second - first, first


def count_skeleton(depth, width, side, stem_stride):
    """(multiply-adds, outputs, parameters) of a ResNet of basic blocks, its filters multiplied by @width.

    A @stem_stride of 4: the stem of ImageNet, 7x7 and pooling; of 1: that of CIFAR, 3x3.
    """
    channels, kernel = round(64 * width), 7 if stem_stride == 4 else 3
    side = side // 2 if stem_stride == 4 else side
    weights = kernel * kernel * 3 * channels
    macs, outputs, parameters = weights * side * side, channels * side * side, weights
    side = side // 2 if stem_stride == 4 else side
    before = channels
    for stage, blocks in enumerate(stages((depth - 2) // 2)):
        channels = round((64 << stage) * width)
        side = side if stage == 0 else (side + 1) // 2
        for block in range(blocks):
            shortcut = before * channels if block == 0 and stage else 0
            weights = 9 * before * channels + 9 * channels * channels + shortcut
            macs += weights * side * side
            outputs += (3 if shortcut else 2) * channels * side * side
            parameters += weights
            before = channels
    return macs, outputs, parameters + 100 * before


def family(name, n, side, stem_stride):
    """@n ResNets: depths rise evenly from 10 to 132 layers, widths fall from 3 to 0.5 as 30 / depth does.

    The paper gives the ranges, not the members: that deep ones are narrow is chosen here, as table I leaves room for no other.
    """
    networks = []
    for i in range(n):
        depth = 10 + 2 * round(61 * i / (n - 1))
        width = max(0.5, 30 / depth)
        macs, outputs, parameters = count_skeleton(depth, width, side, stem_stride)
        networks.append(Network(f"{name}-{depth}x{width:.2f}", macs / 1e9, outputs / 1e6, parameters / 1e6, side, depth))
    return networks


FOS14 = family("FOS14", 14, 224, 4)
CIF36 = family("CIF36", 36, 32, 1)
ENSEMBLES = {"IMN1": IMN1, "IMN4": IMN4, "IMN12": IMN12, "FOS14": FOS14, "CIF36": CIF36}
