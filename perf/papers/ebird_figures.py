# SPDX-License-Identifier: Apache-2.0
"""What W. Cui et al., "E2bird: Enhanced Elastic Batch for Improving Responsiveness and Throughput of Deep Learning Services", say in their text on
a TITAN RTX. Figures 13 and 14 are drawn there without numbers; sections 8.2 and 8.3 give these."""

QOS_MS = 200
LOW, HIGH = 150, 250  # requests, section 8.2

# Section 8.2: how much less the latency is, from the least to the most of six networks.
N_LOW = (0.446, 0.709)  # N-Ebird to TF-Serving at low load
N_HIGH = (0.074, 0.531)
E_HIGH = (0.05, 0.30)  # E-Ebird to N-Ebird

# Section 8.3: how much more throughput at the QoS, mean of six networks.
N_THROUGHPUT, E_THROUGHPUT = 0.344, 0.099
E_THROUGHPUT_MOST = 0.628  # E-Ebird to TF-Serving, of the best network

# Table 4: ResNet152.
ENGINE = {"rows": [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 2, 1, 0, 0], [0, 0, 0, 2, 1, 0]], "workers": [1, 1, 1, 2, 1, 0]}
