# SPDX-License-Identifier: Apache-2.0
"""A result as Markdown: the goals first, then one table for each workload and number of samples."""

import goals
from registry import PEERS
from workloads import WORKLOADS, samples_of

COLUMNS = ["", "p50", "p99", "requests/s: 1 client", "4 clients", "within the objective", "CPU a request", "beside the models", "open load: p99"]


def row(cells):
    """One line; what would end a cell early is replaced."""
    return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def duration(us):
    """Microseconds in a unit that fits; "" for none."""
    if us is None:
        return ""
    for limit, factor, unit in ((1, 1e3, "ns"), (1e3, 1, "us"), (1e6, 1e-3, "ms")):
        if us < limit:
            return f"{us * factor:.3g} {unit}"
    return f"{us * 1e-6:.3g} s"


def number(value):
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _goal_lines(found):
    lines = ["## Goals", "", row(["goal", "figure", "wanted", "met", "decided by"]), row(["---"] * 5)]
    for goal in found["goals"]:
        wanted = f"at {'least' if goal['at_least'] else 'most'} {goal['limit']:g}"
        met = {True: "yes", False: "**no**", None: "not measured"}[goal["met"]]
        lines.append(row([goal["goal"], "" if goal["figure"] is None else f"{goal['figure']:.3g}", wanted, met, goal["rival"] or ""]))
    return lines


def _native_lines(found, workload):
    rows = [entry for entry in found["native"] if entry["workload"] == workload]
    if not rows:
        return []
    lines = ["", "From C, one at a time:", "", row(["", "samples", "p50", "p99", "requests/s"]), row(["---"] * 5)]
    for entry in sorted(rows, key=lambda entry: (entry["samples"], entry.get("p50_us") or float("inf"))):
        if "why" in entry:
            lines.append(row([entry["peer"], entry["samples"], entry["why"], "", ""]))
            continue
        lines.append(row([entry["peer"], entry["samples"], duration(entry["p50_us"]), duration(entry["p99_us"]), number(entry.get("per_second"))]))
    return lines


def _why(cell):
    """Why a cell has no figure at all; None when it has some."""
    reasons = [point["why"] for point in cell["points"] if "why" in point]
    return reasons[0] if len(reasons) == len(cell["points"]) else None


def _figures(found, cell):
    """The cells of a peer's line after its name."""
    if why := _why(cell):
        return [why] + [""] * (len(COLUMNS) - 2)
    key = cell["workload"], cell["samples"], cell["peer"]
    closed = goals.points_of(found, *key, "closed")
    lone = next((point for point in closed if point["clients"] == 1), {})
    many = next((point for point in closed if point["clients"] > 1), {})
    opened = next((point for point in cell["points"] if point["mode"] == "open"), {})
    return [
        duration(lone.get("p50_us")), duration(lone.get("p99_us")), number(lone.get("per_second")), number(many.get("per_second")),
        number(goals.within_objective(found, *key)) or "", duration((many or lone).get("cpu_us_per_request")),
        duration(goals.beside_us(found, *key)), opened.get("why") or duration(opened.get("p99_us")),
    ]  # fmt: skip


def _cell_lines(found, workload, samples):
    order = list(PEERS)
    cells = [cell for cell in found["cells"] if cell["workload"] == workload and cell["samples"] == samples]
    if not cells:
        return []
    rate = next((point["rate"] for cell in cells for point in cell["points"] if point["mode"] == "open" and "why" not in point), None)
    heads = COLUMNS[:-1] + [f"open load of {number(rate)}/s: p99" if rate else COLUMNS[-1]]
    lines = ["", f"{samples} sample{'s' if samples > 1 else ''} a request, from Python:", "", row(heads), row(["---"] * len(heads))]
    for cell in sorted(cells, key=lambda cell: order.index(cell["peer"])):
        lines.append(row([PEERS[cell["peer"]].title, *_figures(found, cell)]))
    return lines


def _floor(part, when):
    return "" if part.get(f"floor_{when}_ns") is None else f"{part[f'floor_{when}_ns']:.0f}"


def _part_lines(found):
    """What was measured when; a busy machine shows here."""
    lines = ["", "## Parts", "", "In the order of measuring; a later one has replaced the cells that it measured again.", "",
             row(["date", "commit", "command", "ns of a cache line before", "after", "load average"]), row(["---"] * 6)]  # fmt: skip
    for part in found["parts"]:
        command = " ".join(word for word in part.get("command", []) if "/" not in word and word != "--out")
        lines.append(row([part.get("date", ""), part.get("commit", ""), command, _floor(part, "before"), _floor(part, "after"),
                          part.get("load_average", "")]))  # fmt: skip
    return lines


def _environment(found):
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    floors = [floor for part in found["parts"] for floor in (part["floor_before_ns"], part["floor_after_ns"]) if floor]
    noise = f"; a cache line there and back took {min(floors):.0f} to {max(floors):.0f} ns before and after the parts" if floors else ""
    return f"{machine['cpus']} CPUs of {machine['cpu']} (family {machine['family']}, model {machine['model']}), Linux {machine['kernel']}{noise}. {versions}."


def markdown(found):
    lines = ["# Starling and its peers", "", _environment(found), "", *_goal_lines(found)]
    for name, workload in WORKLOADS.items():
        body = _native_lines(found, name)
        for samples in samples_of(name):
            body += _cell_lines(found, name, samples)
        if body:
            lines += ["", f"## {workload.title}", "", f"Objective: p99 at most {workload.objective_ms:g} ms.", *body]
    lines += _part_lines(found)
    return "\n".join(lines) + "\n"
