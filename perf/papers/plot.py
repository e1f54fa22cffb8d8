# SPDX-License-Identifier: Apache-2.0
"""Draws a result of this folder as SVG.

    perf/papers/papers.sh plot RESULT.json FILE.svg

`tables`: images a second by GPUs, for each ensemble. `policies`: latencies in the order of arrival (figure 13), throughput at the QoS (figure 14), and
p99 at stable loads. `elastic`: p50 by load, live. `diurnal`: latencies in the order of arrival, live. The same result makes the same bytes.
"""

import json
import sys

import matplotlib
import matplotlib.pyplot as plt

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "starling", "svg.fonttype": "none", "font.size": 8, "axes.grid": True, "grid.alpha": 0.3, "legend.frameon": False})

COLOURS = {"opt_wait": "tab:grey", "n_ebird": "tab:orange", "e_ebird": "tab:green", "starling": "tab:blue", "work_conserving": "tab:cyan", "no_wait": "tab:red",
           "static": "tab:brown", "triton": "tab:purple", "single": "black", "bound": "black"}  # fmt: skip


def draw_tables(result):
    rows = {}
    for cell in result["table_1"]:
        rows.setdefault(cell["ensemble"], []).append(cell)
    figure, axes = plt.subplots(1, len(rows), figsize=(3 * len(rows), 3), squeeze=False)
    for axis, (ensemble, cells) in zip(axes[0], rows.items()):
        gpus = [cell["gpus"] for cell in cells]
        for name, colour, label in (("worst_fit", "tab:grey", "A1"), ("greedy", "tab:orange", "A2")):
            axis.plot(gpus, [cell["paper"][name] for cell in cells], "--", color=colour, label=f"{label}, paper, measured")
            axis.plot(gpus, [cell[name] for cell in cells], "-", color=colour, label=f"{label}, simulated")
        axis.plot(gpus, [cell["starling"] for cell in cells], "-o", markersize=3, color="tab:blue", label="ours, simulated")
        axis.plot(gpus, [cell["bound"] for cell in cells], ":", color="black", label="bound")
        axis.set(title=ensemble, xlabel="GPUs, and a CPU")
    axes[0][0].set_ylabel("images a second")
    axes[0][0].legend()
    return figure


def draw_latencies(axis, network, latencies):
    for policy, text in latencies.items():
        axis.plot([float(ms) for ms in text.split()], linewidth=0.8, color=COLOURS[policy], label=policy)
    axis.set(title=network, xlabel="request", yscale="log")


def draw_arrivals(axis, made):
    draw_latencies(axis, made["network"], made["diurnal"]["latencies_ms"])


def draw_rates(axis, made):
    rates = made["rates"]
    axis.bar(range(len(rates)), rates.values(), color=[COLOURS[policy] for policy in rates])
    axis.set_xticks(range(len(rates)), rates, rotation=60, ha="right")


def draw_loads(axis, made):
    for name in [*made["rates"], "bound"]:
        axis.plot([100 * row["load"] for row in made["stable"]], [row[name]["p99_ms"] for row in made["stable"]],
                  ":" if name == "bound" else "-", color=COLOURS[name], label=name)  # fmt: skip
    axis.set(xlabel="load, % of 32 / T(32)", yscale="log")


def draw_policies(result):
    networks = result["networks"]
    figure, axes = plt.subplots(3, len(networks), figsize=(3 * len(networks), 8), squeeze=False)
    for column, made in enumerate(networks):
        for row, draw in enumerate((draw_arrivals, draw_rates, draw_loads)):
            draw(axes[row][column], made)
    for row, text in enumerate(("latency, ms", "requests a second with p99 within 200 ms", "p99, ms")):
        axes[row][0].set_ylabel(text)
    axes[0][0].legend()
    axes[2][0].legend()
    return figure


def draw_elastic(result):
    networks = result["networks"]
    figure, axes = plt.subplots(1, len(networks), figsize=(3.5 * len(networks), 3), squeeze=False)
    for axis, made in zip(axes[0], networks):
        for way in result["ways"]:
            rows = [row for row in made["rows"] if row["way"] == way and row["valid"]]
            axis.plot([100 * row["load"] for row in rows], [row["p50_ms"] for row in rows], "-o", markersize=3, color=COLOURS[way], label=way)
        axis.set(title=made["network"], xlabel="load, %", yscale="log")
    axes[0][0].set_ylabel("p50, ms, live")
    axes[0][0].legend()
    return figure


def draw_diurnal(result):
    networks = result["networks"]
    figure, axes = plt.subplots(1, len(networks), figsize=(5 * len(networks), 3.5), squeeze=False)
    for axis, made in zip(axes[0], networks):
        draw_latencies(axis, made["network"], {way: figures["latencies_ms"] for way, figures in made["ways"].items()})
    axes[0][0].set_ylabel("latency, ms, live")
    axes[0][0].legend()
    return figure


DRAW = {"tables": draw_tables, "policies": draw_policies, "elastic": draw_elastic, "diurnal": draw_diurnal}


def main():
    if len(sys.argv) != 3:
        sys.exit("plot.py: usage: plot.py RESULT.json FILE.svg")
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    draw = DRAW.get(result.get("benchmark"))
    if not draw:
        sys.exit(f"plot.py: {sys.argv[1]}: a result of {result.get('benchmark')}, not of {', '.join(DRAW)}")
    figure = draw(result)
    kind = f"simulated on {result['profile']}" if not result["live"] else f"live, {result['processor']}"
    figure.suptitle(f"{result['benchmark']}, {result['date'][:10]}, {kind}")
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={"Date": None})


if __name__ == "__main__":
    main()
