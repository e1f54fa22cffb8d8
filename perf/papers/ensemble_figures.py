# SPDX-License-Identifier: Apache-2.0
"""Tables I to III of P. Pochelu, S. G. Petiton, B. Conche, "An efficient and flexible inference system for serving heterogeneous ensembles of deep
neural networks", 2021: images a second on V100s and one CPU. None: out of memory.

The text of table I has CIF36 on six GPUs as 37 and 35 in columns that cannot be told apart; as A2 starts from A1, 35 is read as A1's.
"""

GPUS = [1, 2, 3, 4, 5, 6, 8, 12, 16]

TABLE_1 = {  # ensemble: (A1, A2)
    "IMN1": ([106] * 9, [136, 270, 394, 539, 617, 722, 974, 1436, 1897]),
    "IMN4": ([None, 13, 158, 160, 160, 160, 160, 160, 160], [None, 101, 199, 251, 294, 351, 472, 686, 877]),
    "IMN12": ([None, None, None, 15, 65, 103, 103, 103, 103], [None, None, None, 24, 106, 194, 226, 317, 405]),
    "FOS14": ([None, 213, 308, 380, 388, 397, 483, 511, 511], [None, 233, 339, 410, 461, 470, 518, 545, 559]),
    "CIF36": ([None, None, None, None, 15, 35, 239, 428, 563], [None, None, None, None, 15, 37, 243, 481, 633]),
}

# IMN4 on four: ResNet50, ResNet101, DenseNet121, VGG19 by rows CPU, GPU1 to GPU4.
TABLE_2 = [[0, 0, 0, 0], [8, 8, 0, 0], [0, 128, 0, 0], [0, 0, 8, 0], [0, 0, 0, 8]]

TABLE_3 = [  # ensemble, GPUs, max_iter, (BBS, benches), (A2, benches)
    ("IMN1", 1, 10, (136, 5), (136, 69)),
    ("IMN4", 4, 10, (211, 20), (251, 200)),
    ("IMN12", 12, 10, (136, 60), (338, 1000)),
    ("IMN12", 12, 20, (136, 60), (376, 2000)),
]

WEAK_SCALING_16 = 0.87
HOURS = 12
