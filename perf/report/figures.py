#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes perf/FIGURES.md, its plots and the table of the README out of perf/results, or says where they differ from it.

    perf/report/figures.py            # writes them
    perf/report/figures.py --check    # exit status 1 and a line for each file that is not what the results say

Every figure is computed from the JSON file that its row names. A row without a result cannot be written.
"""

import argparse
import json
import math
import pathlib
import sys

import bars
import plots

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- figures: made by perf/report/figures.py -->", "<!-- end of figures -->"


class Result:
    """One file of perf/results, and how a page links to it."""

    def __init__(self, name, folder=None):
        self.name = name
        with open((folder or ROOT / "perf/results") / f"{name}.json", encoding="utf-8") as file:
            self.data = json.load(file)

    def __getitem__(self, key):
        return self.data[key]

    def link(self, text, base):
        return f"[{text}]({base}results/{self.name}.json)"

    def table(self):
        """A link to the result as text, where its benchmark writes one."""
        return f" ([table](results/{self.name}.md))" if (ROOT / f"perf/results/{self.name}.md").exists() else ""

    def commits(self):
        """Those that rows name, else that of the file; empty where an older benchmark did not note one."""
        rows = [row for row in self.data.get("rows", []) if isinstance(row, dict)]
        found = sorted({row["commit"] for row in rows if "commit" in row}) or [self.data.get("commit", "") or self.data.get("machine", {}).get("commit", "")]
        return found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} others"

    def date(self):
        return self.name[-len("2026-11-22"):]

    def command(self):
        command = self.data.get("command", "")
        return command if isinstance(command, str) else "starling bench " + " ".join(command)


def time_of(ns):
    for limit, unit in ((1e3, "ns"), (1e6, "us"), (1e9, "ms")):
        if ns < limit:
            return f"{ns / (limit / 1e3):.3g} {unit}"
    return f"{ns / 1e9:.3g} s"


def rate_of(rate):
    for limit, unit in ((1e3, ""), (1e6, " k"), (math.inf, " M")):
        if rate < limit:
            return f"{rate / {'': 1, ' k': 1e3, ' M': 1e6}[unit]:.3g}{unit}/s"
    raise ValueError(rate)


def times(ratio):
    return f"{ratio:.2f} x"


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def spread(rows, key="ratio"):
    """The geometric mean of a ratio, and the least row."""
    least = min(rows, key=lambda row: row[key])
    return f"{times(geomean([row[key] for row in rows]))}, least {least[key]:.2f} ({least['model']})"


class Figures:
    """Everything that is printed, read once."""

    def __init__(self):
        self.noop = Result("noop-epyc25-2026-11-29")
        self.small_c, self.small = Result("small-c-epyc25-2026-11-29"), Result("small-epyc25-2026-11-29")
        self.peers = Result("peers-2026-11-23")
        self.zoo = [("Intel Xeon, model 167", Result("engine-zoo-2026-11-22")), ("AMD EPYC, family 26", Result("engine-zoo-epyc-2026-11-22")),
                    ("the same EPYC, AVX2 alone", Result("engine-zoo-epyc-avx2-2026-11-22"))]
        self.further = [("Intel Xeon, model 167", Result("engine-further-2026-11-22")),
                        ("AMD EPYC, family 26", Result("engine-further-epyc-2026-11-22"))]
        self.teams = [("AMD EPYC, family 26", Result("engine-teams-epyc26-2026-11-27")),
                      ("Intel Xeon, model 207", Result("engine-teams-2026-11-26")),
                      ("AMD EPYC, family 25", Result("engine-teams-epyc25-2026-11-23"))]
        self.precision = [("AMD EPYC, family 25", Result("precision-epyc25-2026-11-28")),
                          ("AMD EPYC, family 26", Result("precision-epyc26-2026-11-27")),
                          ("Intel Xeon, model 207, no AMX", Result("precision-xeon207-2026-11-27")),
                          ("Intel Xeon with AMX", Result("precision-2026-11-26"))]
        self.trees, self.merged = Result("trees-2026-11-22"), Result("netfuse-epyc25-2026-11-28")
        self.turns, self.starts, self.cold = Result("turns-2026-11-22"), Result("starts-2026-11-22"), Result("cold-epyc25-2026-11-28")

    def all(self):
        several = self.zoo + self.further + self.teams + self.precision
        return [self.noop, self.small_c, self.small, self.peers] + [result for _, result in several] + [
            self.trees, self.merged, self.turns, self.starts, self.cold]


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def batch_rows(result, batch):
    return [row for row in result["rows"] if row.get("batch") == batch and row.get("ratio")]


def goal(result, words):
    """The goal of `peers` whose name has these words."""
    return next(found for found in result["goals"] if words in found["goal"])


def merged_row(figures, network, occupied=32):
    return next(row for row in figures.merged["rows"] if row["network"] == network and row["occupied"] == occupied)


def readme_table(figures):
    noop, small, mlp = figures.noop, figures.small, merged_row(figures, "mlp")
    zoo, teams, precision = figures.zoo[1][1], figures.teams[0][1], figures.precision[0][1]
    int8 = precision["by_cores"]["1"]["int8_to_faster_peer"]
    triton = goal(figures.peers, "Triton's best way")
    base = "perf/"
    return table(["", "Starling", "beside"], [
        ["an empty request, there and back, p50", time_of(noop["rtt_p50_ns"]),
         f"{time_of(noop['ring_rtt_p50_ns'])}, two bare rings ({noop.link('EPYC 25', base)})"],
        ["the same beside Triton, from C", f"{triton['figure']:.0f} x as soon",
         f"{triton['rival'].split(': ')[1]}, gRPC with shared memory ({figures.peers.link('EPYC 25', base)})"],
        ["a small perceptron from Python, p50", f"{small['starling_p50_us']:.1f} us",
         f"{small['onnxruntime_p50_us']:.1f} us, ONNX Runtime in the process ({small.link('EPYC 25', base)})"],
        [f"{zoo['models']} networks in fp32, one core, batch 1", spread(batch_rows(zoo, 1)),
         f"the fastest of ONNX Runtime, OpenVINO, ncnn, MNN ({zoo.link('EPYC 26', base)})"],
        [f"{teams['models']} networks, one sample on two cores", spread(batch_rows(teams, 1)),
         f"the faster of ONNX Runtime and OpenVINO ({teams.link('EPYC 26', base)})"],
        [f"{int8['rows']} networks in int8, one core", f"{times(int8['geomean'])}, least {int8['least']:.2f}",
         f"the faster of the same two ({precision.link('EPYC 25', base)})"],
        ["forests, 1 row; 1,000 rows",
         f"{times(geomean([r['ratio'] for r in figures.trees['rows'] if r['batch'] == 1]))}; "
         f"{times(geomean([r['ratio'] for r in figures.trees['rows'] if r['batch'] == 1000]))}",
         f"ONNX Runtime ({figures.trees.link('Xeon 167', base)})"],
        ["32 copies of one perceptron, `merge_copies: 10`", rate_of(mlp["merged"]["per_second"]),
         f"{rate_of(mlp['onnxruntime_per_second'])}, 32 sessions of ONNX Runtime ({figures.merged.link('EPYC 25', base)})"],
    ])  # fmt: skip


def peers_section(figures):
    return (f"## Beside other ways to ask\n\nAll on one machine, an {figures.peers.link('AMD EPYC, family 25', '')}, each in its best way ([every figure](results/peers-2026-11-23.md)).\n"
            "`onnxruntime` and `openvino` compute inside each client's process, `-2` with two threads.\n\n"
            "![p50 of an empty request](results/latency.svg)\n\n![Requests a second to the ensemble of digits](results/throughput.svg)\n")


def path_section(figures):
    noop = figures.noop
    rows = [
        ["floor: one cache line from core to core and back, before; after", f"{time_of(noop['floor_ns'])}; {time_of(noop['floor_after_ns'])}", ""],
        ["bare ring, p50; mean", f"{time_of(noop['ring_rtt_p50_ns'])}; {time_of(noop['ring_rtt_mean_ns'])}", ""],
        ["empty request, p50; mean", f"{time_of(noop['rtt_p50_ns'])}; {time_of(noop['rtt_mean_ns'])}", "1.25 x the bare ring"],
        ["p99; p99.9", f"{time_of(noop['rtt_p99_ns'])}; {time_of(noop['rtt_p999_ns'])}", "p99.9 at most 5 x p50"],
        ["p50 beside 31 idle clients", time_of(noop["rtt_p50_32_clients_ns"]), "1.15 x one client"],
        ["p50; p99.9 while a network computes on the client's core",
         f"{time_of(noop['rtt_p50_busy_ns'])}; {time_of(noop['rtt_p999_busy_ns'])}", ""],
        ["from one client thread, 32 at a time", rate_of(noop["requests_per_second"]), "5 M/s"],
        ["both sides asleep, p50", time_of(noop["sleeping_rtt_p50_ns"]), f"two bare processes with a futex: {time_of(noop['futex_rtt_p50_ns'])}"],
        ["attach and detach, arena of 1 MiB; 1 GiB", f"{time_of(noop['attach_ns'])}; {time_of(noop['attach_large_arena_ns'])}", "1 ms"],
        ["an idle runtime", f"{100 * noop['idle_cpu_share']:.3f} % of a core, {noop['idle_rss_bytes'] / 1e6:.1f} MB", "0.5 %, 30 MB"],
    ]  # fmt: skip
    return ("## The path of a request\n\nThe *floor* is one cache line's ping-pong between the two cores. The *bare ring* is two processes with a ring each way. Both\n"
            f"are of the same run, on an {noop.link('AMD EPYC, family 25', '')}. How far apart two virtual cores lie changes within seconds, as the floor shows.\n\n"
            + table(["", "measured", "limit or goal"], rows))


def small_section(figures):
    c, python = figures.small_c, figures.small
    rows = [
        [f"C, p50; p99.9 ({c.link('EPYC 25', '')})", f"{time_of(c['mlp_rtt_p50_ns'])}; {time_of(c['mlp_rtt_p999_ns'])}",
         f"empty request of the same run: {time_of(c['noop_rtt_p50_ns'])}; inside the network: {time_of(c['mlp_compute_ns'])}"],
        ["C, 32 in flight", rate_of(c["mlp_per_second_32_in_flight"]), ""],
        [f"Python, p50; p99.9 ({python.link('EPYC 25', '')})", f"{python['starling_p50_us']:.3g} us; {python['starling_p999_us']:.3g} us",
         f"ONNX Runtime in the process: {python['onnxruntime_p50_us']:.3g} us; {python['onnxruntime_p999_us']:.3g} us"],
        ["four Python clients", rate_of(python["starling_four_clients_per_second"]),
         f"a Unix socket's server with ONNX Runtime: {rate_of(python['socket_four_clients_per_second'])}"],
    ]  # fmt: skip
    return ("## Small networks\n\nA perceptron 64-128-10, one sample a request. The dispatcher computes it itself.\n\n"
            + table(["", "measured", "beside"], rows))


def engine_rows(results, batches):
    rows = []
    for machine, result in results:
        for batch in batches:
            found = batch_rows(result, batch)
            if found:
                below = sum(row["ratio"] < 1 for row in found)
                rows.append([result.link(machine, ""), str(batch), str(len(found)), spread(found), str(below)])
    return rows


def engine_section(figures):
    head = ["machine", "batch", "networks", "times the fastest peer's speed", "below 1"]
    return ("## Engines\n\nCompiled plans beside the fastest peer that runs the network: ONNX Runtime, OpenVINO and, in the zoo on one core, ncnn and MNN. fp32, tuning off;\n"
            "the geometric mean of ratios of medians in turns, and the least row. The limit is the core's peak, which each row of a result has (`share_of_peak`).\n\n"
            "The zoo, on which kernels were tuned, one core:\n\n" + table(head, engine_rows(figures.zoo, (1, 8)))
            + "\n![Ratio of each network of the zoo](results/engine-zoo.svg)\n"
            + "\nFurther architectures of torchvision, timm and transformers, one core:\n\n" + table(head, engine_rows(figures.further, (1, 8)))
            + "\nThe zoo on two cores, a team of two beside two threads of each peer:\n\n" + table(head, engine_rows(figures.teams, (1,))))


def precision_section(figures):
    rows = []
    for machine, result in figures.precision:
        one = result["by_cores"]["1"]
        rows.append([result.link(machine, "")] + [f"{times(one[key]['geomean'])}, least {one[key]['least']:.2f}" for key in (
            "int8_to_faster_peer", "int8_over_fp32", "bf16_to_openvino", "bf16_over_fp32")])  # fmt: skip
    head = ["machine", "int8, beside the faster peer's int8", "int8, beside own fp32", "bf16, beside OpenVINO's bf16", "bf16, beside own fp32"]
    return ("## int8 and bf16\n\n15 networks, batch 1, one core. QDQ files of `starling quantize`, which all engines read. The goals are 1.2 x for int8 and 1.7 x for bf16 over\n"
            "fp32. A Xeon without AMX has no faster bf16 than fp32.\n\n" + table(head, rows))


def merge_section(figures):
    rows, goals = [], [row for row in figures.merged["rows"] if row["occupied"] == 32]
    met = sum(row["met"] for row in goals)
    for network in dict.fromkeys(row["network"] for row in figures.merged["rows"]):
        all_busy, one = merged_row(figures, network), merged_row(figures, network, 1)
        rows.append([network, rate_of(all_busy["merged"]["per_second"]), times(all_busy["merged"]["ratio"]), times(one["merged"]["ratio"]),
                     rate_of(all_busy["onnxruntime_per_second"])])  # fmt: skip
    head = ["network", "merged, 32 of 32 asked", "beside separate", "beside separate, 1 of 32 asked", "32 sessions of ONNX Runtime"]
    return (f"## Copies of one network\n\n32 copies through `starling serve` with `merge_copies: 10`, which is not the default ({figures.merged.link('AMD EPYC, family 25', '')}). Of {len(goals)} goals of 2 to 3 x at 32 of 32\n"
            f"{met} are met. Medians of three rounds, which differ much.\n\n" + table(head, rows))  # fmt: skip


def load_section(figures):
    rows = [[row["model"], f"{row['cold_s']:.2f} s", f"{row['cached_s']:.2f} s", f"{row['onnxruntime_s']:.2f} s"] for row in figures.starts["starts"]]
    cold = figures.cold["models"]
    session = sum(row.get("onnxruntime_over_load", 0) >= 1 for row in cold)
    answer = sum(row.get("onnxruntime_answer_over_load", 0) >= 1 for row in cold)
    return (f"## Starts\n\nUntil a model is ready, and until ONNX Runtime's first answer in a running process ({figures.starts.link('Xeon, model 167', '')}):\n\n"
            + table(["network", "without a cached plan", "from the plan cache", "ONNX Runtime"], rows)
            + f"\nWithout a cached plan, of {len(cold)} networks {session} are ready as soon as a session of ONNX Runtime, and {answer} as soon as its first answer\n"
            f"({figures.cold.link('EPYC, family 25', '')}). The goal was all of them.\n")  # fmt: skip


def rest_section(figures):
    rows = [[row["model"], str(row["batch"]), time_of(1e3 * row["starling_us"]), time_of(1e3 * row["onnxruntime_us"]), times(row["ratio"])]
            for row in figures.trees["rows"]]  # fmt: skip
    turns = figures.turns
    beside_turns = table(["a network of " + time_of(turns["sample_ns"]) + " a sample", "after"], [
        ["a deadline of 128 samples has ended them, late by", time_of(turns["late_ns"])],
        ["512 samples are cancelled", time_of(turns["cancel_ns"])],
        ["an urgent sample beside them is answered", time_of(turns["urgent_ns"])],
        ["another client's sample is answered", time_of(turns["turn_ns"])],
    ])  # fmt: skip
    return (f"## Forests\n\nBeside ONNX Runtime, one core ({figures.trees.link('Xeon, model 167', '')}):\n\n" + table(["forest", "rows", "Starling", "ONNX Runtime", "ratio"], rows)
            + f"\n## Long requests beside short ones\n\nWhat runs is one step of the network ({turns.link('Xeon, model 167', '')}):\n\n" + beside_turns)  # fmt: skip


def sources(figures):
    rows = [[result.link(result.name, "") + result.table(), result.date(), result.commits() or "not noted", f"`{result.command()}`" if result.command() else "in the file"] for result in figures.all()]
    return "## Where each is from\n\n" + table(["result", "date", "commit", "command"], rows)


def page(figures):
    parts = ["# Figures\n\nMade by `perf/report/figures.py` out of [`results/`](results/); a test compares. Machines are shared, virtual and of two cores: a figure says\n"
             "something beside the limit or the peer of its own run, not beside another day's. [README](README.md) says how each benchmark measures.\n",
             path_section(figures), peers_section(figures), small_section(figures), engine_section(figures), precision_section(figures), merge_section(figures),
             load_section(figures), rest_section(figures), sources(figures)]  # fmt: skip
    return "\n".join(parts)


def plot_ratios(figures):
    """Both processors in one picture, a group for each network of the first batch."""
    columns = {}
    for i, (_, result) in enumerate(figures.zoo[:2]):
        for row in batch_rows(result, 1):
            columns.setdefault(row["model"], [None, None])[i] = row["ratio"]
    return bars.groups([machine for machine, _ in figures.zoo[:2]], sorted(columns.items()), "times the fastest peer's speed, batch 1, one core",
                       plots.Linear([value for values in columns.values() for value in values if value]), rule=1)


def plot_latency(figures):
    """What carries a message and nothing else, the soonest first."""
    rows = sorted((row["p50_us"] * 1e3, row["peer"]) for row in figures.peers["native"] if row["workload"] == "noop")
    return bars.groups(["p50, from C, one at a time"], [(peer, [ns]) for ns, peer in rows], "an empty request, there and back",
                       plots.Logarithmic([ns for ns, _ in rows], plots.text_of_ns))


def plot_throughput(figures):
    """Python clients of each peer, the fastest first."""
    rows = []
    for cell in figures.peers["cells"]:
        if (cell["workload"], cell["samples"]) == ("digits", 1):
            rows += [(point["per_second"], cell["peer"]) for point in cell.get("points", []) if (point["mode"], point.get("clients")) == ("closed", 4)]
    rows.sort(reverse=True)
    return bars.groups(["requests a second, four Python clients"], [(peer, [rate]) for rate, peer in rows], "the ensemble of five digits networks, one sample a request",
                       plots.Linear([rate for rate, _ in rows], text=plots.text_of_rate))


def readme(text, figures):
    before, rest = text.split(BEGIN + "\n", 1)
    return before + BEGIN + "\n" + readme_table(figures) + END + rest.split(END, 1)[1]


def wanted():
    figures = Figures()
    front = ROOT / "README.md"
    results = ROOT / "perf/results"
    return {ROOT / "perf/FIGURES.md": page(figures), results / "engine-zoo.svg": plot_ratios(figures), results / "latency.svg": plot_latency(figures),
            results / "throughput.svg": plot_throughput(figures), front: readme(front.read_text(encoding="utf-8"), figures)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description="Write perf/FIGURES.md, its plots and the README's table out of perf/results.")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a file differs from the results")
    options = parser.parse_args()
    status = 0
    for path, text in wanted().items():
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)}: not what perf/results says; run perf/report/figures.py", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
