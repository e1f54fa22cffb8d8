# SPDX-License-Identifier: Apache-2.0
"""Draws a result of this folder as SVG.

    perf/papers/papers.sh plot RESULT.json FILE.svg

`tables`: images a second by GPUs, for each ensemble. `policies`: latencies in the order of arrival (figure 13), throughput at the QoS (figure 14), and
p99 at stable loads. `gpulets`: what each scheduler of lets bears of the bound (figure 12). `elastic`: p50 by load, live. `diurnal`: latencies in the order of arrival, live. The same result makes the same bytes.
"""

import json
import sys

import plots
import sheet

COLUMNS = 3


def ms(value):
    return f"{value:g} ms"


def line_panel(series, x_name, y_name, y_axis, dashed=()):
    xs = [x for _, points in series for x, _, _ in points]
    return plots.line_parts(sheet.PANEL, series, plots.Linear(xs), y_axis, x_name, y_name, dashed=dashed)


def values_of(series):
    return [y for _, points in series for _, y, _ in points if y is not None]


def logarithmic(series):
    return plots.Logarithmic(values_of(series), ms)


def draw_tables(result):
    names = {"A1, paper, measured": ("paper", "worst_fit"), "A1, simulated": (None, "worst_fit"), "A2, paper, measured": ("paper", "greedy"),
             "A2, simulated": (None, "greedy"), "ours, simulated": (None, "starling"), "bound": (None, "bound")}  # fmt: skip
    dashed = [name for name in names if "paper" in name or name == "bound"]
    panels = []
    for ensemble in dict.fromkeys(cell["ensemble"] for cell in result["table_1"]):
        cells = [cell for cell in result["table_1"] if cell["ensemble"] == ensemble]
        series = [(name, [(cell["gpus"], (cell[inner] if inner else cell)[key], "") for cell in cells]) for name, (inner, key) in names.items()]
        panels.append((ensemble, line_panel(series, "GPUs, and a CPU", "images a second", plots.Linear(values_of(series)), dashed)))
    return panels, list(names), dashed


def arrivals(latencies, names):
    """The course of latencies, in the colours that `names` have on the whole sheet."""
    series = [(name, [(i, float(value), "") for i, value in enumerate(latencies.get(name, "").split())]) for name in names]
    return line_panel(series, "request", "latency", logarithmic(series))


def draw_policies(result):
    names = [*result["networks"][0]["rates"], "bound"]
    panels = {"arrivals": [], "rates": [], "loads": []}
    for made in result["networks"]:
        panels["arrivals"].append((made["network"], arrivals(made["diurnal"]["latencies_ms"], names)))
        rates = [(name, rate, f"{rate:g}/s") for name, rate in made["rates"].items()]
        panels["rates"].append((made["network"], plots.column_parts(sheet.PANEL, rates, plots.Linear([rate for _, rate, _ in rates]), "1/s within the QoS")))
        series = [(name, [(100 * row["load"], row[name]["p99_ms"], "") for row in made["stable"]]) for name in names]
        panels["loads"].append((made["network"], line_panel(series, "load, % of 32 / T(32)", "p99", logarithmic(series), ["bound"])))
    return [panel for kind in panels.values() for panel in kind], names, ["bound"]


def draw_elastic(result):
    names, panels = list(result["ways"]), []
    for made in result["networks"]:
        rows = [row for row in made["rows"] if row["valid"]]
        series = [(way, [(100 * row["load"], row["p50_ms"], "") for row in rows if row["way"] == way]) for way in names]
        panels.append((made["network"], line_panel(series, "load, %", "p50", logarithmic(series))))
    return panels, names, []


def draw_diurnal(result):
    names = list(result["ways"])
    latencies = [{way: figures["latencies_ms"] for way, figures in made["ways"].items()} for made in result["networks"]]
    return [(made["network"], arrivals(found, names)) for made, found in zip(result["networks"], latencies)], names, []


def draw_gpulets(result):
    """Multiples of the rates, of the bound; a panel for each profile, reading and scenario."""
    panels = []
    for table in result["figure_12"]:
        for scenario, made in table["scenarios"].items():
            ways = [way for way in made if way != "bound"]
            shares = [(way, made[way]["scheduled"] / made["bound"], f"{made[way]['scheduled']:.1f}") for way in ways]
            columns = plots.column_parts(sheet.PANEL, [*shares, ("bound", 1.0, f"{made['bound']:.1f}")], plots.Linear([0.0, 1.0]), "of the bound")
            panels.append((f"{table['profile']}, {table['reading']}: {scenario}", columns))
    return panels, [*ways, "bound"], []


DRAW = {"tables": draw_tables, "policies": draw_policies, "elastic": draw_elastic, "diurnal": draw_diurnal, "gpulets": draw_gpulets}


def main():
    if len(sys.argv) != 3:
        sys.exit("plot.py: usage: plot.py RESULT.json FILE.svg")
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    draw = DRAW.get(result.get("benchmark"))
    if not draw:
        sys.exit(f"plot.py: {sys.argv[1]}: a result of {result.get('benchmark')}, not of {', '.join(DRAW)}")
    kind = f"simulated on {result['profile']}" if not result["live"] else f"live, {result['processor']}"
    panels, names, dashed = draw(result)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(sheet.draw(f"{result['benchmark']}, {result['date'][:10]}, {kind}", panels, min(COLUMNS, len(panels)), names, dashed))


if __name__ == "__main__":
    main()
