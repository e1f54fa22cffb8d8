# SPDX-License-Identifier: Apache-2.0
"""What devices are, and what was published of networks on them.

Peaks and memory are those of NVIDIA's data sheets: TITAN RTX (Turing), T4, Tesla V100 SXM2, A100 SXM4 40 GB, H100 SXM5 80 GB. Tensor: FP16 with
FP32 sums, dense.
"""

from dataclasses import dataclass

from networks import DENSENET121, RESNET50, RESNET101, RESNET152, VGG19

GIB = 1 << 30


@dataclass(frozen=True)
class Gpu:
    name: str
    sms: int
    tensor_tflops: float
    gigabytes_per_second: float
    memory_bytes: int
    pcie_gigabytes_per_second: float  # one way, 16 lanes of its generation, 0.75 of what the lanes carry


TITAN_RTX = Gpu("TITAN-RTX", 72, 130.5, 672, 24 * GIB, 12)
T4 = Gpu("T4", 40, 65, 320, 16 * GIB, 12)
V100 = Gpu("V100", 80, 125, 900, 16 * GIB, 12)
A100 = Gpu("A100", 108, 312, 1555, 40 * GIB, 24)
H100 = Gpu("H100", 132, 989, 3350, 80 * GIB, 48)

# (network, batch, milliseconds): E2bird, table 1, on a TITAN RTX.
E2BIRD_TABLE_1 = [
    *((RESNET50, b, ms) for b, ms in ((4, 6.8), (8, 12.1), (16, 21.5), (32, 40.1))),
    *((RESNET101, b, ms) for b, ms in ((4, 11.8), (8, 20.6), (16, 36.2), (32, 65.4))),
    *((RESNET152, b, ms) for b, ms in ((4, 17.3), (8, 29.2), (16, 49.5), (32, 93.7))),
]

# E2bird, figure 12: ResNet152 in workers of 8, 8 and 16 beside each other; the mean of their latencies.
E2BIRD_FIGURE_12_MS = 85.3

# (network, batch, images a second): Pochelu et al. 2021. IMN1 on one V100, table I, A1 (batches of 8) and A2, which is read as the largest batch;
# ResNet101 is what limits IMN4 on four, table I, A1, and table III, BBS.
POCHELU_POINTS = [(RESNET152, 8, 106), (RESNET152, 128, 136), (RESNET101, 8, 160), (RESNET101, 128, 211)]

# Tables I and II: IMN4 reaches 251 with VGG19 on a V100 of its own in batches of 8, so it takes no longer than this.
POCHELU_VGG19 = (VGG19, 8, 251)

# Table I, IMN4 on two V100, A1: what does not fit is computed by the CPU. Read as DenseNet121, the smallest, in batches of 8.
POCHELU_CPU = (DENSENET121, 8, 13)
CPU_MEMORY_BYTES = 12 * GIB  # chosen with WORKER_BYTES
