# SPDX-License-Identifier: Apache-2.0
"""Plots side by side as one SVG file, with one legend beside them, readable on light and on dark pages."""

import html

import plots

PANEL = plots.Frame(width=340, height=230, left=80, right=12, top=30, bottom=40)
HEAD, LEGEND = 34, 24

STYLE = """text { font: 11px system-ui, sans-serif; fill: #333; } .title { font-size: 13px; font-weight: 600; } .axis { font-size: 11px; }
path { fill: none; stroke-width: 1.6; } .grid { stroke: #ddd; } .rule { stroke: #555; stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) { text { fill: #ddd; } .grid { stroke: #444; } .rule { stroke: #bbb; } }"""


def _legend(names, dashed, x, y):
    parts = []
    for i, name in enumerate(names):
        dash = ' stroke-dasharray="5 4"' if name in dashed else ""
        at = y + LEGEND * i
        parts.append(f'<line x1="{x}" x2="{x + 22}" y1="{at}" y2="{at}" stroke="{plots.colour(i)}" stroke-width="3"{dash}/>'
                     f'<text x="{x + 30}" y="{at + 4}">{html.escape(name)}</text>')  # fmt: skip
    return parts


def draw(title, panels, columns, names, dashed=()):
    """`panels`: (title, parts of plots.py in a PANEL), row by row; `names`: what the colours stand for, in their order."""
    rows = -(-len(panels) // columns)
    room = 46 + 7 * max(map(len, names))
    width, height = PANEL.width * columns + room, HEAD + PANEL.height * rows
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(title)}">',
             f"<style>{STYLE}</style>", f'<text class="title" x="12" y="20">{html.escape(title)}</text>']  # fmt: skip
    for i, (name, inner) in enumerate(panels):
        x, y = PANEL.width * (i % columns), HEAD + PANEL.height * (i // columns)
        parts.append(f'<g transform="translate({x} {y})"><text class="title" x="{PANEL.left}" y="18">{html.escape(name)}</text>{"".join(inner)}</g>')
    parts += _legend(names, dashed, PANEL.width * columns + 12, HEAD + PANEL.top + 8)
    return "\n".join(parts + ["</svg>"]) + "\n"
