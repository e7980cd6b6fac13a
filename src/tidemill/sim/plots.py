"""Small plots as SVG: intervals, lines and a map. Every text is escaped; nothing is fetched."""

from collections.abc import Sequence
from html import escape
from math import floor, log10

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH = 860
LEFT = 150
COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8e5aa5")


def intervals(rows: Sequence[tuple[str, float, float, float]]) -> str:
    """A row each: a name, a value and the interval around it, on a scale that shows small and large ones."""
    height, step = 26 * len(rows) + 40, 26
    reach = max([1.0, *(abs(bound) for row in rows for bound in row[1:])])

    def at(value: float) -> float:
        sign = 1 if value >= 0 else -1
        return LEFT + 20 + (WIDTH - LEFT - 40) * (0.75 + sign * 0.75 * log10(1 + 99 * abs(value) / reach) / 2)

    def inside(value: float) -> float:
        return min(WIDTH - 10, at(value))

    parts = [_line(at(0), 10, at(0), height - 25, "#444")]
    ticks = (-reach, -reach / 10, -reach / 100, 0)
    parts += [_text(at(tick), height - 8, f"{tick:+.0%}" if tick else "honest", "middle") for tick in ticks]
    for number, (name, value, low, high) in enumerate(rows):
        y = 22 + number * step
        colour = COLOURS[0] if high < 0 else COLOURS[1]
        parts += [_line(LEFT + 10, y, WIDTH, y, "#eee"), _text(LEFT, y + 4, name, "end")]
        parts += [_line(inside(low), y, inside(high), y, colour, 5)]
        parts.append(f'<circle cx="{inside(value):.1f}" cy="{y}" r="5" fill="{colour}"/>')
    return _svg(height, parts)


def lines(series: Sequence[tuple[str, Sequence[float]]], unit: str, marks: Sequence[str] = ()) -> str:
    """Lines, all on one scale from zero; `marks` stand below them, evenly from the first point to the last."""
    height, top_y = 260, 30
    top = _round_up(max([1e-9, *(value for _, values in series for value in values)]))
    bottom = height - 30
    wide = WIDTH - LEFT - 30
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - share * (bottom - top_y)
        parts += [_line(LEFT, y, LEFT + wide, y, "#ddd"), _text(LEFT - 8, y + 4, f"{share * top:.3g}{unit}", "end")]
    for at, mark in enumerate(marks):
        parts.append(_text(LEFT + wide * at / max(1, len(marks) - 1), height - 8, mark, "middle"))
    name_x = LEFT + 10.0
    for number, (name, values) in enumerate(series):
        points = " ".join(
            f"{LEFT + wide * at / max(1, len(values) - 1):.1f},{bottom - value / top * (bottom - top_y):.1f}"
            for at, value in enumerate(values)
        )
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(name_x, 16, name, "start", colour))
        name_x += 30 + 6.5 * len(name)
    return _svg(height, parts)


def heat(columns: Floats, rows: Floats, values: Floats, curve: Floats) -> str:
    """A map of rates by multiples of a stake, both on logarithmic scales: red where a value is above zero; and a curve
    of rates."""
    height, bottom = 420, 370
    wide, tall = (WIDTH - LEFT - 20) / len(columns), (bottom - 10) / len(rows)
    parts = [
        f'<rect x="{LEFT + column * wide:.1f}" y="{bottom - (row + 1) * tall:.1f}" width="{wide + 0.4:.1f}" '
        f'height="{tall + 0.4:.1f}" fill="{_shade(float(values[row, column]))}" shape-rendering="crispEdges"/>'
        for row in range(len(rows))
        for column in range(len(columns))
    ]

    def y_of(rate: float) -> float:
        share = log10(rate / rows[0]) / log10(rows[-1] / rows[0])
        return bottom - min(1.0, max(0.0, share)) * (bottom - 10)

    points = " ".join(f"{LEFT + (at + 0.5) * wide:.1f},{y_of(float(rate)):.1f}" for at, rate in enumerate(curve))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#000" stroke-width="2.5"/>')
    parts += [_text(LEFT - 8, y_of(rate) + 4, f"{rate:.1%}", "end") for rate in (0.001, 0.01, 0.02, 0.1, 1)]
    parts.append(_text(LEFT - 60, y_of(0.03) + 4, "audit rate", "end"))
    for stake in (1, 10, 100, 1000):
        x = LEFT + log10(stake / columns[0]) / log10(columns[-1] / columns[0]) * wide * len(columns)
        parts.append(_text(x, bottom + 18, f"{stake}×", "middle"))
    parts.append(_text((LEFT + WIDTH) / 2, bottom + 40, "stake ÷ reward", "middle"))
    return _svg(height, parts)


def _round_up(value: float) -> float:
    """The next number that divides into four round parts."""
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if step * unit >= value * 0.999)


def _shade(value: float) -> str:
    strength = min(1.0, abs(value)) ** 0.5
    light = int(96 - 46 * strength)
    return f"hsl({8 if value > 0 else 205},70%,{light}%)"


def _svg(height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(parts)}</svg>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: float = 1) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
