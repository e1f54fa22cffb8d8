# SPDX-License-Identifier: Apache-2.0
"""Writes cost tables of GPUs that nobody here has: nothing in them was measured.

    python3 perf/profiles/derive.py [DIRECTORY]       all tables, into this folder or another one
    python3 perf/profiles/derive.py --check           nothing is written; status 1: a table is not what would be written

A batch of b takes

    latency(b) = layers * launch + b * (flops / rate + passes * activation_bytes / bandwidth)

launch, rate and passes are fitted to published points by least squares of relative errors (fit()); the header of each table says to which, and how far
the formula is from them.
"""

import math
import os
import sys

import devices
import lets
import networks

HERE = os.path.dirname(os.path.abspath(__file__))
ENSEMBLE_BATCHES = [8, 16, 32, 64, 128]
ELASTIC_BATCHES = [1, 2, 4, 8, 16, 32]
IMAGE_BYTES = 4 * 3  # of a pixel
ANSWER_BYTES = 4 * 1000
HOST_COPY_GIGABYTES_PER_SECOND = 5  # a core's, there and back again; chosen

# Of a worker beside its weights: a process with its context and libraries, and half of the activations alive. Both, and the CPU's memory, are chosen so
# that the cells of table I of Pochelu et al. in which there is no memory are met best.
WORKER_BYTES = 2.0 * devices.GIB
ALIVE = 0.5


def solve(matrix, values):
    """Gauss with pivots."""
    n = len(values)
    rows = [list(row) + [value] for row, value in zip(matrix, values)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def fit(terms, seconds):
    """Least squares of relative errors: each point is a row of @terms, whose sum with the coefficients should be its @seconds."""
    scaled = [[term / s for term in row] for row, s in zip(terms, seconds)]
    n = len(scaled[0])
    normal = [[sum(row[i] * row[j] for row in scaled) for j in range(n)] for i in range(n)]
    return solve(normal, [sum(row[i] for row in scaled) for i in range(n)])


class Formula:
    def __init__(self, launch, rate, passes, bandwidth, plain_rate=None):
        self.launch, self.rate, self.passes, self.bandwidth = launch, rate, passes, bandwidth
        self.plain_rate = plain_rate or rate

    def sample(self, network):
        rate = self.plain_rate if network.plain else self.rate
        return network.flops / rate + self.passes * network.activation_bytes / self.bandwidth

    def latency(self, network, batch):
        return network.layers * self.launch + batch * self.sample(network)

    def on(self, gpu, base):
        """The same shares of another GPU's peak and bandwidth, and the same launches, which the host's cores make."""
        scale = gpu.tensor_tflops / base.tensor_tflops
        return Formula(self.launch, self.rate * scale, self.passes, gpu.gigabytes_per_second * 1e9)

    def error(self, points):
        """The largest relative distance from published (network, batch, seconds)."""
        return max(abs(self.latency(network, batch) / s - 1) for network, batch, s in points)


def titan_points():
    return [(network, batch, ms / 1e3) for network, batch, ms in devices.E2BIRD_TABLE_1]


def titan_formula():
    points, bandwidth = titan_points(), devices.TITAN_RTX.gigabytes_per_second * 1e9
    terms = [[n.layers, b * n.flops, b * n.activation_bytes / bandwidth] for n, b, _ in points]
    launch, inverse, passes = fit(terms, [s for _, _, s in points])
    return Formula(launch, 1 / inverse, passes, bandwidth)


def v100_points():
    return [(network, batch, batch / rate) for network, batch, rate in devices.POCHELU_POINTS]


def v100_formula(passes):
    """Two networks cannot tell work from traffic: the passes are the TITAN RTX's. VGG19 takes what it takes at most."""
    points, bandwidth = v100_points(), devices.V100.gigabytes_per_second * 1e9
    left = [s - b * passes * n.activation_bytes / bandwidth for n, b, s in points]
    launch, inverse = fit([[n.layers, b * n.flops] for n, b, _ in points], left)
    vgg, batch, per_second = devices.POCHELU_VGG19
    sample = (batch / per_second - vgg.layers * launch) / batch - passes * vgg.activation_bytes / bandwidth
    return Formula(launch, 1 / inverse, passes, bandwidth, plain_rate=vgg.flops / sample)


def cpu_rate():
    network, _, per_second = devices.POCHELU_CPU
    return network.flops * per_second


def beside():
    """What one other worker costs: with S times as long each for three at once, workers of 8, 8 and 16 take S t8, S t8 and S t8 + t16 - t8, and the mean
    of these was published; S is 1 + 2 (beside - 1)."""
    ms = {(network.name, batch): ms for network, batch, ms in devices.E2BIRD_TABLE_1}
    small, large = ms["ResNet152", 8], ms["ResNet152", 16]
    slower = (3 * devices.E2BIRD_FIGURE_12_MS - (large - small)) / (3 * small)
    return round(1 + (slower - 1) / 2, 3)


def contention():
    """What each batch beside costs all of them, where batches of 8, 8 and 16 have the device for shares of their time and the mean of their latencies was
    published: the two of 8 take t8 * shares * (1 + 2 contention), that of 16 then t16 - t8 alone."""
    ms = {(network.name, batch): ms for network, batch, ms in devices.E2BIRD_TABLE_1}
    small, large = ms["ResNet152", 8], ms["ResNet152", 16]
    launches = 1e3 * titan_formula().launch * devices.RESNET152.layers
    shares = 2 * (1 - launches / small) + 1 - launches / large
    slower = (devices.E2BIRD_FIGURE_12_MS - (large - small) / 3) / (small * shares)
    return round((slower - 1) / 2, 4)


def host_copy_ns(network):
    """Of a sample whose batch is gathered in the host's memory: it is copied there, and once more for a device that reads pinned memory."""
    return round(2 * IMAGE_BYTES * network.side**2 / HOST_COPY_GIGABYTES_PER_SECOND)


def formulas():
    """Of each GPU: its formula, and where its parameters come from."""
    titan = titan_formula()
    v100 = v100_formula(titan.passes)
    made = {
        devices.TITAN_RTX: (titan, f"fitted to E2bird, table 1 (12 points, at most {titan.error(titan_points()):.1%} off)"),
        devices.V100: (
            v100,
            f"fitted to Pochelu et al. 2021, tables I and III (4 points, at most {v100.error(v100_points()):.1%} off);\n"
            f"# passes is the TITAN RTX's, VGG's rate of {v100.plain_rate / 1e12:.2f} TFLOP/s the least that tables I and II allow",
        ),
    }
    for gpu in (devices.A100, devices.H100, devices.T4):
        made[gpu] = (titan.on(gpu, devices.TITAN_RTX), "the TITAN RTX's shares of tensor peak and bandwidth, and its launch; fitted to nothing of this GPU")
    return made


def microseconds(seconds):
    return 1000 * math.ceil(seconds * 1e6)


def transfer_ns(network, gpu, batch):
    return round(batch * (IMAGE_BYTES * network.side**2 + ANSWER_BYTES) / gpu.pcie_gigabytes_per_second)


def workspace(network, batch):
    return round(WORKER_BYTES + ALIVE * batch * network.activation_bytes)


def listed(values):
    return "[" + ", ".join(str(value) for value in values) + "]"


def gpu_row(network, gpu, formula, batches):
    latencies = listed(microseconds(formula.latency(network, b)) for b in batches)
    transfers = listed(transfer_ns(network, gpu, b) for b in batches)
    spaces = listed(workspace(network, b) for b in batches)
    return f"  - {{model: {network.name}, class: {gpu.name}, source: derived, latency_ns: {latencies},\n     transfer_ns: {transfers}, workspace: {spaces}}}"


def cpu_row(network, batches):
    latencies = listed(microseconds(b * network.flops / cpu_rate()) for b in batches)
    spaces = listed(workspace(network, b) for b in batches)
    return f"  - {{model: {network.name}, class: CPU, source: derived, latency_ns: {latencies},\n     workspace: {spaces}}}"


def header(gpu, formula, source):
    return f"""# SPDX-License-Identifier: Apache-2.0
# Derived, not measured: written by perf/profiles/derive.py, which has the formula and the points.
#
#     latency(b) = layers * {formula.launch * 1e6:.1f} us + b * (FLOPs / {formula.rate / 1e12:.2f} TFLOP/s + {formula.passes:.1f} * activations / {formula.bandwidth / 1e9:.0f} GB/s)
#
# {gpu.name}: {source}.
# FLOPs, activations, weights: networks.py. beside: E2bird, figure 12 (ResNet152 in workers of 8, 8 and 16). transfer: float32 images and 1000
# answers at {gpu.pcie_gigabytes_per_second} GB/s. workspace: {WORKER_BYTES / devices.GIB:.2f} GiB a worker and {ALIVE:.0%} of its activations, chosen to meet table I of
# Pochelu et al. 2021 where it has no memory.
"""


def ensembles_table(gpu, formula, source):
    members = {network.name: network for ensemble in networks.ENSEMBLES.values() for network in ensemble}.values()
    return "\n".join([
        header(gpu, formula, source) + f"# CPU: {cpu_rate() / 1e9:.0f} GFLOP/s, as table I has IMN4 on two GPUs, whose smallest network it must compute.\n#",
        f"batches: {listed(ENSEMBLE_BATCHES)}",
        "classes:",
        f"  - {{name: {gpu.name}, kind: gpu, units: {gpu.sms}, copy_engines: 2, beside: {beside()}}}",
        "  - {name: CPU, kind: cpu, beside: 2}",
        "devices:",
        f"  - {{name: {gpu.name.lower()}, class: {gpu.name}, memory: {gpu.memory_bytes}}}",
        f"  - {{name: cpu, class: CPU, memory: {devices.CPU_MEMORY_BYTES}}}",
        "models:",
        *(f"  - {{name: {network.name}, weights: {network.weights_bytes}}}" for network in members),
        "costs:",
        *(gpu_row(network, gpu, formula, ENSEMBLE_BATCHES) for network in members),
        *(cpu_row(network, ENSEMBLE_BATCHES) for network in members),
        "",
    ])  # fmt: skip


def elastic_table(gpu, formula, source):
    return "\n".join([
        header(gpu, formula, source) + "#",
        f"batches: {listed(ELASTIC_BATCHES)}",
        "classes:",
        f"  - {{name: {gpu.name}, kind: gpu, units: {gpu.sms}, copy_engines: 2, beside: {beside()}}}",
        "devices:",
        f"  - {{name: {gpu.name.lower()}, class: {gpu.name}, memory: {gpu.memory_bytes}}}",
        "models:",
        *(f"  - {{name: {network.name}, weights: {network.weights_bytes}}}" for network in networks.E2BIRD),
        "costs:",
        *(gpu_row(network, gpu, formula, ELASTIC_BATCHES) for network in networks.E2BIRD),
        "",
    ])  # fmt: skip


def tables():
    made = lets.tables(formulas()[devices.H100][0])
    for gpu, (formula, source) in formulas().items():
        made[f"elastic-{gpu.name.lower()}.yaml"] = elastic_table(gpu, formula, source)
        if gpu != devices.TITAN_RTX:
            made[f"ensembles-{gpu.name.lower()}.yaml"] = ensembles_table(gpu, formula, source)
    return made


def differing(directory):
    """Names of tables in @directory that are not what would be written."""
    return [name for name, text in tables().items() if read(os.path.join(directory, name)) != text]


def read(path):
    """None: there is no such file."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    if sys.argv[1:] == ["--check"]:
        names = differing(HERE)
        print("\n".join(f"{name} is not what derive.py writes" for name in names))
        return bool(names)
    directory = sys.argv[1] if len(sys.argv) > 1 else HERE
    for name, text in tables().items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
