"""What buffers hold, for domains of many parameters: roses of solved levels, and shares of classes of difficulty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from tutelage.report import text as texts
from tutelage.report.data import Data
from tutelage.report.drawing import SMALL, WIDE, Canvas, Sketch, Words, legend, legend_rows, shades, share_axis, write

# Measures that are a class, by name, with what each value 0, 1, … means. BipedalWalker's classes are those of POET: how
# many of stump height ≥ 2.4, pit gap ≥ 6 and roughness ≥ 4.5 a level meets.
CLASSES: Mapping[str, Sequence[str]] = {
    "difficulty": ("easy", "challenging", "very challenging", "extremely challenging"),
    "solvable": ("no way to the goal", "solvable"),
}


@dataclass(frozen=True)
class Rose:
    """Solved levels of a method at a checkpoint: values `[N, M]` of M measures."""

    label: str
    colour: str
    updates: int
    values: np.ndarray


def rose_plot(name: str, measures: Sequence[str], roses: Sequence[Rose]) -> Sketch:
    """A petal for each measure, a line for each level; every measure from 0 to the largest value of any rose."""
    largest = np.max([rose.values.max(axis=0) for rose in roses if len(rose.values)], axis=0)
    words = Words("Solved levels of highest regret", "every line is a level; petals run from 0 to the largest value")

    def draw(width: int) -> Figure:
        return _rose_figure(name, width, words, measures, roses, np.where(largest > 0, largest, 1))

    rows = [[rose.label, rose.updates, *level] for rose in roses for level in rose.values]
    told = f"{words.title}: " + "; ".join(f"{r.label} at update {r.updates:,}, {len(r.values)}" for r in roses) + "."
    return Sketch(name, told, Data(("method", "checkpoint", *measures), rows), draw)


def _rose_figure(
    name: str, width: int, words: Words, measures: Sequence[str], roses: Sequence[Rose], largest: np.ndarray
) -> Figure:
    columns = min(len(roses), max(1, width // 340))
    rows = math.ceil(len(roses) / columns)
    canvas = Canvas(name, width, 60 + rows * 340, 0, 0, top=60, bottom=10)
    figure = canvas.figure()
    write(figure, canvas, words)
    angles = np.linspace(0, 2 * np.pi, len(measures), endpoint=False)
    for rose, (left, bottom, across, up) in zip(roses, canvas.cells(rows, columns, (0, 0)), strict=False):
        box = (left + 0.2 * across, bottom + 0.12 * up, 0.6 * across, 0.62 * up)
        axes = figure.add_axes(box, projection="polar")
        assert isinstance(axes, PolarAxes)
        for level in rose.values / largest:
            axes.plot([*angles, angles[0]], [*level, level[0]], color=rose.colour, alpha=0.35, linewidth=1)
        axes.set_ylim(0, 1)
        axes.set_yticks([0.5, 1], ["", ""])
        axes.set_xticks(angles, [texts.words(m).replace(" ", "\n", 1) for m in measures], size=9)
        for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
            label.set_horizontalalignment(_beside(float(np.cos(angle))))
        axes.grid(True)
        title = f"{rose.label}, update {rose.updates:,}: {texts.plural(len(rose.values), 'level')}"
        axes.set_title(title, size=SMALL, pad=26)
    return figure


def _beside(right: float) -> Literal["left", "center", "right"]:
    """How a label is aligned that must not run across the circle, by how far to the right of its middle it is."""
    return "center" if abs(right) < 0.1 else "left" if right > 0 else "right"


@dataclass(frozen=True)
class Composition:
    """The shares `[C, K]` of K classes in a method's buffers at C checkpoints."""

    label: str
    checkpoints: Sequence[int]
    shares: np.ndarray


def shares_of(values: np.ndarray, classes: int) -> np.ndarray:
    """How much of `values` is each of 0 … classes − 1."""
    return np.array([(values == k).mean() for k in range(classes)])


def composition(name: str, measure: str, compositions: Sequence[Composition]) -> Sketch:
    """Stacked bars over checkpoints, a panel for each method."""
    names = CLASSES[measure]
    words = Words("Kinds of levels in the buffer", "share of its levels at each checkpoint, mean over seeds")

    def draw(width: int) -> Figure:
        return _composition_figure(name, width, words, names, compositions)

    rows = [
        [x.label, updates, kind, x.shares[c, k]]
        for x in compositions
        for c, updates in enumerate(x.checkpoints)
        for k, kind in enumerate(names)
    ]
    last = "; ".join(f"{x.label} {names[-1]} {x.shares[-1, -1]:.0%}" for x in compositions)
    return Sketch(
        name, f"{words.title}, at the end: {last}.", Data(("method", "checkpoint", "class", "share"), rows), draw
    )


def _composition_figure(
    name: str, width: int, words: Words, names: Sequence[str], compositions: Sequence[Composition]
) -> Figure:
    columns = min(len(compositions), 3 if width >= WIDE else 1)
    rows, hues = math.ceil(len(compositions) / columns), shades(len(names))
    top = 78 + 16 * legend_rows(names, width)
    canvas = Canvas(name, width, top + rows * 190 + (rows - 1) * 60 + 40, 52, 4, top=top)
    figure = canvas.figure()
    write(figure, canvas, words)
    legend(figure, canvas, list(zip(names, hues, strict=True)), above=top - 54)
    for x, cell in zip(compositions, canvas.cells(rows, columns, (60, 60)), strict=False):
        axes = figure.add_axes(cell)
        base = np.zeros(len(x.checkpoints))
        for share, hue in zip(x.shares.T, hues, strict=True):
            axes.bar(range(len(base)), share, 0.7, base, color=hue, linewidth=0)
            base = base + share
        axes.set_title(x.label, size=SMALL, loc="left")
        axes.set_xticks(range(len(base)), [f"{updates:,}" for updates in x.checkpoints])
        axes.set_ylim(0, 1)
        share_axis(axes.yaxis)
    return figure
