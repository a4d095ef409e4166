"""What a partition looks like: numbers, lines to print, and a picture that needs nothing but a browser."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from fedkin.data.federation import Federation
from fedkin.errors import require

SHADES = ("#e3eef9", "#cfe1f2", "#b5d4e9", "#93c3df", "#6daed5", "#4b97c9", "#2f7ebc", "#1864aa", "#0a4a90", "#08306b")
INK, MUTED, RULE, BAR, HELD = "#1b2733", "#5d6b7a", "#d5dce3", "#e08a3c", "#f3d3b3"
LEFT, TOP, GAP, SIZES, RIGHT, BOTTOM = 96, 92, 28, 190, 24, 96


def counts(federation: Federation) -> np.ndarray:  # (n, classes)
    """Training samples of each class that each client has."""
    classes = federation.classes
    client = np.repeat(np.arange(federation.n), federation.train.sizes.numpy())
    label = federation.y[federation.train.rows].numpy()
    return np.bincount(client * classes + label, minlength=federation.n * classes).reshape(federation.n, classes)


def table(federation: Federation) -> list[str]:
    """The sizes in one line, who was left out, then a line a client: its name, samples and those of each class."""
    of_class = counts(federation)
    size, held = of_class.sum(1), federation.test.sizes.numpy()
    lines = [
        f"{federation.name}: {federation.n:,} clients, {federation.classes} classes, training samples per client min "
        f"{size.min():,}, median {np.median(size):,.0f}, max {size.max():,}, sum {size.sum():,}; test {held.sum():,}"
    ]
    if federation.left_out:
        shown = ", ".join(federation.left_out[:5]) + (", ..." if len(federation.left_out) > 5 else "")
        lines.append(f"left out, without samples: {len(federation.left_out)} ({shown})")
    name = max(6, *(len(client) for client in federation.clients))
    wide = max(len(f"{of_class.max():,}"), len(str(federation.classes - 1)))
    head = " ".join(f"{label:>{wide}}" for label in range(federation.classes))
    lines.append(f"{'client':<{name}}  {'train':>8} {'test':>8}  {head}")
    for client, total, test, row in zip(federation.clients, size, held, of_class, strict=True):
        cells = " ".join(f"{count:>{wide},}" if count else " " * (wide - 1) + "." for count in row)
        lines.append(f"{client:<{name}}  {total:>8,} {test:>8,}  {cells}".rstrip())
    return lines


def draw(federation: Federation, path: str | Path) -> Path:
    """Write the picture: a row a client, a column a class, a shade for its share of the samples, bars for sizes."""
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


def svg(federation: Federation) -> str:
    of_class = counts(federation)
    clients, classes = of_class.shape
    row = float(np.clip(900 / clients, 1.5, 24))
    column = float(np.clip(560 / classes, 5, 44))
    width, height = column * classes, row * clients
    total = (LEFT + width + GAP + SIZES + RIGHT, TOP + height + BOTTOM)
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]:.0f} {total[1]:.0f}" width="{total[0]:.0f}" '
        f'height="{total[1]:.0f}" font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" role="img">',
        f"<title>{escape(federation.name)}: training samples by client and class</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        *_heading(federation, of_class),
        *_cells(of_class, row, column),
        *_axes(federation, row, column),
        *_bars(federation, of_class, row, LEFT + width + GAP),
        *_legend(LEFT, TOP + height + 58),
        *_hints(federation, of_class, row, total[0]),
        "</svg>",
    ]
    return "\n".join(pieces)


def _text(
    x: float, y: float, words: str, size: int = 11, anchor: str = "start", fill: str = MUTED, more: str = ""
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"'
    return f"<text {place}{more}>{escape(words)}</text>"


def _heading(federation: Federation, of_class: np.ndarray) -> list[str]:
    size = of_class.sum(1)
    kinds = (of_class > 0).sum(1)
    return [
        _text(LEFT, 30, f"{federation.name}: who has which classes", 18, fill=INK, more=' font-weight="600"'),
        _text(
            LEFT,
            50,
            f"{federation.n:,} clients, {size.sum():,} training samples; per client min {size.min():,}, "
            f"median {np.median(size):,.0f}, max {size.max():,}; classes per client {kinds.min()} to {kinds.max()}",
            12,
        ),
    ]


def _cells(of_class: np.ndarray, row: float, column: float) -> list[str]:
    """One path a shade instead of one rectangle a cell: 500 clients and 100 classes stay a small file."""
    share = of_class / np.maximum(of_class.sum(1, keepdims=True), 1)
    shade = np.ceil(share * len(SHADES)).astype(int) - 1  # -1: none
    gap = 1 if row >= 8 else 0
    across = 1 if column >= 8 else 0
    height, width = LEFT + column * of_class.shape[1], row * of_class.shape[0]
    pieces = [f'<rect x="{LEFT}" y="{TOP}" width="{height - LEFT:.1f}" height="{width:.1f}" fill="#f6f8fa"/>']
    for number, colour in enumerate(SHADES):
        where = np.argwhere(shade == number)
        if not len(where):
            continue
        steps = "".join(
            f"M{LEFT + c * column:.1f} {TOP + r * row:.1f}h{column - across:.1f}v{row - gap:.1f}h{across - column:.1f}z"
            for r, c in where
        )
        pieces.append(f'<path fill="{colour}" d="{steps}"/>')
    return pieces


def _every(count: int, room: float, step: float) -> int:
    """Label each k-th line so that labels keep `room` pixels apart; k of 1, 2, 5, 10, ..."""
    for k in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000):
        if k * step >= room:
            return k
    return max(1, count)


def _axes(federation: Federation, row: float, column: float) -> list[str]:
    clients, classes = federation.n, federation.classes
    bottom = TOP + row * clients
    pieces = []
    for i in range(0, clients, _every(clients, 13, row)):
        name = federation.clients[i] if federation.clients else str(i)
        pieces.append(
            _text(LEFT - 8, TOP + (i + 0.5) * row + 4, name if len(name) <= 11 else name[:10] + "…", anchor="end")
        )
    for label in range(0, classes, _every(classes, 22, column)):
        pieces.append(_text(LEFT + (label + 0.5) * column, bottom + 16, str(label), anchor="middle"))
    pieces.append(_text(LEFT + column * classes / 2, bottom + 34, "class", 12, "middle", INK))
    middle = TOP + row * clients / 2
    pieces.append(_text(16, middle, "client", 12, "middle", INK, f' transform="rotate(-90 16 {middle:.1f})"'))
    return pieces


def _bars(federation: Federation, of_class: np.ndarray, row: float, left: float) -> list[str]:
    """Training samples, and behind them the test samples."""
    size, held = of_class.sum(1), federation.test.sizes.numpy()
    top = int((size + held).max())
    scale = SIZES / max(top, 1)
    gap = 1 if row >= 8 else 0
    bottom = TOP + row * federation.n
    pieces = [f'<path stroke="{RULE}" d="M{left:.1f} {TOP}V{bottom:.1f}"/>']
    for colour, start, length in ((BAR, np.zeros_like(size), size), (HELD, size, held)):
        steps = "".join(
            f"M{left + a * scale:.1f} {TOP + i * row:.1f}h{b * scale:.1f}v{row - gap:.1f}h{-b * scale:.1f}z"
            for i, (a, b) in enumerate(zip(start, length, strict=True))
            if b
        )
        pieces.append(f'<path fill="{colour}" d="{steps}"/>')
    pieces.append(_text(left, bottom + 16, "0", anchor="middle"))
    pieces.append(_text(left + SIZES, bottom + 16, f"{top:,}", anchor="end"))
    pieces.append(_text(left + SIZES / 2, bottom + 34, "samples", 12, "middle", INK))
    for i, (colour, what) in enumerate(((BAR, "training"), (HELD, "test"))):
        x = left + i * 84
        pieces.append(f'<rect x="{x:.1f}" y="{bottom + 48:.1f}" width="12" height="12" fill="{colour}"/>')
        pieces.append(_text(x + 17, bottom + 58, what))
    return pieces


def _legend(x: float, y: float) -> list[str]:
    step = 20
    pieces = [
        f'<rect x="{x + i * step}" y="{y - 10:.1f}" width="{step}" height="12" fill="{colour}"/>'
        for i, colour in enumerate(SHADES)
    ]
    for share in (0, 50, 100):
        pieces.append(_text(x + share / 100 * step * len(SHADES), y + 16, f"{share} %", 10, "middle"))
    return [*pieces, _text(x + step * len(SHADES) + 10, y, "share of the client's training samples")]


def _hints(federation: Federation, of_class: np.ndarray, row: float, width: float) -> list[str]:
    """What the pointer shows over a client's row."""
    pieces = []
    for i, numbers in enumerate(of_class):
        most = np.argsort(-numbers, kind="stable")[:5]
        listed = ", ".join(f"class {label}: {numbers[label]:,}" for label in most if numbers[label])
        name = federation.clients[i] if federation.clients else str(i)
        hint = escape(f"client {name}: {numbers.sum():,} training samples ({listed})")
        pieces.append(
            f'<rect x="0" y="{TOP + i * row:.1f}" width="{width:.0f}" height="{row:.1f}" fill="#fff" fill-opacity="0">'
            f"<title>{hint}</title></rect>"
        )
    return pieces
