#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One HTML page of results of `starling bench load`: figures with their intervals, latency over load, the distribution on a scale of
nines, the course of time, and the stages. The page holds all that it shows; Python's standard library is all that this needs.

    starling bench load digits --rate 500,1000,2000 --output a.json
    perf/report/report.py a.json -o a.html
"""

import argparse
import html
import json
import math
import sys

import plots

SCHEMA = "starling-load/1"
QUANTILES = [("p50", "latency_p50_ns"), ("p90", "latency_p90_ns"), ("p99", "latency_p99_ns"), ("p99.9", "latency_p999_ns")]
STAGES = ["sending", "queued", "batched", "computing", "combining", "waking"]

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d1d1d; background: #fff; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .15rem .8rem .15rem 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } th { border-bottom: 1px solid #bbb; font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; } td small { color: #666; }
.wide { overflow-x: auto; } .bad { background: #fde8e0; border-left: 4px solid #d55e00; padding: .4rem .8rem; margin: .4rem 0; }
.good { background: #e3f4ee; border-left: 4px solid #009e73; padding: .4rem .8rem; margin: .4rem 0; }
svg { width: 100%; max-width: 52rem; height: auto; font-size: 11px; } svg text { fill: #444; } svg .axis { font-size: 12px; }
svg path { fill: none; stroke-width: 1.8; } svg .grid { stroke: #e4e4e4; } svg .rule { stroke: #444; stroke-dasharray: 5 4; }
.legend span { margin-right: 1.2rem; white-space: nowrap; } .legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; }
.legend { margin: .2rem 0 0; } code { background: #f3f3f3; padding: .1rem .3rem; }
"""


class Point:
    """One level of load of one result, with a name that tells it from all others."""

    def __init__(self, result, name, data):
        self.result, self.name, self.data = result, name, data

    def value(self, figure):
        return self.data["figures"][figure]["value"]

    def load(self):
        return self.value("requests_per_second")


def read_results(paths):
    results = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        if result.get("schema") != SCHEMA:
            raise ValueError(f"{path}: schema {result.get('schema')!r}, wants {SCHEMA!r}")
        results.append((path.rsplit("/", 1)[-1].removesuffix(".json"), result))
    return results


def points_of(results):
    several = len(results) > 1
    return [Point(result, f"{name}: {point['label']}" if several else point["label"], point)
            for name, result in results for point in result["points"]]


def text_of(value, unit):
    if value is None:
        return "-"
    if unit == "ns":
        return plots.text_of_ns(value)
    if unit == "1/s":
        return plots.text_of_rate(value)
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    return f"{value:.3g}"


# ---- parts of the page ----


def verdicts(results):
    parts = []
    for name, result in results:
        noise, said = result["noise"], []
        for point in result["points"]:
            said += [f"{point['label']}: {reason}" for reason in point["reasons"]]
        if said:
            parts.append(f'<div class="bad"><b>{html.escape(name)}: not valid.</b> ' + html.escape("; ".join(said)) + "</div>")
        else:
            parts.append(f'<div class="good"><b>{html.escape(name)}: valid.</b> The generator kept up, and nothing failed.</div>')
        if not noise["quiet"]:
            floors = [text_of(noise[key], "ns") for key in ("floor_before_ns", "floor_after_ns")]
            parts.append(f'<div class="bad">The floor was {floors[0]} before and {floors[1]} after: the machine was not the same.</div>')
    return "".join(parts)


def environment(results):
    rows = []
    for name, result in results:
        machine, load = result["machine"], result["load"]
        models = ", ".join(f"{model['name'] or 'no-op'} x {model['weight']:g}, {model['samples']} samples" for model in load["models"])
        rows.append((name, f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['kernel']}, governor {machine['governor']}, "
                     f"{machine['date']}, Starling {machine['starling']}",
                     f"{models}; {load['threads']} threads that {load['waiting']}, bound to {load['cpus'] or 'no CPU'}; "
                     f"{load['duration_s']:g} s each after {load['warm_up_s']:g} s, seed {load['seed']}",
                     "starling bench " + " ".join(result["command"])))
    return "".join(f"<h3>{html.escape(name)}</h3><p>{html.escape(machine)}<br>{html.escape(load)}<br><code>{html.escape(command)}</code></p>"
                   for name, machine, load, command in rows)


def figure_cell(figure):
    text = text_of(figure["value"], figure["unit"])
    if figure["low"] is not None and figure["low"] + figure["high"] > 0:
        text += f" <small>&plusmn; {100 * (figure['high'] - figure['low']) / (figure['high'] + figure['low']):.1f} %</small>"
    return f"<td>{text}</td>"


def figures(points):
    head = "".join(f"<th>{html.escape(point.name)}</th>" for point in points)
    rows = []
    for key in points[0].data["figures"]:
        if any(point.value(key) is not None for point in points):
            cells = "".join(figure_cell(point.data["figures"][key]) for point in points)
            rows.append(f"<tr><td>{html.escape(key.replace('_', ' '))}</td>{cells}</tr>")
    return f'<div class="wide"><table><tr><th></th>{head}</tr>{"".join(rows)}</table></div>'


def objectives(results):
    found = {result["load"]["objective_ns"] for _, result in results if result["load"]["objective_ns"]}
    return [(value, f"objective {plots.text_of_ns(value)}") for value in found]


def latency_over_load(results, points):
    series = []
    for name, result in results:
        own = sorted((point for point in points if point.result is result), key=Point.load)
        for quantile, key in QUANTILES:
            label = f"{name}: {quantile}" if len(results) > 1 else quantile
            series.append((label, [(point.load(), point.value(key), f"{text_of(point.value(key), 'ns')} at {text_of(point.load(), '1/s')}")
                                   for point in own]))
        steps = sorted((result["search"] or {"steps": []})["steps"], key=lambda step: step["rate"])
        if steps:
            label = f"p{100 * result['load']['percentile']:g} while searching"
            series.append((label, [(step["rate"], step["latency_ns"], "kept" if step["kept"] else "not kept") for step in steps]))
    flat = [(x, y) for _, own in series for x, y, _ in own if y is not None]
    if not flat:
        return "<p>Too few answers.</p>"
    series = [(name, own) for name, own in series if any(y is not None for _, y, _ in own)]
    return plots.lines(series, plots.Linear([x for x, _ in flat], text=plots.text_of_rate),
                       plots.Logarithmic([y for _, y in flat] + [value for value, _ in objectives(results)], plots.text_of_ns),
                       "requests answered per second", "latency", marks=True, rules=objectives(results))


def distribution(points):
    series, nines = [], 1
    for point in points:
        pairs = point.data["distribution"]
        n = pairs[-1][1] if pairs else 0
        nines = max(nines, math.floor(math.log10(n))) if n > 1 else nines
        series.append((point.name, [(share, ns, "") for ns, share in ((ns, below / n) for ns, below in pairs)]))
    values = [ns for _, own in series for _, ns, _ in own]
    if not values:
        return "<p>No answers.</p>"
    return plots.lines(series, plots.Tail(nines), plots.Logarithmic(values, plots.text_of_ns), "share of the requests that are not slower", "latency",
                       step=True)


def timeline(point):
    slices = [entry for entry in point.data["timeline"] if entry[2]]
    if not slices:
        return "<p>All was due at once.</p>"
    series = [(name, [(entry[0], entry[column], "") for entry in slices]) for name, column in (("most", 5), ("p99", 4), ("p50", 3))]
    return plots.lines(series, plots.Linear([entry[0] for entry in slices], text=lambda value: f"{value:g} s"),
                       plots.Logarithmic([entry[column] for entry in slices for column in (3, 5)], plots.text_of_ns),
                       "when it was due, one repeat after the other", "latency")


def stages(points):
    columns = [(f"{i + 1}", [point.data["stages"][stage]["mean_ns"] or 0 for stage in STAGES]) for i, point in enumerate(points)]
    names = "".join(f"<li>{html.escape(point.name)}</li>" for point in points)
    plot = plots.stacks(STAGES, columns, plots.Linear([sum(values) for _, values in columns], text=plots.text_of_ns), "mean latency",
                        plots.text_of_ns)
    return f"{plot}<ol>{names}</ol>"


def scenarios(results):
    parts = []
    for name, result in results:
        scenario = result["scenario"]
        if scenario:
            rules = "as long as MLPerf's rules want" if scenario["follows_rules"] else "NOT as MLPerf's rules want"
            parts.append(f"<p>{html.escape(name)}: {scenario['name']}, {html.escape(scenario['metric'])}: {text_of(scenario['value'], '')}; "
                         f"{scenario['seconds']:.1f} s of {scenario['seconds_wanted']:g}, {scenario['queries']} queries of "
                         f"{scenario['queries_wanted']}: {rules}. Never a result of MLPerf: {html.escape(scenario['why_not_compliant'])}.</p>")
        if result["search"]:
            found = result["search"]["found_per_second"]
            parts.append(f"<p>{html.escape(name)}: highest rate with p{100 * result['load']['percentile']:g} at most "
                         f"{text_of(result['load']['objective_ns'], 'ns')}: {text_of(found, '1/s') if found else 'none keeps it'}.</p>")
    return "".join(parts)


def page(results):
    points = points_of(results)
    title = "starling bench load: " + ", ".join(name for name, _ in results)
    times = "".join(f"<h3>{html.escape(point.name)}</h3>{timeline(point)}" for point in points)
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style></head><body>'
            f"<h1>{html.escape(title)}</h1>{verdicts(results)}{environment(results)}{scenarios(results)}"
            f"<h2>Figures, with 95 % intervals</h2>{figures(points)}"
            f"<h2>Latency over load</h2>{latency_over_load(results, points)}"
            f"<h2>Distribution</h2>{distribution(points)}"
            f"<h2>Stages, means</h2>{stages(points)}"
            f"<h2>Course of time</h2>{times}</body></html>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="FILE.json", help="draw the result FILE.json")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.html", help="write the page to FILE.html (required)")
    arguments = parser.parse_args()
    try:
        text = page(read_results(arguments.results))
    except (OSError, ValueError) as error:
        sys.exit(f"report.py: {error}")
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
