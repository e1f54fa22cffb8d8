# SPDX-License-Identifier: Apache-2.0
"""Bars as one SVG file that is readable on light and on dark pages."""

import html

COLOURS = ["#0072b2", "#e69f00", "#009e73"]
LABELS, ROOM, ROW, TOP = 190, 520, 22, 64

STYLE = """text { font: 12px system-ui, sans-serif; fill: #333; } .grid { stroke: #ddd; } .one { stroke: #555; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) { text { fill: #ddd; } .grid { stroke: #444; } .one { stroke: #bbb; } }"""


def _x(value, high):
    return LABELS + ROOM * value / high


def _scale(high, bottom):
    step = next(step for step in (0.25, 0.5, 1, 2, 5, 10) if high / step <= 12)
    parts = []
    for i in range(int(high / step) + 1):
        x = _x(i * step, high)
        kind = "one" if i * step == 1 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}"/>'
                     f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle">{i * step:g}</text>')  # fmt: skip
    return parts


def groups(names, rows, title):
    """`rows`: (label, [value or None of each name]). A dashed line is 1."""
    high = max(value for _, values in rows for value in values if value) * 1.05
    thin = (ROW - 4) / len(names)
    bottom = TOP + ROW * len(rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABELS + ROOM + 30} {bottom + 10}" role="img" aria-label="{html.escape(title)}">',
             f"<style>{STYLE}</style>", f'<text x="{LABELS}" y="16" font-weight="600">{html.escape(title)}</text>']  # fmt: skip
    for i, name in enumerate(names):
        parts.append(f'<rect x="{LABELS + 190 * i}" y="26" width="11" height="11" fill="{COLOURS[i]}"/>'
                     f'<text x="{LABELS + 190 * i + 16}" y="36">{html.escape(name)}</text>')  # fmt: skip
    parts += _scale(high, bottom)
    for r, (label, values) in enumerate(rows):
        y = TOP + ROW * r
        parts.append(f'<text x="{LABELS - 8}" y="{y + ROW / 2 + 4:.0f}" text-anchor="end">{html.escape(label)}</text>')
        for i, value in enumerate(values):
            if value:
                parts.append(f'<rect x="{LABELS}" y="{y + 2 + thin * i:.1f}" width="{_x(value, high) - LABELS:.1f}" height="{thin - 1:.1f}" fill="{COLOURS[i]}">'
                             f"<title>{html.escape(f'{label}, {names[i]}: {value:.2f}')}</title></rect>")  # fmt: skip
    return "\n".join(parts + ["</svg>"]) + "\n"
