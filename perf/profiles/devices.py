# SPDX-License-Identifier: Apache-2.0
"""What devices are, and what was published of networks on them.

Peaks and memory are those of NVIDIA's data sheets: TITAN RTX and RTX 2080 Ti (Turing), T4, Tesla V100 SXM2, A100 SXM4 40 GB, H100 SXM5 80 GB. Tensor: FP16 with
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
RTX_2080_TI = Gpu("RTX-2080-Ti", 68, 107.6, 616, 11000 * 1000 * 1000, 12)

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

# Choi et al. 2022 (gpulets), table 4: objectives in ms, which section 6.1 says are twice what a batch of 32 takes on a whole 2080 Ti.
GPULETS_OBJECTIVES_MS = {"GoogLeNet": 44, "LeNet": 5, "ResNet50": 95, "SSD-MobileNet": 136, "VGG16": 130}

# The authors' repository (casys-kaist/glet, resource/2080ti/UTIL.CSV), whole 2080 Ti: percent of multiprocessors, L2 cache and DRAM bandwidth in
# use while batches of these sizes compute. Rounded to 0.1.
GPULETS_BATCHES = [1, 2, 4, 8, 12, 16, 20, 24, 28, 32]
GPULETS_USES = {
    "LeNet": (
        [7.8, 7.7, 13.6, 11.5, 12.6, 13.2, 17.6, 17.4, 16.4, 17.7],
        [2.4, 2.5, 4.4, 4.3, 5.0, 5.4, 6.6, 6.8, 7.1, 7.0],
        [11.3, 11.2, 17.8, 15.0, 17.1, 18.1, 22.8, 23.0, 24.7, 25.4],
    ),
    "GoogLeNet": (
        [10.2, 17.9, 26.1, 35.6, 36.9, 39.7, 44.3, 42.6, 44.7, 46.4],
        [7.4, 12.3, 16.8, 22.3, 23.1, 23.6, 25.1, 24.6, 24.2, 24.9],
        [15.9, 23.9, 32.6, 43.4, 49.6, 52.4, 55.6, 54.2, 54.8, 56.3],
    ),
    "ResNet50": (
        [19.6, 29.3, 39.4, 46.5, 44.9, 47.7, 50.6, 47.6, 47.1, 48.4],
        [15.4, 18.8, 23.0, 25.8, 25.2, 26.8, 27.6, 26.5, 27.3, 28.2],
        [27.9, 35.0, 43.9, 51.3, 52.7, 58.4, 59.9, 58.0, 59.8, 62.3],
    ),
    "SSD-MobileNet": (
        [13.3, 19.4, 27.9, 38.7, 40.7, 41.2, 44.4, 44.4, 42.2, 42.4],
        [10.6, 11.6, 15.8, 20.1, 22.8, 23.3, 24.8, 25.3, 26.9, 27.6],
        [20.5, 26.1, 34.3, 46.4, 52.0, 54.0, 57.4, 58.1, 58.9, 61.2],
    ),
    "VGG16": (
        [41.6, 50.1, 53.8, 60.3, 56.7, 52.5, 55.7, 54.3, 53.1, 52.7],
        [31.0, 33.8, 35.0, 32.1, 31.4, 30.5, 29.3, 29.7, 30.0, 30.2],
        [56.0, 55.9, 54.2, 56.7, 61.0, 60.8, 59.2, 60.1, 60.9, 61.1],
    ),
}

# The same repository: c1 to c5 of the linear model of interference (INT_MODEL_CONSTANT.CSV), and MB that a model takes on a GPU (mem-config.json).
GPULETS_INTERFERENCE = [0.1129, 0.7160, 0.3549, 0.0882, 0.8954]
GPULETS_MEGABYTES = {"LeNet": 50, "GoogLeNet": 1720, "ResNet50": 1820, "SSD-MobileNet": 640, "VGG16": 2920}
