"""Figures as SVG to stand inside a page: text stays text, and axes take the page's text colour, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tutelage.report.curves import Curve, Rows, curve, seeds_of, updates_per_point
from tutelage.report.markup import Markup
from tutelage.report.text import number, percent, sentence_case, words

# Of the colour-blind safe palette of Okabe and Ito, those with a contrast of 3:1 to white and to near-black.
BLUE, GREEN, VERMILLION, PURPLE = "#0072b2", "#009e73", "#d55e00", "#cc79a7"
INK = "#010203"  # stands for the page's text colour until the figure is finished
MEASURED, SHOWN = "'DejaVu Sans', sans-serif", "system-ui, sans-serif"  # fonts: matplotlib's, and the page's
_STEPS = [1, 2, 2.5, 5, 10]  # between ticks, times a power of ten

SOLVED = (
    ("replay/solved", "replayed", BLUE),
    ("explore/solved", "new", VERMILLION),
    ("edit/solved", "edited", GREEN),
    ("eval/solved", "validation", PURPLE),
)


@dataclass(frozen=True)
class Line:
    """A curve and the label at its end."""

    label: str
    colour: str
    curve: Curve


@dataclass(frozen=True)
class Canvas:
    """A figure's name, unique in its page, and its size and margins in pixels."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int = 48
    bottom: int = 46

    def axes(self) -> Axes:
        """Empty axes on a new figure."""
        box = (self.left, self.bottom, self.width - self.left - self.right, self.height - self.top - self.bottom)
        left, bottom, width, height = (v / (self.width, self.height)[n % 2] for n, v in enumerate(box))
        return Figure(figsize=(self.width / 72, self.height / 72)).add_axes((left, bottom, width, height))


@dataclass(frozen=True)
class Words:
    """All that is written on a figure but the numbers."""

    title: str
    subtitle: str
    x: str
    y: str = ""


def learning_curves(rows: Rows, *, width: int = 1080) -> Markup | None:
    """Solved rate on replayed, new, edited and validation levels over student updates; None without such metrics."""
    lines = _lines(rows, SOLVED)
    if not lines:
        return None
    text = Words(
        "Solved rate by kind of level",
        _spread(rows),
        f"student updates (a point for every {updates_per_point(rows):,})",
        "episodes solved",
    )
    canvas = Canvas(f"learning-{width}", width, 400 if width > 600 else 300, left=60, right=116)
    return _plot(canvas, text, lines, percent, share=True)


def complexity_curves(rows: Rows, *, width: int = 260) -> list[Markup]:
    """A small figure for each metric of the buffer's levels that the domain describes, and for their generation.

    The survey of the buffer gives each of them twice: averaged over the buffer, and by the odds of being replayed.
    """
    keys = dict.fromkeys(key for row in rows for key in row)
    names = [k.removeprefix("buffer/") for k in keys if k.startswith("buffer/") and f"{k}_replay" in keys]
    names.sort(key=lambda name: name == "generation")
    replays = curve(rows, "replay/solved") is not None
    figures = []
    for n, name in enumerate(names):
        kinds = ((f"buffer/{name}", "buffer", BLUE), (f"buffer/{name}_replay", "replayed", VERMILLION))
        if lines := _lines(rows, kinds if replays else kinds[:1]):
            text = Words(sentence_case(words(name)), _spread(rows, brief=True), "student updates")
            canvas = Canvas(f"complexity-{n}", width, round(0.8 * width), left=36, right=66)
            figures.append(_plot(canvas, text, lines, number, share=False))
    return figures


def _lines(rows: Rows, kinds: Sequence[tuple[str, str, str]]) -> list[Line]:
    found = [(label, colour, curve(rows, name)) for name, label, colour in kinds]
    return [Line(label, colour, c) for label, colour, c in found if c is not None]


def _spread(rows: Rows, *, brief: bool = False) -> str:
    seeds = seeds_of(rows)
    if seeds == 1:
        return "mean of the levels" if brief else "one seed"
    return f"mean, band ± s.e. of {seeds} seeds" if brief else f"mean of {seeds} seeds, band: ± 1 standard error"


def _plot(canvas: Canvas, text: Words, lines: Sequence[Line], show: Callable[[float], str], *, share: bool) -> Markup:
    with matplotlib.rc_context(_style(canvas.name)):
        axes = canvas.axes()
        for line in lines:
            _draw(axes, line)
        _scale(axes, lines, share)
        _write(axes, canvas, text)
        _label_ends(axes, canvas, [(f"{x.label} {show(x.curve.mean[-1])}" if share else x.label, x) for x in lines])
        return _svg(axes, canvas, _told(text, lines, show))


def _style(salt: str) -> dict[Any, Any]:
    """Matplotlib's settings while one figure is made."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
    return dict.fromkeys(inked, INK) | {
        "font.sans-serif": ["DejaVu Sans", "sans-serif"],
        "font.size": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.alpha": 0.15,
        "xtick.labelsize": 11,
        "ytick.labelsize": 11,
        "ytick.major.size": 0,
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "text.parse_math": False,
    }


def _draw(axes: Axes, line: Line) -> None:
    x, mean, error = line.curve.updates, line.curve.mean, np.nan_to_num(line.curve.error)
    axes.fill_between(x, mean - error, mean + error, color=line.colour, alpha=0.2, linewidth=0)
    axes.plot(x, mean, color=line.colour, linewidth=2, solid_joinstyle="round")


def _scale(axes: Axes, lines: Sequence[Line], share: bool) -> None:
    """Updates from 0; shares from 0 to 1, and what has no negative values from 0."""
    axes.set_xlim(0, max(line.curve.updates[-1] for line in lines))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=_STEPS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    if share:
        axes.set_ylim(-0.02, 1.02)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: percent(y)))
        return
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=_STEPS))
    if min(line.curve.mean.min() for line in lines) >= 0:
        axes.set_ylim(0, 1.08 * max(np.max(x.curve.mean + np.nan_to_num(x.curve.error)) for x in lines) or 1)


def _write(axes: Axes, canvas: Canvas, text: Words) -> None:
    """Title and subtitle at the upper left, axis labels muted."""
    upper = 1 - 14 / canvas.height
    assert axes.figure is not None
    axes.figure.text(0, upper, text.title, weight="bold", size=13, va="center")
    axes.figure.text(0, upper - 17 / canvas.height, text.subtitle, size=11, alpha=0.7, va="center")
    axes.set_xlabel(text.x, size=11, alpha=0.7, loc="left")
    axes.set_ylabel(text.y, size=11, alpha=0.7)


def _label_ends(axes: Axes, canvas: Canvas, labels: Sequence[tuple[str, Line]]) -> None:
    """Names each line where it ends, moved up or down where two would overlap."""
    low, high = axes.get_ylim()
    room = canvas.height - canvas.top - canvas.bottom
    wanted = [room * (line.curve.mean[-1] - low) / (high - low) for _, line in labels]
    for (label, line), place in zip(labels, apart(wanted, gap=15.0, top=float(room)), strict=True):
        end = (line.curve.updates[-1], line.curve.mean[-1])
        axes.plot(*end, "o", color=line.colour, markersize=5, clip_on=False)
        axes.annotate(
            label,
            end,
            (1 + 18 / (canvas.width - canvas.left - canvas.right), place / room),
            textcoords="axes fraction",
            va="center",
            size=11,
            arrowprops={"arrowstyle": "-", "color": line.colour, "relpos": (0, 0.5), "shrinkA": 2, "shrinkB": 3},
            annotation_clip=False,
        )


def apart(wanted: Sequence[float], *, gap: float, top: float) -> list[float]:
    """Places near the wanted ones, in the same order, at least `gap` apart and at most `top`."""
    order = np.argsort(wanted, kind="stable")
    places = np.array(wanted, float)
    for before, this in pairwise(order):
        places[this] = max(places[this], places[before] + gap)
    limit = top
    for this in order[::-1]:
        places[this] = min(places[this], limit)
        limit = places[this] - gap
    return places.tolist()


def _told(text: Words, lines: Sequence[Line], show: Callable[[float], str]) -> str:
    """The figure in a sentence, for those who do not see it."""
    courses = [f"{x.label} from {show(x.curve.mean[0])} to {show(x.curve.mean[-1])}" for x in lines]
    return f"{text.title}, over student updates: {'; '.join(courses)}."


def _svg(axes: Axes, canvas: Canvas, told: str) -> Markup:
    """The figure as an element: sized by its page, coloured by it, with ids that no other figure has."""
    file = io.StringIO()
    assert isinstance(axes.figure, Figure)
    axes.figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{canvas.name}-", svg)
    opening = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
    opening += f'viewBox="0 0 {canvas.width} {canvas.height}" aria-label="{escape(told)}">'
    svg = re.sub(r"^<svg[^>]*>", lambda _: opening, svg)
    return Markup(svg.replace(INK, "currentColor").replace(MEASURED, SHOWN))
