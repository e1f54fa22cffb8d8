# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG, with nothing but the standard library. A plot is text; a series is a list of points and a name."""

import html
import math

# Okabe and Ito's colours, which most people can tell apart.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#b8a800"]


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


class Frame:
    """The room of one plot in pixels, and what is left of it for curves."""

    def __init__(self, width=720, height=340, left=74, right=30, top=14, bottom=46):
        self.width, self.height, self.left, self.top = width, height, left, top
        self.end, self.floor = width - right, height - bottom

    def x(self, axis, value):
        return self.left + axis.place(value) * (self.end - self.left)

    def y(self, axis, value):
        return self.floor - axis.place(value) * (self.floor - self.top)


PAGE = Frame()


def _grid(frame, x_axis, y_axis, x_name, y_name):
    parts = []
    for value, text in y_axis.ticks():
        y = frame.y(y_axis, value)
        parts.append(f'<line class="grid" x1="{frame.left}" x2="{frame.end}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{frame.left - 6}" y="{y + 4:.1f}" text-anchor="end">{html.escape(text)}</text>')
    last = -100.0
    for value, text in x_axis.ticks() if x_axis else []:
        x = frame.x(x_axis, value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.top}" y2="{frame.floor}"/>')
        if x - last > 46:
            parts.append(f'<text x="{x:.1f}" y="{frame.floor + 16}" text-anchor="middle">{html.escape(text)}</text>')
            last = x
    parts.append(f'<text class="axis" x="{(frame.left + frame.end) / 2}" y="{frame.height - 8}" text-anchor="middle">{html.escape(x_name)}</text>')
    parts.append(f'<text class="axis" transform="translate(14 {(frame.top + frame.floor) / 2}) rotate(-90)" text-anchor="middle">'
                 f"{html.escape(y_name)}</text>")
    return parts


def _svg(parts):
    return f'<svg viewBox="0 0 {PAGE.width} {PAGE.height}" role="img">' + "".join(parts) + "</svg>"


def legend(names):
    return '<p class="legend">' + "".join(
        f'<span><i style="background:{colour(i)}"></i>{html.escape(name)}</span>' for i, name in enumerate(names)) + "</p>"


def _curve(frame, x_axis, y_axis, points, step):
    """The words of a path; a point without a y parts the line."""
    path, pen = [], "M"
    for x, y, _ in points:
        if y is None:
            pen = "M"
            continue
        if step and pen == "L":
            path.append(f"H{frame.x(x_axis, x):.1f}")
        path.append(f"{pen}{frame.x(x_axis, x):.1f} {frame.y(y_axis, y):.1f}")
        pen = "L"
    return "".join(path)


def line_parts(frame, series, x_axis, y_axis, x_name, y_name, marks=False, step=False, rules=(), dashed=()):
    """`series`: (name, [(x, y, what)]), `rules`: (y, name) of horizontal lines, `dashed`: names. Points without a y part a line."""
    parts = _grid(frame, x_axis, y_axis, x_name, y_name)
    for value, name in rules:
        y = frame.y(y_axis, value)
        parts.append(f'<line class="rule" x1="{frame.left}" x2="{frame.end}" y1="{y:.1f}" y2="{y:.1f}"/>'
                     f'<text x="{frame.end - 4}" y="{y - 4:.1f}" text-anchor="end">{html.escape(name)}</text>')
    for i, (name, points) in enumerate(series):
        dash = ' stroke-dasharray="5 4"' if name in dashed else ""
        parts.append(f'<path d="{_curve(frame, x_axis, y_axis, points, step)}" stroke="{colour(i)}"{dash}><title>{html.escape(name)}</title></path>')
        for x, y, what in points if marks else []:
            if y is not None:
                parts.append(f'<circle cx="{frame.x(x_axis, x):.1f}" cy="{frame.y(y_axis, y):.1f}" r="3.5" fill="{colour(i)}">'
                             f"<title>{html.escape(f'{name}: {what}')}</title></circle>")
    return parts


def lines(series, *arguments, **options):
    """`line_parts` as a plot of a page, with its legend below."""
    return _svg(line_parts(PAGE, series, *arguments, **options)) + legend([name for name, _ in series])


def column_parts(frame, columns, y_axis, y_name):
    """`columns`: (name, value, what), each of the colour that a series of its place has."""
    parts = _grid(frame, None, y_axis, "", y_name)
    room = (frame.end - frame.left) / len(columns)
    for i, (name, value, what) in enumerate(columns):
        y = frame.y(y_axis, value)
        parts.append(f'<rect x="{frame.left + room * (i + 0.15):.1f}" y="{y:.1f}" width="{room * 0.7:.1f}" height="{frame.floor - y:.2f}" '
                     f'fill="{colour(i)}"><title>{html.escape(f"{name}: {what}")}</title></rect>')
    return parts


def stacks(names, columns, y_axis, y_name, text):
    """`columns`: (label, [value of each name])."""
    parts = _grid(PAGE, None, y_axis, "", y_name)
    room = (PAGE.end - PAGE.left) / max(len(columns), 1)
    width = min(room * 0.7, 90)
    for c, (label, values) in enumerate(columns):
        x, below = PAGE.left + room * (c + 0.5), 0.0
        for i, value in enumerate(values):
            top, bottom = PAGE.y(y_axis, below + value), PAGE.y(y_axis, below)
            parts.append(f'<rect x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.2f}" fill="{colour(i)}">'
                         f"<title>{html.escape(f'{label}: {names[i]} {text(value)}')}</title></rect>")
            below += value
        parts.append(f'<text x="{x:.1f}" y="{PAGE.floor + 16}" text-anchor="middle">{html.escape(label)}</text>')
    return _svg(parts) + legend(names)
