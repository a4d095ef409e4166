"""Draws how samples are divided among clients, as an SVG picture for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from fedkin.data.division import Division, division_of, irrelevant_sentence, sizes_sentence
from fedkin.data.federation import Federation
from fedkin.errors import require

SHADES = ("#e3eef9", "#cfe1f2", "#b5d4e9", "#93c3df", "#6daed5", "#4b97c9", "#2f7ebc", "#1864aa", "#0a4a90", "#08306b")
INK, MUTED, RULE, EMPTY, TRAIN, TEST = "#1b2733", "#5d6b7a", "#d5dce3", "#f6f8fa", "#e08a3c", "#f3d3b3"
FOREIGN = "#b3261e"  # the colour of irrelevant clients
TOP, GAP, SIZES, MARGIN = 94, 28, 190, 24  # pixels above, between, of the bars, at the edges
LONGEST = 22  # characters of a name that the picture shows
LETTER = 6.3  # pixels that a letter of a name takes
SCALE, LEGEND = 16, 400  # pixels of a shade in its legend, and of that legend


def draw(federation: Federation, path: str | Path) -> Path:
    """Write the picture as an .svg or .html file.

    Each client is a row and each class a column or, to regress, each range of values. The shade of a cell is its share
    of the client's samples, and bars show the clients' sizes.
    """
    target = Path(path)
    require(target.suffix.lower() in (".svg", ".html"), f"A picture is an .svg or an .html file, not {target.name}.")
    drawn = svg(federation)
    if target.suffix.lower() == ".html":
        style = "body{margin:2rem;background:#fff}svg{max-width:100%;height:auto}"
        head = f'<meta charset="utf-8"><title>{escape(federation.name)}: clients and classes</title>'
        drawn = f'<!doctype html><html lang="en">{head}<style>{style}</style>{drawn}</html>'
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(drawn, encoding="utf-8")
    return target


@dataclass(frozen=True)
class Layout:
    """The positions of the picture's elements in pixels. Many clients get thin rows, few clients tall ones."""

    clients: int
    classes: int
    left: float
    longest: int = 1  # letters of the longest name of a class

    @property
    def row(self) -> float:  # height
        return float(np.clip(900 / self.clients, 1.5, 24))

    @property
    def column(self) -> float:  # width
        return float(np.clip(560 / self.classes, 5, max(44, min(LETTER * self.longest + 8, 120))))

    @property
    def turned(self) -> bool:  # whether names of classes are too long to stand side by side
        return self.longest > 2 and LETTER * self.longest + 4 > self.column

    @property
    def named(self) -> float:  # height of the names of the classes
        return 16 + (0.7 * LETTER * self.longest if self.turned else 0)

    @property
    def thick(self) -> float:  # height of a row's coloured part, with a thin line between rows if there is room
        return self.row - (1 if self.row >= 8 else 0)

    @property
    def right(self) -> float:  # edge of the grid
        return self.left + self.column * self.classes

    @property
    def bottom(self) -> float:  # edge of the grid
        return TOP + self.row * self.clients

    @property
    def bars(self) -> float:  # left end of the bars
        return self.right + GAP

    @property
    def size(self) -> tuple[float, float]:  # width and height of the picture
        return max(self.bars + SIZES, self.left + 560) + MARGIN, self.key_of_bars + 34

    @property
    def key(self) -> float:  # top of the legend of the shades
        return self.bottom + self.named + 32

    @property
    def key_of_bars(self) -> float:  # top of the legend of the bars: on a line of its own if the bars begin too early
        return self.key + (0 if self.bars >= self.left + LEGEND else 40)


def svg(federation: Federation) -> str:
    """The picture as the text of an SVG file."""
    division = division_of(federation)
    names, classes = ([_short(name) for name in listed] for listed in (federation.names, division.columns))
    left = MARGIN + 24 + 6.8 * max(len(name) for name in names)
    layout = Layout(federation.n, len(classes), left, max(len(name) for name in classes))
    width, height = layout.size
    share = division.counts / np.maximum(division.counts.sum(1, keepdims=True), 1)
    full = next(step for step in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0) if share.max() <= step)
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" role="img">',
        f"<title>{escape(federation.name)}: training samples by client and {escape(division.axis)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        *_heading(federation, division, layout),
        *_cells(share / full, layout),
        *_axes(names, classes, division.axis, layout),
        *_marks(federation, layout),
        *_bars(division.counts.sum(1), federation.test.sizes.numpy(), layout),
        *_legend(full, layout),
        *_hints(federation, division, layout),
        "</svg>",
    ]
    return "\n".join(pieces)


def _short(name: str) -> str:
    """A name that is too long is cut at its beginning, because the names of one dataset often begin alike."""
    return name if len(name) <= LONGEST else "…" + name[1 - LONGEST :]


def _text(
    x: float, y: float, words: str, size: int = 11, anchor: str = "start", ink: str = MUTED, more: str = ""
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{ink}"'
    return f"<text {place}{more}>{escape(words)}</text>"


def _box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle as a piece of a path. One path for all rectangles of a colour makes a small file."""
    return f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}z"


def _heading(federation: Federation, division: Division, at: Layout) -> list[str]:
    size, kinds = division.counts.sum(1), (division.counts > 0).sum(1)
    spread = f"{kinds.min()} to {kinds.max()}" if kinds.min() < kinds.max() else f"{kinds.min()}"
    classify = federation.task == "classify"
    what = "who has which classes" if classify else f"who has which values of {division.axis}"
    return [
        _text(at.left, 30, f"{federation.name}: {what}", 18, ink=INK, more=' font-weight="600"'),
        _text(
            at.left,
            51,
            f"{federation.n:,} clients, {size.sum():,} training samples; per client min {size.min():,}, "
            f"median {np.median(size):,.0f}, max {size.max():,}"
            + (f"; classes per client {spread}" if classify else ""),
            12,
        ),
        _text(at.left, 68, sizes_sentence(federation), 12),
    ]


def _marks(federation: Federation, at: Layout) -> list[str]:
    """A bar beside the row of every irrelevant client, since a large federation has no room for all names."""
    sentence = irrelevant_sentence(federation)
    if sentence is None or federation.irrelevant is None:
        return []
    rows = federation.irrelevant.nonzero().flatten().tolist()
    boxes = "".join(_box(at.left - 6, TOP + row * at.row, 4, at.thick) for row in rows)
    key = _box(at.left, 77, 4, 10)
    return [f'<path fill="{FOREIGN}" d="{boxes}{key}"/>', _text(at.left + 9, 86, sentence, 12, ink=FOREIGN)]


def _cells(strength: np.ndarray, at: Layout) -> list[str]:
    shade = np.minimum(np.ceil(strength * len(SHADES)).astype(int), len(SHADES)) - 1  # -1: no sample of that class
    wide = at.column - (1 if at.column >= 8 else 0)
    pieces = [f'<path fill="{EMPTY}" d="{_box(at.left, TOP, at.right - at.left, at.bottom - TOP)}"/>']
    for number, colour in enumerate(SHADES):
        where = np.argwhere(shade == number)
        boxes = "".join(_box(at.left + c * at.column, TOP + r * at.row, wide, at.thick) for r, c in where)
        pieces.append(f'<path fill="{colour}" d="{boxes}"/>')
    return pieces


def _every(room: float, step: float) -> int:
    """A round number k such that labels at every k-th line of height `step` are at least `room` pixels apart."""
    return next(k for k in (1, 2, 5, 10, 20, 50, 100) if k * step >= room)


def _axes(names: list[str], classes: list[str], axis: str, at: Layout) -> list[str]:
    middle = (TOP + at.bottom) / 2
    clients = range(0, at.clients, _every(13, at.row))
    shown = range(0, at.classes, _every(13 if at.turned else 22, at.column))
    return [
        *(_text(at.left - 8, TOP + (i + 0.5) * at.row + 4, names[i], anchor="end") for i in clients),
        *(_class_name(at.left + (i + 0.5) * at.column, classes[i], at) for i in shown),
        _text((at.left + at.right) / 2, at.bottom + at.named + 18, axis, 12, "middle", INK),
        _text(18, middle, "client", 12, "middle", INK, f' transform="rotate(-90 18 {middle:.1f})"'),
    ]


def _class_name(x: float, name: str, at: Layout) -> str:
    """The name of a class under its column."""
    y = at.bottom + 16
    if not at.turned:
        return _text(x, y, name, anchor="middle")
    return _text(x + 4, y - 2, name, anchor="end", more=f' transform="rotate(-45 {x + 4:.1f} {y - 2:.1f})"')


def _bars(size: np.ndarray, held: np.ndarray, at: Layout) -> list[str]:
    """A bar for each client: its training samples and, after them, its test samples."""
    most = int((size + held).max())
    scale = SIZES / max(most, 1)
    pieces = [f'<path stroke="{RULE}" d="M{at.bars:.1f} {TOP}V{at.bottom:.1f}"/>']
    for i, (what, colour, start, length) in enumerate(
        (("training", TRAIN, 0 * size, size), ("test", TEST, size, held))
    ):
        boxes = "".join(
            _box(at.bars + a * scale, TOP + row * at.row, b * scale, at.thick)
            for row, (a, b) in enumerate(zip(start, length, strict=True))
        )
        x = at.bars + i * 84
        pieces.append(f'<path fill="{colour}" d="{boxes}{_box(x, at.key_of_bars, 12, 12)}"/>')
        pieces.append(_text(x + 17, at.key_of_bars + 10, what))
    pieces.append(_text(at.bars, at.bottom + 16, "0", anchor="middle"))
    pieces.append(_text(at.bars + SIZES, at.bottom + 16, f"{most:,}", anchor="end"))
    pieces.append(_text(at.bars + SIZES / 2, at.bottom + at.named + 18, "samples", 12, "middle", INK))
    return pieces


def _legend(full: float, at: Layout) -> list[str]:
    """The legend of the shades. The darkest one is the share `full`, so that small shares can be distinguished too."""
    y, step = at.key, SCALE
    pieces = [f'<path fill="{c}" d="{_box(at.left + i * step, y, step, 12)}"/>' for i, c in enumerate(SHADES)]
    for part in (0, 0.5, 1):
        pieces.append(_text(at.left + part * step * len(SHADES), y + 26, f"{part * full:.3g}", 10, "middle"))
    return [*pieces, _text(at.left + step * len(SHADES) + 10, y + 10, "share of the client's training samples")]


def _hints(federation: Federation, division: Division, at: Layout) -> list[str]:
    """The texts that appear when the pointer is over a client's row."""
    pieces = []
    for i, (name, numbers) in enumerate(zip(federation.names, division.counts, strict=True)):
        most = np.argsort(-numbers, kind="stable")[:5]
        listed = ", ".join(f"{division.spoken(place)}: {numbers[place]:,}" for place in most if numbers[place])
        foreign = federation.irrelevant is not None and bool(federation.irrelevant[i])
        kind = "irrelevant client" if foreign else "client"
        hint = escape(f"{kind} {name}: {numbers.sum():,} training samples ({listed})")
        box = _box(0, TOP + i * at.row, at.size[0], at.row)
        pieces.append(f'<path fill="#fff" fill-opacity="0" d="{box}"><title>{hint}</title></path>')
    return pieces
