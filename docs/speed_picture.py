"""Draws how many times as fast as a bare loop each row is, on one core and on two, as an SVG of its own."""

from __future__ import annotations

from html import escape
from math import log10
from typing import Any

LEFT, WIDTH, TOP, STEP, BAR, ROOM = 340, 920, 64, 44, 14, 42  # pixels; ROOM is that of a number
SIDES = {"one": ("one core", "#4477aa"), "all": ("two cores", "#aa7744")}
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)


def picture(rows: dict[str, dict[str, Any]]) -> str:
    """Return the picture: a pair of bars for each row, and a mark for what is wanted."""
    ratios = [row[f"{side}_{kind}"] for row in rows.values() for side in SIDES for kind in ("ratio", "wanted")]
    low = max([tick for tick in TICKS if tick <= min(ratios, default=1)], default=TICKS[0])
    high = min([tick for tick in TICKS if tick >= max(ratios, default=10)], default=TICKS[-1])

    def at(value: float) -> float:
        share = (log10(max(value, low)) - log10(low)) / (log10(high) - log10(low))
        return LEFT + share * (WIDTH - LEFT - 70)

    height = TOP + STEP * len(rows) + 20
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="13" role="img" aria-label="How many times as fast as a bare loop">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        '<text x="10" y="20" font-size="15">How many times as fast as a bare PyTorch loop</text>',
        *legend(),
    ]
    for tick in (tick for tick in TICKS if low <= tick <= high):
        dark = "#888" if tick == 1 else "#ddd"
        found.append(line(at(tick), TOP - 8, height - 16, dark, 1))
        found.append(f'<text x="{at(tick):.1f}" y="{TOP - 14}" text-anchor="middle" fill="#555">{tick:g}</text>')
    for i, (name, row) in enumerate(rows.items()):
        y = TOP + STEP * i
        found.append(f'<text x="{LEFT - 10}" y="{y + BAR + 4}" text-anchor="end">{escape(name)}</text>')
        for j, (side, (_, colour)) in enumerate(SIDES.items()):
            found += bar(at, y + j * (BAR + 2), row[f"{side}_ratio"], row[f"{side}_wanted"], colour)
    return "\n".join([*found, "</svg>"]) + "\n"


def legend() -> list[str]:
    """Return the meaning of the colours and of the mark."""
    found, x = [], LEFT + 150
    for word, colour in SIDES.values():
        found.append(f'<rect x="{x}" y="9" width="14" height="14" fill="{colour}"/>')
        found.append(f'<text x="{x + 20}" y="20">{word}</text>')
        x += 110
    return [*found, line(x + 5, 8, 24, "black", 3), f'<text x="{x + 16}" y="20">wanted</text>']


def bar(at: Any, y: float, reached: float, wanted: float, colour: str) -> list[str]:
    """Return one bar from 1 to the ratio, the number, and the mark."""
    start, end = sorted((at(1), at(reached)))
    end = max(end, start + 1)
    right = (at(wanted) if -4 < at(wanted) - end < ROOM else end) + 6  # of the mark, if there is no room before it
    return [
        f'<rect x="{start:.1f}" y="{y}" width="{end - start:.1f}" height="{BAR}" fill="{colour}"/>',
        line(at(wanted), y - 1, y + BAR + 1, "black", 3),
        f'<text x="{right:.1f}" y="{y + BAR - 3}" font-size="12">{reached:.1f}x</text>',
    ]


def line(x: float, top: float, bottom: float, colour: str, width: int) -> str:
    """Return an upright line."""
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="{colour}" stroke-width="{width}"/>'
