# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG, with nothing but the standard library. A plot is text; a series is a list of points and a name."""

import html
import math

# Okabe and Ito's colours, which most people can tell apart.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#b8a800"]
WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 74, 30, 14, 46


def colour(i):
    return COLOURS[i % len(COLOURS)]


def text_of_ns(ns):
    """1.2 us"""
    for limit, unit in ((1e3, "ns"), (1e6, "us"), (1e9, "ms")):
        if ns < limit:
            return f"{ns / (limit / 1e3):.4g} {unit}"
    return f"{ns / 1e9:.4g} s"


def text_of_rate(rate):
    for limit, unit in ((1e3, ""), (1e6, " k"), (1e9, " M")):
        if rate < limit:
            return f"{rate / (limit / 1e3):.4g}{unit}/s"
    return f"{rate:.3g}/s"


class Linear:
    """An axis from 0, or from `low`, to a little above the largest value."""

    def __init__(self, values, low=0, text=lambda value: f"{value:g}"):
        high = max(values, default=1) or 1
        self.step = 10 ** math.floor(math.log10((high - low) / 4 or 1))
        for factor in (1, 2, 5, 10):
            if (high - low) / (self.step * factor) <= 6:
                self.step *= factor
                break
        self.low, self.high, self.text = low, low + self.step * math.ceil((high - low) / self.step * 1.0001), text

    def place(self, value):
        return (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def ticks(self):
        n = round((self.high - self.low) / self.step)
        return [(self.low + i * self.step, self.text(self.low + i * self.step)) for i in range(n + 1)]


class Logarithmic:
    """Whole decades around the values; between them ticks at 2 and 5 where there is room."""

    def __init__(self, values, text):
        values = [value for value in values if value > 0] or [1]
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
        self.high = max(self.high, self.low + 1)
        self.text = text

    def place(self, value):
        at = math.log10(value) if value > 0 else self.low
        return (min(max(at, self.low), self.high) - self.low) / (self.high - self.low)

    def ticks(self):
        factors = (1, 2, 5) if self.high - self.low <= 3 else (1,)
        values = [10.0**decade * factor for decade in range(self.low, self.high) for factor in factors]
        return [(value, self.text(value)) for value in values + [10.0**self.high]]


class Tail:
    """Shares of what is not above, so that each further nine has the same room: 0, 0.9, 0.99 ..."""

    def __init__(self, nines):
        self.nines = max(1, nines)

    def place(self, share):
        return min(-math.log10(max(1 - share, 10.0**-self.nines)) / self.nines, 1)

    def ticks(self):
        return [(0.5, "50 %")] + [(1 - 10.0**-i, f"{100 * (1 - 10.0 ** -i):.10g} %") for i in range(1, self.nines + 1)]


def _x(axis, value):
    return LEFT + axis.place(value) * (WIDTH - LEFT - RIGHT)


def _y(axis, value):
    return HEIGHT - BOTTOM - axis.place(value) * (HEIGHT - TOP - BOTTOM)


def _frame(x_axis, y_axis, x_name, y_name):
    parts = []
    for value, text in y_axis.ticks():
        y = _y(y_axis, value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{html.escape(text)}</text>')
    last = -100.0
    for value, text in x_axis.ticks() if x_axis else []:
        x = _x(x_axis, value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        if x - last > 46:
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{html.escape(text)}</text>')
            last = x
    parts.append(f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(x_name)}</text>')
    parts.append(f'<text class="axis" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
                 f"{html.escape(y_name)}</text>")
    return parts


def _svg(parts):
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">' + "".join(parts) + "</svg>"


def legend(names):
    return '<p class="legend">' + "".join(
        f'<span><i style="background:{colour(i)}"></i>{html.escape(name)}</span>' for i, name in enumerate(names)) + "</p>"


def lines(series, x_axis, y_axis, x_name, y_name, marks=False, step=False, rules=()):
    """`series`: (name, [(x, y, what)]), `rules`: (y, name) of horizontal lines. Points without a y part a line."""
    parts = _frame(x_axis, y_axis, x_name, y_name)
    for value, name in rules:
        y = _y(y_axis, value)
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                     f'<text x="{WIDTH - RIGHT - 4}" y="{y - 4:.1f}" text-anchor="end">{html.escape(name)}</text>')
    for i, (name, points) in enumerate(series):
        path, pen = [], "M"
        for x, y, _ in points:
            if y is None:
                pen = "M"
                continue
            if step and pen == "L":
                path.append(f"H{_x(x_axis, x):.1f}")
            path.append(f"{pen}{_x(x_axis, x):.1f} {_y(y_axis, y):.1f}")
            pen = "L"
        parts.append(f'<path d="{"".join(path)}" stroke="{colour(i)}"><title>{html.escape(name)}</title></path>')
        for x, y, what in points if marks else []:
            if y is not None:
                parts.append(f'<circle cx="{_x(x_axis, x):.1f}" cy="{_y(y_axis, y):.1f}" r="3.5" fill="{colour(i)}">'
                             f"<title>{html.escape(f'{name}: {what}')}</title></circle>")
    return _svg(parts) + legend([name for name, _ in series])


def stacks(names, columns, y_axis, y_name, text):
    """`columns`: (label, [value of each name])."""
    parts = _frame(None, y_axis, "", y_name)
    room = (WIDTH - LEFT - RIGHT) / max(len(columns), 1)
    width = min(room * 0.7, 90)
    for c, (label, values) in enumerate(columns):
        x, below = LEFT + room * (c + 0.5), 0.0
        for i, value in enumerate(values):
            top, bottom = _y(y_axis, below + value), _y(y_axis, below)
            parts.append(f'<rect x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.2f}" fill="{colour(i)}">'
                         f"<title>{html.escape(f'{label}: {names[i]} {text(value)}')}</title></rect>")
            below += value
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{html.escape(label)}</text>')
    return _svg(parts) + legend(names)
