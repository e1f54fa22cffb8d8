# SPDX-License-Identifier: Apache-2.0
"""Bars as one SVG file that is readable on light and on dark pages."""

import html

import plots

ROOM, ROW, TOP = 520, 22, 64
LETTER = 6.7  # of a label, at most in the mean

STYLE = """text { font: 12px system-ui, sans-serif; fill: #333; } .grid { stroke: #ddd; } .rule { stroke: #555; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) { text { fill: #ddd; } .grid { stroke: #444; } .rule { stroke: #bbb; } }"""


def _scale(axis, left, rule, bottom):
    parts, last = [], -100.0
    for value, text in axis.ticks():
        x = left + ROOM * axis.place(value)
        kind = "rule" if value == rule else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
        if x - last > 44:
            parts.append(f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle">{html.escape(text)}</text>')
            last = x
    return parts


def groups(names, rows, title, axis, rule=None):
    """`rows`: (label, [value or None of each name]). A line is dashed where the axis has `rule`."""
    thin, left = (ROW - 4) / len(names), round(24 + LETTER * max(len(label) for label, _ in rows))
    bottom = TOP + ROW * len(rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + ROOM + 40} {bottom + 10}" role="img" aria-label="{html.escape(title)}">',
             f"<style>{STYLE}</style>", f'<text x="12" y="16" font-weight="600">{html.escape(title)}</text>']  # fmt: skip
    for i, name in enumerate(names):
        parts.append(f'<rect x="{left + 190 * i}" y="26" width="11" height="11" fill="{plots.colour(i)}"/>'
                     f'<text x="{left + 190 * i + 16}" y="36">{html.escape(name)}</text>')  # fmt: skip
    parts += _scale(axis, left, rule, bottom)
    for r, (label, values) in enumerate(rows):
        y = TOP + ROW * r
        parts.append(f'<text x="{left - 8}" y="{y + ROW / 2 + 4:.0f}" text-anchor="end">{html.escape(label)}</text>')
        for i, value in enumerate(values):
            if value:
                parts.append(f'<rect x="{left}" y="{y + 2 + thin * i:.1f}" width="{ROOM * axis.place(value):.1f}" height="{thin - 1:.1f}" '
                             f'fill="{plots.colour(i)}"><title>{html.escape(f"{label}, {names[i]}: {axis.text(value)}")}</title></rect>')  # fmt: skip
    return "\n".join(parts + ["</svg>"]) + "\n"
