# SPDX-License-Identifier: Apache-2.0
"""Exports the further set: architectures of torchvision, timm and transformers as ONNX files with seeded weights.

    further.py --out DIR [--only NAME,NAME] [--resume]   writes DIR/NAME.onnx
    further.py --list                                    names, which exporter, and what they are
    further.py --check DIR [--only ...]                  the checker of `onnx`, and a run by ONNX Runtime
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "zoo"))

import images  # noqa: E402
import model_set  # noqa: E402
import network  # noqa: E402
import sequences  # noqa: E402
from images import detector, segmentation, timm_network  # noqa: E402
from sequences import encoder  # noqa: E402

# name: (what builds it, which exporter, what it is)
FURTHER = {
    "convnext-pico": (timm_network("convnext_pico"), "graph", "ConvNeXt"),
    "regnety-008": (timm_network("regnety_008"), "script", "RegNetY, grouped convolutions and squeeze-excite"),
    "hrnet-w18": (timm_network("hrnet_w18_small"), "script", "HRNet, four resolutions side by side"),
    "ecaresnet26": (timm_network("ecaresnet26t", 256), "graph", "ResNet with efficient channel attention"),
    "ecaresnet50": (timm_network("ecaresnet50t", 256), "script", "the same, 50 layers"),
    "nfnet-l0": (timm_network("eca_nfnet_l0"), "graph", "NFNet, standardised weights in place of batch norms"),
    "ghostnet": (timm_network("ghostnet_100"), "graph", "GhostNet"),
    "repvgg-a0": (timm_network("repvgg_a0"), "script", "RepVGG with its three branches"),
    "dpn68": (timm_network("dpn68"), "script", "dual path network"),
    "res2net50": (timm_network("res2net50_26w_4s"), "graph", "Res2Net, scales within a block"),
    "skresnet18": (timm_network("skresnet18"), "script", "selective kernels"),
    "cspresnet50": (timm_network("cspresnet50", 256), "graph", "cross stage partial ResNet"),
    "rexnet": (timm_network("rexnet_100"), "script", "ReXNet, swish and ReLU6"),
    "efficientnetv2-b0": (timm_network("tf_efficientnetv2_b0", 192), "graph", "EfficientNetV2, padding of TensorFlow"),
    "mnasnet": (timm_network("mnasnet_100"), "script", "MnasNet"),
    "convmixer": (timm_network("convmixer_768_32"), "graph", "ConvMixer, 7 x 7 depthwise"),
    "deit-tiny": (timm_network("deit_tiny_patch16_224"), "graph", "DeiT"),
    "swin-tiny": (timm_network("swin_tiny_patch4_window7_224"), "graph", "Swin, shifted windows"),
    "coatnet-nano": (timm_network("coatnet_nano_rw_224"), "script", "CoAtNet, convolutions then relative attention"),
    "maxvit-pico": (timm_network("maxvit_rmlp_pico_rw_256", 256), "graph", "MaxViT, attention in blocks and grids"),
    "mobilevit-xs": (timm_network("mobilevit_xs", 256), "script", "MobileViT"),
    "efficientformer": (timm_network("efficientformer_l1"), "graph", "EfficientFormer"),
    "levit-128": (images.levit, "script", "LeViT"),
    "mixer-s16": (timm_network("mixer_s16_224"), "graph", "MLP-Mixer"),
    "poolformer": (timm_network("poolformer_s12"), "script", "PoolFormer, pooling in place of attention"),
    "edgenext": (timm_network("edgenext_x_small", 256), "graph", "EdgeNeXt, attention over channels"),
    "pvt-v2": (timm_network("pvt_v2_b0"), "script", "pyramid of attention with reduced keys"),
    "fastvit": (timm_network("fastvit_t8", 256), "graph", "FastViT"),
    "xcit-nano": (timm_network("xcit_nano_12_p16_224"), "script", "XCiT, attention over channels"),
    "twins": (timm_network("twins_svt_small"), "script", "Twins, local and global attention"),
    "cait-xxs24": (timm_network("cait_xxs24_224"), "script", "CaiT, talking heads"),
    "deeplabv3": (segmentation("deeplabv3_mobilenet_v3_large", 256), "script", "DeepLabV3 on MobileNetV3: dilated convolutions"),
    "fcn-resnet50": (segmentation("fcn_resnet50", 224), "graph", "FCN on ResNet-50"),
    "lraspp": (segmentation("lraspp_mobilenet_v3_large", 256), "graph", "lite reduced ASPP on MobileNetV3"),
    "unet": (images.unet, "script", "U-Net, transposed convolutions"),
    "segformer-b0": (images.segformer, "graph", "SegFormer"),
    "retinanet": (detector("retinanet_resnet50_fpn", 320), "script", "RetinaNet on ResNet-50 with feature pyramid, up to its heads"),
    "ssdlite": (detector("ssdlite320_mobilenet_v3_large", 320), "graph", "SSDlite on MobileNetV3, up to its heads"),
    "yolos-tiny": (images.yolos, "script", "YOLOS: detection tokens in a ViT"),
    "detr": (images.detr, "graph", "DETR on ResNet-50"),
    "wav2vec2": (sequences.wav2vec2, "graph", "wav2vec 2.0, 1 s of sound, 6 layers"),
    "hubert": (sequences.hubert, "script", "HuBERT with layer norms, 1 s of sound, 6 layers"),
    "whisper-encoder": (sequences.whisper_encoder, "graph", "Whisper tiny's encoder, 30 s of sound"),
    "ast": (sequences.spectrogram_transformer, "script", "audio spectrogram transformer, 6 layers"),
    "distilbert": (encoder("DistilBert"), "graph", "DistilBERT"),
    "roberta": (encoder("Roberta", num_hidden_layers=6, max_position_embeddings=514), "script", "RoBERTa, 6 layers"),
    "electra-small": (
        encoder("Electra", "eager", embedding_size=128, hidden_size=256, num_hidden_layers=12, num_attention_heads=4, intermediate_size=1024),
        "graph",
        "ELECTRA small",
    ),
    "albert": (
        encoder("Albert", hidden_size=768, num_attention_heads=12, intermediate_size=3072, num_hidden_layers=6),
        "script",
        "ALBERT, one layer's weights six times",
    ),
    "modernbert": (
        encoder("ModernBert", num_hidden_layers=8, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2),
        "graph",
        "ModernBERT: rotary positions, gated products, local attention",
    ),
    "mobilebert": (encoder("MobileBert", num_hidden_layers=12), "script", "MobileBERT, bottlenecks, 12 layers"),
    "deberta-v2": (
        encoder("DebertaV2", "eager", hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536,
                relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=128, max_relative_positions=-1,
                norm_rel_ebd="layer_norm", share_att_key=True),
        "script",
        "DeBERTa v3: relative positions by gathering",
    ),
    "t5-encoder": (sequences.t5_encoder, "graph", "T5 small's encoder: relative bias, root mean square norms"),
    "gpt2": (sequences.gpt2_prompt, "graph", "GPT-2, 128 tokens"),
    "gpt2-step": (sequences.gpt2_step, "graph", "GPT-2, one token behind 127"),
    "llama": (sequences.llama_prompt, "graph", "Llama of 8 layers, grouped heads, 128 tokens"),
    "llama-step": (sequences.llama_step, "script", "the same, one token behind 127"),
    "clip-text": (sequences.clip_text, "graph", "CLIP's text encoder, 77 tokens"),
    "clip-vision": (sequences.clip_vision, "script", "CLIP's image encoder, patches of 32"),
}  # fmt: skip


def write(name, path):
    build, form, _ = FURTHER[name]
    return network.export(build(), name, form, path)


if __name__ == "__main__":
    sys.exit(model_set.main(__doc__, {name: f"{form:8}{what}" for name, (_, form, what) in FURTHER.items()}, write))
