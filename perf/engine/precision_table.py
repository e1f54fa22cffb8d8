# SPDX-License-Identifier: Apache-2.0
"""What the rows of precision.py say: ratios of medians, goals that are met and missed, as one JSON object and as Markdown."""

import json
import math
import os

PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
COLUMNS = ("starling_fp32", "starling_int8", "starling_bf16", "onnxruntime_int8", "openvino_int8", "openvino_bf16")
GOALS = {"int8_mean": 1.2, "int8_least": 1.0, "bf16_over_fp32": 1.7}


def key(row):
    return row["model"], row["batch"], row["cores"]


def _ms(row, name):
    return row.get(name, {}).get("ms")


def _over(a, b):
    return a / b if a and b else None


def judged(row):
    """Above 1 Starling's int8 or bf16 is faster: than the faster peer's of the same precision, and than its own float32."""
    int8 = {peer: _ms(row, f"{peer}_int8") for peer in PEERS if _ms(row, f"{peer}_int8")}
    faster = min(int8, key=int8.get, default=None)
    return {
        "int8_ratio": _over(int8.get(faster), _ms(row, "starling_int8")),
        "int8_faster_peer": faster,
        "int8_over_fp32": _over(_ms(row, "starling_fp32"), _ms(row, "starling_int8")),
        "bf16_ratio": _over(_ms(row, "openvino_bf16"), _ms(row, "starling_bf16")),
        "bf16_over_fp32": _over(_ms(row, "starling_fp32"), _ms(row, "starling_bf16")),
    }


def _mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _figures(rows, name):
    """Mean and least of a ratio over the rows that have it."""
    ratios = [r[name] for r in rows if r.get(name)]
    return {"geomean": _mean(ratios), "least": min(ratios, default=None), "rows": len(ratios)}


def below(rows, name, limit):
    """ "model batch/cores ratio" of the rows below a limit, the lowest first."""
    found = sorted((r[name], *key(r)) for r in rows if r.get(name) and r[name] < limit)
    return [f"{model} {batch}/{cores} {ratio:.2f}" for ratio, model, batch, cores in found]


def summary(rows):
    cores = sorted({row["cores"] for row in rows}) or [1]
    return {
        "by_cores": {str(n): _ratios([r for r in rows if r["cores"] == n]) for n in cores},
        "goals": [goal for n in cores for goal in _goals([r for r in rows if r["cores"] == n], n)],
        "errors": sorted({f"{r['model']} {name}: {r[name]['error']}" for r in rows for name in COLUMNS if "error" in r.get(name, {})}),
    }


def _ratios(rows):
    names = {"int8_to_faster_peer": "int8_ratio", "int8_over_fp32": "int8_over_fp32", "bf16_to_openvino": "bf16_ratio"}
    return {title: _figures(rows, name) for title, name in {**names, "bf16_over_fp32": "bf16_over_fp32"}.items()}


def _goals(rows, cores):
    int8, bf16 = _figures(rows, "int8_ratio"), _figures(rows, "bf16_over_fp32")
    slower, narrow = below(rows, "int8_ratio", GOALS["int8_least"]), below(rows, "bf16_over_fp32", GOALS["bf16_over_fp32"])
    return [
        _goal("int8 against the faster peer's int8, geometric mean", cores, GOALS["int8_mean"], int8["geomean"], []),
        _goal("int8 against the faster peer's int8, least", cores, GOALS["int8_least"], int8["least"], slower),
        _goal("bf16 against own fp32, geometric mean", cores, GOALS["bf16_over_fp32"], bf16["geomean"], narrow),
    ]


def _goal(text, cores, wanted, got, below_it):
    return {"goal": text, "cores": cores, "wanted": wanted, "measured": got, "met": bool(got) and got >= wanted, "below": below_it}


def goals_said(document):
    lines = []
    for goal in document["goals"]:
        verdict = "met" if goal["met"] else "MISSED"
        rest = f"; below: {', '.join(goal['below'])}" if goal["below"] else ""
        lines.append(f"{verdict}: {goal['goal']}: {_number(goal['measured'])}, goal {goal['wanted']}, cores {goal['cores']}{rest}")
    return lines + [f"no figure: {line}" for line in document["errors"]]


def said(row):
    figures = ", ".join(f"{name} {_number(_ms(row, name))}" for name in COLUMNS)
    return f"{row['model']} batch {row['batch']} cores {row['cores']}: int8 {_number(row['int8_ratio'])} x, over fp32 " \
           f"{_number(row['int8_over_fp32'])}, bf16 over fp32 {_number(row['bf16_over_fp32'])}; ms: {figures}"  # fmt: skip


def earlier(path):
    try:
        with open(path) as file:
            return json.load(file)["rows"]
    except (FileNotFoundError, ValueError, KeyError):
        return []


def write(path, header, rows):
    """path is the JSON file; the Markdown lies beside it. Both appear whole."""
    document = {**summary(rows), **header, "rows": sorted(rows, key=key)}
    for name, text in ((path, json.dumps(document, indent=1) + "\n"), (os.path.splitext(path)[0] + ".md", markdown(document))):
        with open(name + ".part", "w") as file:
            file.write(text)
        os.replace(name + ".part", name)


def _number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


_HEADINGS = (
    "model", "batch", "cores", "Starling fp32 ms", "int8", "bf16", "ONNX Runtime int8 ms", "OpenVINO int8", "bf16",
    "int8: ratio to the faster peer", "which", "int8 over fp32", "bf16 over fp32", "bf16: ratio to OpenVINO", "cosine, int8 to fp32 (stored)",
)  # fmt: skip


def _line(row):
    ratios = [_number(row[name]) for name in ("int8_over_fp32", "bf16_over_fp32", "bf16_ratio")]
    cells = [row["model"], str(row["batch"]), str(row["cores"]), *(_number(_ms(row, name)) for name in COLUMNS)]
    cells += [_number(row["int8_ratio"]), PEERS.get(row["int8_faster_peer"], "-"), *ratios, row.get("variant", {}).get("cosine", "-")]
    return "| " + " | ".join(cells) + " |"


def markdown(document):
    machine, versions = document["machine"], document["versions"]
    lines = [*(f"- {line}" for line in goals_said(document)), ""]
    lines += [
        f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['kernel']}; {document['date']};"
        f" {', '.join(f'{name} {version}' for name, version in versions.items())}; `{document['command']}`",
        "",
        "| " + " | ".join(_HEADINGS) + " |",
        "|" + "---|" * len(_HEADINGS),
        *map(_line, document["rows"]),
    ]
    return "\n".join(lines) + "\n"
