# SPDX-License-Identifier: Apache-2.0
"""Cost tables by the size of a let: parts of a GPU or a host's cores. derive.py writes them; what is published, derived and assumed stands in their headers.

Nothing that figures 12 to 16 of Choi et al. 2022 report went into them.
"""

import devices
import networks

BATCHES = [1, 2, 4, 8, 16, 32]
GPUS = 4
SATURATED = max(max(uses[0]) for uses in devices.GPULETS_USES.values())  # percent of multiprocessors in use when there is work for all

# Of a core and a team, chosen: what own kernels reach in float32, a layer's start, and the part of a batch that a team does not shorten.
CORE_GFLOPS = 80
CORE_LAYER_SECONDS = 5e-6
TEAM_SERIAL = 0.04
CORES_PER_CACHE = 8
HOST_BYTES_PER_CORE = 4 * devices.GIB


def listed(values):
    return "[" + ", ".join(str(value) for value in values) + "]"


def nanoseconds(seconds):
    return round(seconds * 1e9)


def class_line(name, kind, units, sizes, more=""):
    return f"  - {{name: {name}, kind: {kind}, units: {units}, copy_engines: 0, beside: 2, sizes: {listed(sizes)}{more}}}"


def row(network, name, size, latencies, spaces):
    of_let = f", size: {size}" if size else ""
    return f"  - {{model: {network.name}, class: {name}{of_let}, source: derived, latency_ns: {listed(map(nanoseconds, latencies))}, workspace: {listed(spaces)}}}"


def document(header, batches, classes, device, rows, more=()):
    return "\n".join([
        header,
        f"batches: {listed(batches)}",
        "classes:",
        *classes,
        "devices:",
        device,
        "models:",
        *(f"  - {{name: {network.name}, weights: {network.weights_bytes}}}" for network in networks.GPULETS),
        "costs:",
        *rows,
        *more,
        "",
    ])  # fmt: skip


# ---- RTX 2080 Ti ----


def saturation(network):
    """Of each published batch: the share of the multiprocessors that it keeps busy beside what a batch of 32 does; a larger batch never less."""
    used = devices.GPULETS_USES[network.name][0]
    shares, most = [], 0
    for percent in used:
        most = max(most, min(percent, used[-1]))
        shares.append(most / used[-1])
    return shares


def turing_latencies(network, share, knee=1.0, serial=0.0):
    """Seconds of each published batch on a @share of the GPU."""
    whole = devices.GPULETS_OBJECTIVES_MS[network.name] / 2e3
    reaches = devices.GPULETS_USES[network.name][0][-1] / SATURATED
    made = []
    for batch, busy in zip(devices.GPULETS_BATCHES, saturation(network)):
        latency = whole * batch / 32 / busy
        wanted = min(1.0, knee * busy * reaches)
        made.append(latency * (serial + (1 - serial) * max(1.0, wanted / share)))
    return [min(made[i:]) for i in range(len(made))]


TURING_HEADER = f"""# SPDX-License-Identifier: Apache-2.0
# Derived, not measured: written by perf/profiles/derive.py. Four RTX 2080 Ti of Choi et al. 2022 (gpulets), by the size of a let.
#
# Published: objectives (table 4), half of which a batch of 32 takes on a whole GPU (section 6.1); shares of multiprocessors, L2 cache and DRAM
# bandwidth in use by batch, coefficients of interference and memory of models (the authors' repository, casys-kaist/glet, resource/).
# Derived: a sample keeps multiprocessors busy for as long in any batch, so a batch of b takes (b / 32) * use(32) / use(b) of what one of 32 does;
# use(b) is that of the largest smaller batch where it falls, and at most use(32). No batch takes longer than a larger one.
# Assumed: a batch fills use(b) / {SATURATED} % of the GPU, the largest use in the table being all of it. A let that is smaller makes it longer in
# proportion, one that is larger does not help: latency(b, let) = latency(b) * max(1, filled(b) / let). No latency by size was published.
# Fitted: nothing. Figures 12 to 16 are not used here.
#"""


def turing_table(knee=1.0, serial=0.0):
    gpu = devices.RTX_2080_TI
    sizes = [round(gpu.sms * percent / 100) for percent in (20, 40, 50, 60, 80)]
    rows, uses = [], ["uses:"]
    for network in networks.GPULETS:
        spaces = [max(0, devices.GPULETS_MEGABYTES[network.name] * 10**6 - network.weights_bytes)] * len(devices.GPULETS_BATCHES)
        for size in [*sizes, 0]:
            rows.append(row(network, gpu.name, size, turing_latencies(network, (size or gpu.sms) / gpu.sms, knee, serial), spaces))
        _, cache, memory = devices.GPULETS_USES[network.name]
        uses.append(f"  - {{model: {network.name}, class: {gpu.name}, l2: {listed(round(x / 100, 4) for x in cache)}, memory: {listed(round(x / 100, 4) for x in memory)}}}")
    classes = [class_line(gpu.name, "gpu", gpu.sms, sizes, f", interference: {listed(devices.GPULETS_INTERFERENCE)}")]
    device = f"  - {{name: gpu, class: {gpu.name}, memory: {gpu.memory_bytes}, count: {GPUS}}}"
    return document(TURING_HEADER, devices.GPULETS_BATCHES, classes, device, rows, uses)


# ---- H100 ----

HOPPER_ATOMS, HOPPER_ATOM = 16, 8  # green contexts come in steps of 8 of 132 multiprocessors

HOPPER_HEADER = """# SPDX-License-Identifier: Apache-2.0
# Derived, not measured: written by perf/profiles/derive.py. Four H100, whose lets are made of 16 atoms of 8 multiprocessors.
#
# Published: nothing of this GPU. Derived: latency(b) on all of it as in elastic-h100.yaml, whose formula is the TITAN RTX's.
# Assumed: the time of launches is the same on any let, and the rest is in inverse proportion to its multiprocessors. No interference is known.
# Workspace: half of the activations and 0.5 GiB a worker, chosen.
#"""


def hopper_latency(formula, network, batch, units):
    return network.layers * formula.launch + devices.H100.sms / units * batch * formula.sample(network)


def hopper_formula():
    import derive  # which writes these tables, and so knows this module

    return derive.formulas()[devices.H100][0]


def hopper_table(formula):
    gpu = devices.H100
    units = HOPPER_ATOMS * HOPPER_ATOM
    sizes = [HOPPER_ATOM * n for n in range(1, HOPPER_ATOMS)]
    rows = []
    for network in networks.GPULETS:
        spaces = [round(0.5 * devices.GIB + 0.5 * b * network.activation_bytes) for b in BATCHES]
        for size in [*sizes, 0]:
            rows.append(row(network, gpu.name, size, [hopper_latency(formula, network, b, size or units) for b in BATCHES], spaces))
    device = f"  - {{name: gpu, class: {gpu.name}, memory: {gpu.memory_bytes}, count: {GPUS}}}"
    return document(HOPPER_HEADER, BATCHES, [class_line(gpu.name, "gpu", units, sizes)], device, rows)


# ---- hosts ----


def host_header(cores):
    return f"""# SPDX-License-Identifier: Apache-2.0
# Derived, not measured: written by perf/profiles/derive.py. A host of {cores} cores in groups of {CORES_PER_CACHE} that share an L3 cache; a group is a device, lets are cores of it.
#
# Published: nothing. Assumed: {CORE_GFLOPS} GFLOP/s a core in float32, {CORE_LAYER_SECONDS * 1e6:.0f} us a layer; of a batch {TEAM_SERIAL:.0%} is not shortened by a team, the rest is in inverse
# proportion to its cores: latency(b, n) = layers * {CORE_LAYER_SECONDS * 1e6:.0f} us + b * FLOPs / rate * ({TEAM_SERIAL} + {1 - TEAM_SERIAL} / n). No interference is known.
# Workspace: half of the activations. FLOPs, activations, weights: networks.py.
#"""


def host_latency(network, batch, cores):
    return network.layers * CORE_LAYER_SECONDS + batch * network.flops / (CORE_GFLOPS * 1e9) * (TEAM_SERIAL + (1 - TEAM_SERIAL) / cores)


def host_table(cores):
    name, rows = "core", []
    sizes = list(range(1, CORES_PER_CACHE))
    for network in networks.GPULETS:
        spaces = [round(0.5 * b * network.activation_bytes) for b in BATCHES]
        for size in [*sizes, 0]:
            rows.append(row(network, name, size, [host_latency(network, b, size or CORES_PER_CACHE) for b in BATCHES], spaces))
    device = f"  - {{name: cores, class: {name}, memory: {HOST_BYTES_PER_CORE * CORES_PER_CACHE}, count: {cores // CORES_PER_CACHE}}}"
    return document(host_header(cores), BATCHES, [class_line(name, "cpu", CORES_PER_CACHE, sizes)], device, rows)


def tables(hopper_formula):
    return {
        "lets-2080ti.yaml": turing_table(),
        "lets-h100.yaml": hopper_table(hopper_formula),
        "lets-cpu-16.yaml": host_table(16),
        "lets-cpu-64.yaml": host_table(64),
    }
