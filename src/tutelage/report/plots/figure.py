"""One look for all figures: palette, type and paper; and how a figure becomes a part of the page and files beside it.

In a page, text stays text and axes take the page's text colour, light or dark. Sizes are in pixels, 72 to the inch.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tutelage.report.text import percent

# Of the colour-blind safe palette of Okabe and Ito, those with a contrast of 3:1 to white and to near-black, and two
# more for those who compare many methods. Whatever has a colour has its name beside it, too.
BLUE, GREEN, VERMILLION, PURPLE = "#0072b2", "#009e73", "#d55e00", "#cc79a7"
GREY = "#7d8590"
PALETTE = (VERMILLION, BLUE, GREEN, PURPLE, GREY, "#9c6f19")
INK = "#010203"  # stands for the page's text colour until the figure is finished
PAPER_INK, PAPER = "#1c2128", "#ffffff"  # of the files
MEASURED, SHOWN = "'DejaVu Sans', sans-serif", "system-ui, sans-serif"  # fonts: matplotlib's, and the page's
WIDE, NARROW = 1080, 360  # of the two versions of a figure; the page shows the one that fits
PANEL = 330  # of a small figure among others
STEPS = [1, 2, 2.5, 5, 10]  # between ticks, times a power of ten
SMALL = 11  # the size of all text but titles

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Data:
    """The numbers behind a figure or a table: rows under named columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    def csv(self) -> str:
        """As a CSV file: numbers with six digits, NaN as an empty cell, and no text that a spreadsheet would run."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([_cell(x) for x in row] for row in (self.columns, *self.rows))
        return file.getvalue()


def _cell(x: object) -> object:
    if isinstance(x, float | np.floating):
        return "" if math.isnan(x) else f"{x:.6g}"
    return f"'{x}" if isinstance(x, str) and x.startswith(("=", "+", "-", "@", "\t", "\r")) else x


@dataclass(frozen=True)
class Words:
    """All that is written on a figure but the numbers."""

    title: str
    subtitle: str = ""
    x: str = ""
    y: str = ""


@dataclass(frozen=True)
class Canvas:
    """A figure's name, unique in its page, and its size and margins."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int = 48
    bottom: int = 46

    @property
    def room(self) -> tuple[int, int]:
        """Width and height within the margins."""
        return self.width - self.left - self.right, self.height - self.top - self.bottom

    def figure(self, text: Words) -> Figure:
        """A figure of this size, empty but for its title and subtitle at the upper left."""
        figure, upper = Figure(figsize=(self.width / 72, self.height / 72)), 1 - 14 / self.height
        figure.text(0, upper, text.title, weight="bold", size=13, va="center")
        figure.text(0, upper - 17 / self.height, text.subtitle, size=SMALL, alpha=0.7, va="center")
        return figure

    def axes(self, text: Words) -> tuple[Figure, Axes]:
        """A new figure with named axes that fill its margins."""
        figure = self.figure(text)
        axes = figure.add_axes(self.share((self.left, self.bottom, *self.room)))
        name_axes(axes, text)
        return figure, axes

    def share(self, box: Box) -> Box:
        """Left, bottom, width and height as shares of the figure."""
        left, bottom, width, height = box
        return left / self.width, bottom / self.height, width / self.width, height / self.height

    def cells(self, rows: int, columns: int, gap: tuple[int, int]) -> list[Box]:
        """A grid within the margins, row by row from the top; `gap` is between columns and between rows."""
        width = (self.room[0] - gap[0] * (columns - 1)) / columns
        height = (self.room[1] - gap[1] * (rows - 1)) / rows
        lefts = [self.left + c * (width + gap[0]) for c in range(columns)]
        bottoms = [self.bottom + (rows - 1 - r) * (height + gap[1]) for r in range(rows)]
        return [self.share((left, bottom, width, height)) for bottom in bottoms for left in lefts]


@dataclass(frozen=True)
class Sketch:
    """A figure that can be drawn at any width, what it tells in a sentence, and the numbers behind it."""

    name: str
    told: str
    data: Data
    draw: Callable[[int], Figure]
    widths: tuple[int, ...] = (WIDE, NARROW)


@dataclass(frozen=True)
class Plate:
    """A finished figure: an SVG element for the page at each width, and two files."""

    inline: tuple[str, ...]
    svg: bytes
    png: bytes


def finish(sketch: Sketch) -> Plate:
    """Draws a figure at all its widths. The files show the first."""
    inline, files = [], []
    for width in sketch.widths:
        name = f"{sketch.name}-{width}"
        with styled(name):
            figure = sketch.draw(width)
            drawn = _as_svg(figure)
            inline.append(_element(drawn, name, figure, sketch.told))
            files = files or [_file(drawn, figure), _as_png(figure)]
    return Plate(tuple(inline), *files)


def styled(salt: str) -> AbstractContextManager[None]:
    """Matplotlib's settings while one figure is made."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
    settings: dict[Any, Any] = dict.fromkeys(inked, INK) | {
        "font.sans-serif": ["DejaVu Sans", "sans-serif"],
        "font.size": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.alpha": 0.15,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "ytick.major.size": 0,
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "text.parse_math": False,
    }
    return matplotlib.rc_context(settings)


def name_axes(axes: Axes, text: Words) -> None:
    """Axis labels, muted."""
    axes.set_xlabel(text.x, size=SMALL, alpha=0.7, loc="left")
    axes.set_ylabel(text.y, size=SMALL, alpha=0.7)


def legend(figure: Figure, canvas: Canvas, entries: Sequence[tuple[str, str]], *, above: int = 26) -> None:
    """Names and colours in a row, from the left, `above` the axes by so many pixels; another row where one is full."""
    places = _legend_places([name for name, _ in entries], canvas.width)
    for (name, colour), (x, row) in zip(entries, places, strict=True):
        place = (x / canvas.width, 1 - (canvas.top - above + 16 * row) / canvas.height)
        figure.text(*place, "■", color=colour, size=SMALL, va="center")
        figure.text(place[0] + 13 / canvas.width, place[1], name, size=SMALL, va="center")


def legend_rows(entries: Sequence[str], width: int) -> int:
    """How many rows `legend` needs for names."""
    return _legend_places(entries, width)[-1][1] + 1


def _legend_places(entries: Sequence[str], width: int) -> list[tuple[float, int]]:
    """Where each name of a legend begins, and in which row."""
    places, x, row = [], 0.0, 0
    for name in entries:
        across = 34 + 6.9 * len(name)
        if x and x + across > width:
            x, row = 0.0, row + 1
        places.append((x, row))
        x += across
    return places


def share_axis(axis: Any) -> None:
    """Ticks of an axis that shows shares."""
    axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
    axis.set_major_formatter(FuncFormatter(lambda x, _: percent(x)))


def count_axis(axis: Any, n: int = 4) -> None:
    """Ticks of an axis that counts."""
    axis.set_major_locator(MaxNLocator(n, integer=True, steps=STEPS))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def shades(n: int) -> list[str]:
    """Colours for things in order, early to late, all legible on light and on dark."""
    return [to_hex(c) for c in matplotlib.colormaps["plasma"](np.linspace(0.33, 0.78, n))]


def _as_svg(figure: Figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    return re.sub(
        r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>",
        "",
        svg[svg.index("<svg") :].strip(),
        flags=re.DOTALL,
    )


def _as_png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor=PAPER, dpi=144, metadata={"Software": None})
    return file.getvalue()


def _element(svg: str, name: str, figure: Figure, told: str) -> str:
    """Sized by its page, coloured by it, with ids that no other figure has."""
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    opening = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
    opening += f'viewBox="{_view(figure)}" aria-label="{escape(told)}">'
    svg = re.sub(r"^<svg[^>]*>", lambda _: opening, svg)
    return svg.replace(INK, "currentColor").replace(MEASURED, SHOWN)


def _file(svg: str, figure: Figure) -> bytes:
    """Dark on white, whatever shows it."""
    ground = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    svg = re.sub(r"^(<svg[^>]*>)", lambda m: m[0] + ground, svg)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg.replace(INK, PAPER_INK)}\n'.encode()


def _view(figure: Figure) -> str:
    width, height = figure.get_size_inches() * 72
    return f"0 0 {width:g} {height:g}"
