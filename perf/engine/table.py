# SPDX-License-Identifier: Apache-2.0
"""The rows as one JSON object and as a Markdown table, with what they say together."""

import json
import math
import os


def counted(rows):
    """The rows that the two top figures are about: fp32, one core, batch 1 and 8, an answer that agrees, a peer that ran."""
    wanted = [r for r in rows if r["precision"] == "fp32" and r["cores"] == 1 and r["batch"] in (1, 8)]
    return [r for r in wanted if r.get("agrees") and r.get("ratio")]


def summary(rows):
    ratios = [r["ratio"] for r in counted(rows)]
    names = sorted({r["model"] for r in rows})
    return {
        "geomean_ratio": math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None,
        "min_ratio": min(ratios, default=None),
        "rows_counted": len(ratios),
        "models": len(names),
        "refused": sorted({r["model"] for r in rows if "error" in r["starling"]}),
        "disagreeing": sorted({r["model"] for r in rows if r.get("agrees") is False}),
        "slower": sorted({r["model"] for r in counted(rows) if r["ratio"] < 1}),
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


def _triple(row, key, scale, digits):
    return " / ".join(_figure(row, engine, key, scale, digits) for engine in ("starling", "onnxruntime", "openvino"))


def error(row):
    if row.get("agrees") is None:
        return "-"
    text = row["disagrees"] or f"{row['relative_error']:.0e}"
    return text if row["agrees"] else f"**{text}**"


def _line(row):
    cells = [row["model"], row["precision"], str(row["batch"]), str(row["cores"])]
    if "error" in row["starling"]:
        return "| " + " | ".join([*cells, "refused: " + row["starling"]["error"].replace("|", "/")]) + " |"
    cells += [_figure(row, engine, "ms") for engine in ("starling", "onnxruntime", "openvino")]
    cells += [_number(row.get("ratio")), _number(row.get("ratio_of_best")), _number(row["gflops"], 0), _number(row["share_of_peak"])]
    cells += [_triple(row, "resident_bytes", 1e-6, 0), _triple(row, "peak_bytes", 1e-6, 0), _triple(row, "load_seconds", 1, 2)]
    return "| " + " | ".join([*cells, _figure(row, "starling", "cached_load_seconds", 1, 3), error(row)]) + " |"


_COLUMNS = (
    "model", "precision", "batch", "cores", "Starling ms", "ONNX Runtime ms", "OpenVINO ms", "ratio to the faster",
    "ratio of best runs", "GFLOP/s", "share of peak", "resident MB: S / O / V", "peak MB: S / O / V", "load s: S / O / V", "cached load s", "error",
)  # fmt: skip


def markdown(document):
    machine, versions = document["machine"], document["versions"]
    lines = [
        f"Geometric mean of the ratios {_number(document['geomean_ratio'])}, least {_number(document['min_ratio'])}, over"
        f" {document['rows_counted']} rows (fp32, one core, batch 1 and 8, answers that agree to 1e-4).",
        f"Refused: {', '.join(document['refused']) or 'none'}. Disagreeing: {', '.join(document['disagreeing']) or 'none'}."
        f" Slower than a peer: {', '.join(document['slower']) or 'none'}.",
        f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['kernel']}; {document['date']};"
        f" ONNX Runtime {versions['onnxruntime']}, OpenVINO {versions['openvino']}; `{document['command']}`",
    ]
    table = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS), *map(_line, document["rows"])]
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
