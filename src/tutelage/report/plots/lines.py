"""Plots of lines with bands, each named where it ends, and how metrics become such lines."""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tutelage.report.facts.runs import Row
from tutelage.report.plots.figure import (
    NARROW,
    PANEL,
    SMALL,
    STEPS,
    WIDE,
    Canvas,
    Data,
    Sketch,
    Words,
    count_axis,
    share_axis,
)
from tutelage.statistics import Summary

MAX_POINTS = 160


@dataclass(frozen=True)
class Curve:
    """One quantity, N points; `error` is NaN where a single seed tells none."""

    updates: np.ndarray
    mean: np.ndarray
    error: np.ndarray


def curve(rows: Sequence[Row], name: str) -> Curve | None:
    """The curve of a metric, or None if no row has a number for it.

    Where there are more than MAX_POINTS log points, neighbours are averaged, seed by seed.
    """
    points: defaultdict[int, defaultdict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    place = _places(rows)
    for row in rows:
        if row.get(name) is not None:
            points[place[row["updates"]]][row["seed"]].append((row["updates"], row[name]))
    if not points:
        return None
    by_seed = [[np.mean(pairs, axis=0) for pairs in points[p].values()] for p in sorted(points)]
    updates = [float(np.mean([u for u, _ in seeds])) for seeds in by_seed]
    values = [Summary.of([float(v) for _, v in seeds]) for seeds in by_seed]
    return Curve(np.array(updates), np.array([v.mean for v in values]), np.array([v.error for v in values]))


def _places(rows: Sequence[Row]) -> dict[int, int]:
    """Which point of the curve each log point goes to."""
    steps = sorted({row["updates"] for row in rows})
    each = math.ceil(len(steps) / MAX_POINTS)
    return {step: n // each for n, step in enumerate(steps)}


@dataclass(frozen=True)
class Line:
    """N points, the ends of a band around each, and the label at the last."""

    label: str
    colour: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    dash: str = "-"

    @staticmethod
    def of(label: str, colour: str, curve: Curve, dash: str = "-") -> Line:
        """The band is one standard error to either side, or none where one seed tells no error."""
        error = np.nan_to_num(curve.error)
        return Line(label, colour, curve.updates, curve.mean, curve.mean - error, curve.mean + error, dash)


@dataclass(frozen=True)
class Scale:
    """How the axes run, and how a value is written at a line's end."""

    show: Callable[[float], str]
    share: bool = False  # y from 0 to 1
    share_x: bool = False
    ends: bool = True  # write the last value beside the label


def line_sketch(
    name: str, words: Words, lines: Sequence[Line], scale: Scale, widths: tuple[int, ...] = (WIDE, NARROW)
) -> Sketch:
    """A plot of lines, and their points as data."""
    rows = [[x.label, *point] for x in lines for point in zip(x.x, x.y, x.low, x.high, strict=True)]
    labels = end_labels(lines, scale)

    def draw(width: int) -> Figure:
        height = 400 if width > 600 else 300 if width > PANEL else 250
        canvas = Canvas(name, width, height, 60 if words.y else 44, label_margin(labels))
        more = max(0, label_height(labels) - canvas.room[1])
        return line_figure(replace(canvas, height=height + more), words, lines, scale)

    columns = ("method", words.x.replace(" ", "_"), "mean", "low", "high")
    return Sketch(name, told(words, lines, scale), Data(columns, rows), draw, widths)


def line_figure(canvas: Canvas, text: Words, lines: Sequence[Line], scale: Scale) -> Figure:
    """The lines, their bands, and their names to the right."""
    figure, axes = canvas.axes(text)
    for line in lines:
        axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.2, linewidth=0)
        axes.plot(line.x, line.y, color=line.colour, linestyle=line.dash, linewidth=2, solid_joinstyle="round")
    _scale(axes, lines, scale, canvas.room[0])
    _label_ends(axes, canvas, end_labels(lines, scale), lines)
    return figure


def end_labels(lines: Sequence[Line], scale: Scale) -> list[str]:
    """What stands at the end of each line, in rows of at most some 16 characters."""
    ends = scale.ends and scale.share
    labels = [f"{line.label} {scale.show(float(line.y[-1]))}" if ends else line.label for line in lines]
    return [textwrap.fill(label, 16) for label in labels]


def label_margin(labels: Sequence[str]) -> int:
    """The right margin that holds them."""
    return 26 + round(6.9 * max(len(row) for label in labels for row in label.split("\n")))


def label_height(labels: Sequence[str]) -> int:
    """The height that holds them, one below the other."""
    return round(sum(_tall(label) for label in labels))


def _tall(label: str) -> float:
    return 15.0 * (label.count("\n") + 1)


def told(text: Words, lines: Sequence[Line], scale: Scale) -> str:
    """The figure in a sentence, for those who do not see it."""
    courses = [f"{x.label} from {scale.show(float(x.y[0]))} to {scale.show(float(x.y[-1]))}" for x in lines]
    return f"{text.title}, over {text.x}: {'; '.join(courses)}."


def _scale(axes: Axes, lines: Sequence[Line], scale: Scale, room: int) -> None:
    """Shares from 0 to 1, and what has no negative values from 0; as many ticks as `room` pixels hold."""
    axes.set_xlim(0, max(line.x[-1] for line in lines) or 1)
    if scale.share_x:
        share_axis(axes.xaxis)
    else:
        count_axis(axes.xaxis, max(2, min(4, room // 70)))
    if scale.share:
        axes.set_ylim(-0.02, 1.02)
        share_axis(axes.yaxis)
        return
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=STEPS))
    if min(line.y.min() for line in lines) >= 0:
        axes.set_ylim(0, 1.08 * max(line.high.max() for line in lines) or 1)


def _label_ends(axes: Axes, canvas: Canvas, labels: Sequence[str], lines: Sequence[Line]) -> None:
    """Names each line where it ends, moved up or down where two would overlap."""
    low, high = axes.get_ylim()
    across, room = canvas.room
    wanted = [room * (line.y[-1] - low) / (high - low) for line in lines]
    far = max(line.x[-1] for line in lines)
    places = apart(wanted, [_tall(label) for label in labels], top=room + 7.5)
    for label, line, place in zip(labels, lines, places, strict=True):
        end = (line.x[-1], line.y[-1])
        axes.plot(*end, "o", color=line.colour, markersize=5, clip_on=False)
        axes.annotate(
            label,
            end,
            (1 + 18 / across, place / room),
            textcoords="axes fraction",
            va="center",
            size=SMALL,
            arrowprops={
                "arrowstyle": "-",
                "color": line.colour,
                "relpos": (0, 0.5),
                "shrinkA": 2,
                "shrinkB": 3,
                "linestyle": "-" if line.x[-1] > 0.95 * far else ":",  # a long leader is not to be taken for data
            },
            annotation_clip=False,
        )


def apart(wanted: Sequence[float], sizes: Sequence[float], *, top: float) -> list[float]:
    """Places near the wanted ones, in the same order, of things so tall; the uppermost ends at `top` or below."""
    order = np.argsort(wanted, kind="stable")
    places, half = np.array(wanted, float), np.array(sizes, float) / 2
    for before, this in pairwise(order):
        places[this] = max(places[this], places[before] + half[before] + half[this])
    limit = top
    for this in order[::-1]:
        places[this] = min(places[this], limit - half[this])
        limit = float(places[this] - half[this])
    return places.tolist()
