# SPDX-License-Identifier: Apache-2.0
"""The rows as one JSON object and as a Markdown table, with what they say together: first of all where Starling is slower."""

import json
import math
import os

PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "ncnn": "ncnn", "mnn": "MNN"}
ENGINES = ("starling", *PEERS)


def counted(rows):
    """The rows that the two top figures are about: fp32, one core, batch 1 and 8, an answer that agrees, a peer that ran."""
    wanted = [r for r in rows if r["precision"] == "fp32" and r["cores"] == 1 and r["batch"] in (1, 8)]
    return [r for r in wanted if r.get("agrees") and r.get("ratio")]


def _mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _against(rows, peer):
    """The geometric mean against one peer, and over how many rows."""
    ratios = [r[peer]["ms"] / r["starling"]["ms"] for r in counted(rows) if "ms" in r.get(peer, {})]
    return {"geomean_ratio": _mean(ratios), "rows": len(ratios)}


def slower(rows):
    """The counted rows below 1, the slowest first; beyond noise where the whole interval lies below."""
    found = sorted((r for r in counted(rows) if r["ratio"] < 1), key=lambda r: r["ratio"])
    return [
        {"model": r["model"], "batch": r["batch"], "ratio": r["ratio"], "interval": r.get("ratio_interval"), "peer": r.get("faster_peer"),
         "beyond_noise": bool(r.get("ratio_interval")) and r["ratio_interval"][1] < 1}
        for r in found
    ]  # fmt: skip


def summary(rows):
    ratios = [r["ratio"] for r in counted(rows)]
    names = sorted({r["model"] for r in rows})
    return {
        "slower": slower(rows),
        "geomean_ratio": _mean(ratios),
        "geomean_by_peer": {peer: _against(rows, peer) for peer in PEERS},
        "min_ratio": min(ratios, default=None),
        "rows_counted": len(ratios),
        "models": len(names),
        "refused": sorted({r["model"] for r in rows if "error" in r["starling"]}),
        "disagreeing": sorted({r["model"] for r in rows if r.get("agrees") is False}),
    }


def write(path, header, rows, crews):
    """path is the JSON file; the Markdown lies beside it. Both appear whole."""
    rows = sorted(rows, key=lambda r: (r["model"], r["precision"], r["cores"], r["batch"]))
    document = {**summary(rows), **header, "rows": rows, "workers": crews}
    _replace(path, json.dumps(document, indent=1) + "\n")
    _replace(os.path.splitext(path)[0] + ".md", markdown(document))


def _replace(path, text):
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)


def _number(value, digits=2):
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if value < 1000 else f"{value:.0f}"


def _figure(row, engine, key, scale=1.0, digits=2):
    value = row.get(engine, {}).get(key)
    return _number(None if value is None else value * scale, digits)


def _each(row, key, scale, digits):
    return " / ".join(_figure(row, engine, key, scale, digits) for engine in ENGINES)


def error(row):
    if row.get("agrees") is None:
        return "-"
    text = row["disagrees"] or f"{row['relative_error']:.0e}"
    return text if row["agrees"] else f"**{text}**"


def _line(row):
    cells = [row["model"], row["precision"], str(row["batch"]), str(row["cores"])]
    if "error" in row["starling"]:
        return "| " + " | ".join([*cells, "refused: " + row["starling"]["error"].replace("|", "/")]) + " |"
    low, high = row.get("ratio_interval") or (None, None)
    cells += [_figure(row, engine, "ms") for engine in ENGINES]
    cells += [_number(row.get("ratio")), f"{_number(low)} to {_number(high)}", PEERS.get(row.get("faster_peer"), "-")]
    cells += [str(min((row[engine]["runs"] for engine in ENGINES if "runs" in row.get(engine, {})), default="-"))]
    cells += [_number(row["gflops"], 0), _number(row["share_of_peak"])]
    cells += [_each(row, "resident_bytes", 1e-6, 0), _number(row.get("compiler_peak_bytes", 0) * 1e-6, 0)]
    cells += [_each(row, "load_seconds", 1, 2), _figure(row, "starling", "cached_load_seconds", 1, 3), error(row)]
    return "| " + " | ".join([*cells, *_origin(row)]) + " |"


def _origin(row):
    return [row.get("date", "-"), row.get("commit", "-"), row.get("processor", "-")]


_COLUMNS = (
    "model", "precision", "batch", "cores", *(f"{name} ms" for name in ("Starling", *PEERS.values())), "ratio to the fastest peer",
    "interval", "which", "runs", "GFLOP/s", "share of peak", "resident MB: S / O / V / N / M", "compiler MB", "load s: S / O / V / N / M",
    "cached load s", "error", "date", "commit", "processor",
)  # fmt: skip


def _listed_slower(document):
    rows = [
        f"{r['model']} at batch {r['batch']} {_number(r['ratio'])} ({PEERS.get(r['peer'], r['peer'])}{'' if r['beyond_noise'] else ', within noise'})"
        for r in document["slower"]
    ]
    return "Slower than the fastest peer: " + (", ".join(rows) or "none") + "."


def _means(document):
    parts = [f"{PEERS[p]} {_number(m['geomean_ratio'])} ({m['rows']} rows)" for p, m in document["geomean_by_peer"].items() if m["rows"]]
    return "Against each alone: " + ", ".join(parts) + "." if parts else ""


def _left_out(rows):
    """Why a peer has no figure in a row, each reason once."""
    found = {}
    for row in rows:
        for peer in PEERS:
            if "error" in row.get(peer, {}):
                reason = row[peer]["error"].replace("|", "/").replace("\n", " ")
                found.setdefault((PEERS[peer], reason), []).append(f"{row['model']} {row['batch']}")
    lines = [f"| {peer} | {', '.join(cells)} | {reason} |" for (peer, reason), cells in sorted(found.items())]
    return ["", "| left out | model and batch | reason |", "|---|---|---|", *lines] if lines else []


def markdown(document):
    machine, versions = document["machine"], document["versions"]
    lines = [
        _listed_slower(document),
        f"Geometric mean of the ratios to the fastest peer {_number(document['geomean_ratio'])}, least {_number(document['min_ratio'])}, over"
        f" {document['rows_counted']} rows (fp32, one core, batch 1 and 8, answers that agree to 1e-4). {_means(document)}",
        f"Refused: {', '.join(document['refused']) or 'none'}. Disagreeing: {', '.join(document['disagreeing']) or 'none'}.",
        f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['kernel']}; {document['date']};"
        f" {', '.join(f'{name} {version}' for name, version in versions.items())}; `{document['command']}`",
    ]
    table = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS), *map(_line, document["rows"]), *_left_out(document["rows"])]
    return "\n\n".join(lines) + "\n\n" + "\n".join(table) + "\n" + _crews(document["workers"])


def _crews(crews):
    if not crews:
        return ""
    lines = ["", "| model | workers of batch size | shared weights MB | copies MB | largest worker alone MB | saved |"]
    lines.append("|---|---|---|---|---|---|")
    for crew in crews:
        megabytes = [f"{crew[key] / 1e6:.0f}" for key in ("shared_bytes", "copies_bytes", "one_bytes")]
        lines.append("| " + " | ".join([crew["model"], crew["sizes"], *megabytes, f"{crew['saved']:.1%}"]) + " |")
    return "\n".join(lines) + "\n"
