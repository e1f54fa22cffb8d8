# SPDX-License-Identifier: Apache-2.0
"""Networks that read images: classifiers of timm, segmentation and detection of torchvision and transformers.

Detectors end at their heads (boxes and scores of every anchor): selection of boxes is measured by the zoo's ssd-mobilenet.
"""

import timm
import torch
import torchvision
import transformers
from torch import nn

from network import Network, Port


def _image(size):
    return [Port("image", ("N", 3, size, size))]


def timm_network(name, size=224, **options):
    """A classifier of timm as it builds it without trained weights."""
    return lambda: Network(timm.create_model(name, pretrained=False, **options), _image(size), ["scores"])


def levit():
    network = timm_network("levit_128")()
    for name, module in network.module.named_modules():
        if name.endswith(("qkv.bn", "proj.ln.bn", "ln2.bn")):
            module.seeded_gain = 0.3  # its branches start at zero; without layer norms, scores that grow make values that grow
    return network


class Taken(nn.Module):
    """A model of which some of the named outputs are taken."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        answer = self.model(*inputs)
        return tuple(answer[name] for name in self.names) if len(self.names) > 1 else answer[self.names[0]]


def segmentation(name, size):
    def build():
        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=21)
        return Network(Taken(model, "out"), _image(size), ["classes"])

    return build


class Detector(nn.Module):
    """Backbone and head of a detector of torchvision, which would take a list of images and select boxes."""

    def __init__(self, model):
        super().__init__()
        self.backbone, self.head = model.backbone, model.head

    def forward(self, image):
        answer = self.head(list(self.backbone(image).values()))
        return answer["bbox_regression"], answer["cls_logits"]


def detector(name, size):
    def build():
        model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None)
        return Network(Detector(model), _image(size), ["boxes", "scores"])

    return build


def segformer(size=256):
    config = transformers.SegformerConfig(num_labels=21, return_dict=True)
    return Network(Taken(transformers.SegformerForSemanticSegmentation(config), "logits"), _image(size), ["classes"])


def yolos(size=256):
    config = transformers.YolosConfig(
        hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768, image_size=[size, size],
        num_detection_tokens=100, use_mid_position_embeddings=False,
    )  # fmt: skip
    return Network(Taken(transformers.YolosForObjectDetection(config), "logits", "pred_boxes"), _image(size), ["scores", "boxes"])


def detr(size=320):
    backbone = transformers.ResNetConfig(depths=[3, 4, 6, 3], out_features=["stage4"])
    config = transformers.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, encoder_layers=6,
        decoder_layers=6, num_queries=100,
    )  # fmt: skip
    return Network(Taken(transformers.DetrForObjectDetection(config), "logits", "pred_boxes"), _image(size), ["scores", "boxes"])


class Unet(nn.Module):
    """Four levels, each of two convolutions with batch norm; upward by transposed convolutions, with the skipped features joined."""

    def __init__(self, width=32, levels=4, classes=21):
        super().__init__()
        sizes = [width * 2**i for i in range(levels + 1)]
        self.down = nn.ModuleList(self._level(a, b) for a, b in zip([3, *sizes], sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, 2) for a in sizes[:-1])
        self.join = nn.ModuleList(self._level(2 * a, a) for a in sizes[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _level(before, after):
        layers = []
        for n in (before, after):
            layers += [nn.Conv2d(n, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x):
        skipped = []
        for i, level in enumerate(self.down):
            x = level(x if i == 0 else nn.functional.max_pool2d(x, 2))
            skipped.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat([skipped[i], self.up[i](x)], 1))
        return self.head(x)


def unet(size=256):
    return Network(Unet(), _image(size), ["classes"])
