"""Figures of levels: sheets of pictures, a family's tree, what solved levels are like, and what kinds there are."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from tutelage.env import DesignSpace
from tutelage.report import text as texts
from tutelage.report.facts.ancestry import Tree
from tutelage.report.facts.levels import Composition, Rose
from tutelage.report.plots.figure import (
    GREY,
    SMALL,
    VERMILLION,
    WIDE,
    Canvas,
    Data,
    Sketch,
    Words,
    count_axis,
    legend,
    legend_rows,
    shades,
    share_axis,
)
from tutelage.runs.browse import HISTORY, Found


def sheet(name: str, words: Words, design: DesignSpace, found: Sequence[Found], columns: int = 6) -> Sketch:
    """Pictures of levels with what is known of each; the data hold the levels themselves, as JSON."""

    def draw(width: int) -> Figure:
        pictures = [design.render(f.level) for f in found]
        rows = math.ceil(len(pictures) / columns)
        cell = (width - 16 * (columns - 1)) / columns
        tall = max(cell * p.shape[0] / p.shape[1] for p in pictures)
        captions = [f"score {texts.number(f.score)}, generation {f.generation}" for f in found]
        wrapped = [textwrap.wrap(caption, round(cell / 6.2)) for caption in captions]
        below = 16 + 14 * max(len(lines) for lines in wrapped)
        canvas = Canvas(name, width, 48 + round(rows * tall) + below * rows - 4, 0, 0, bottom=below - 4)
        figure = canvas.figure(words)
        for picture, lines, box in zip(pictures, wrapped, canvas.cells(rows, columns, (16, below)), strict=False):
            axes = figure.add_axes(box)
            axes.imshow(picture, interpolation="none")
            axes.set_axis_off()
            axes.set_anchor("N")
            place = ((0, 0), (0, -3), "axes fraction", "offset points")
            axes.annotate("\n".join(lines), *place, annotation_clip=False, va="top", size=9)
        return figure

    rows = [
        [f.seed, *(getattr(f, fact) for fact in HISTORY), *f.metrics.values(), json.dumps(design.to_json(f.level))]
        for f in found
    ]
    data = Data(("seed", *HISTORY, *found[0].metrics, "level"), rows)
    return Sketch(name, f"{words.title}: {texts.plural(len(found), 'level')}.", data, draw, (WIDE,))


def family_tree(name: str, tree: Tree) -> Sketch:
    """The ancestors of the best levels that share the first one: the line to the deepest of them stands out."""
    admitted, places = tree.pedigree.admitted, tree.pedigree.places
    levels = sorted({level for line in tree.lines for level in line}, key=lambda level: (tree.generation(level), level))
    leaves, last = texts.plural(len(tree.leaves), "level"), tree.generation(tree.deepest)
    words = Words("A family of levels", f"■ the generator’s level, ● its {leaves} among the best 100", "generation")
    heights, marked = tree.rows(), set(tree.pedigree.line(tree.deepest))

    def draw(width: int) -> Figure:
        height = 134 + max(120, round(15 * (1 + max(heights.values()))))
        figure, axes = Canvas(name, width, height, 8, 24, top=60).axes(words)
        for parent, children in tree.children.items():
            for child in children:
                x, y = (tree.generation(parent), tree.generation(child)), (heights[parent], heights[child])
                hue, thick, above = (VERMILLION, 2.5, 3) if child in marked else (GREY, 1.2, 2)
                axes.plot([x[0], x[0], x[1]], [y[0], y[1], y[1]], color=hue, linewidth=thick, zorder=above)
        for leaf in tree.leaves:
            hue = VERMILLION if leaf in marked else GREY
            axes.plot(tree.generation(leaf), heights[leaf], "o", color=hue, markersize=6, zorder=4, clip_on=False)
        axes.plot(0, heights[tree.lines[0][0]], "s", color=VERMILLION, markersize=8, zorder=4, clip_on=False)
        axes.set_yticks([])
        axes.set_xlim(left=0)
        axes.grid(axis="x")
        count_axis(axes.xaxis, 6 if width < WIDE else 10)
        return figure

    rows = [[*(getattr(admitted, x)[places[level]] for x in HISTORY), int(level in tree.leaves)] for level in levels]
    told = f"{words.title}: from one level of the generator descend {leaves} of the best 100, up to generation {last}."
    return Sketch(name, told, Data((*HISTORY, "is_leaf"), rows), draw)


def rose_plot(name: str, measures: Sequence[str], roses: Sequence[Rose], hues: Mapping[str, str]) -> Sketch:
    """A petal for each measure, a line for each level; every measure from 0 to the largest value of any rose."""
    largest = np.max([rose.values.max(axis=0) for rose in roses if len(rose.values)], axis=0)
    words = Words(
        "Solved levels of highest regret",
        "a line for each that was solved in training; petals run from 0 to the largest value",
    )
    angles = np.linspace(0, 2 * np.pi, len(measures), endpoint=False)

    def draw(width: int) -> Figure:
        columns = min(len(roses), max(1, width // 340))
        rows = math.ceil(len(roses) / columns)
        canvas = Canvas(name, width, 60 + rows * 340, 0, 0, top=60, bottom=10)
        figure = canvas.figure(words)
        for rose, (left, bottom, across, up) in zip(roses, canvas.cells(rows, columns, (0, 0)), strict=False):
            box = (left + 0.2 * across, bottom + 0.12 * up, 0.6 * across, 0.62 * up)
            axes = figure.add_axes(box, projection="polar")
            assert isinstance(axes, PolarAxes)
            for level in rose.values / np.where(largest > 0, largest, 1):
                axes.plot([*angles, angles[0]], [*level, level[0]], color=hues[rose.label], alpha=0.35, linewidth=1)
            axes.set_ylim(0, 1)
            axes.set_yticks([0.5, 1], ["", ""])
            axes.set_xticks(angles, [texts.words(m).replace(" ", "\n", 1) for m in measures], size=9)
            for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
                label.set_horizontalalignment(_beside(float(np.cos(angle))))
            axes.grid(True)
            title = f"{rose.label}, update {rose.updates:,}: {texts.plural(len(rose.values), 'level')}"
            axes.set_title(title, size=SMALL, pad=26)
        return figure

    rows = [[rose.label, rose.updates, *level] for rose in roses for level in rose.values]
    told = f"{words.title}: " + "; ".join(f"{r.label} at update {r.updates:,}, {len(r.values)}" for r in roses) + "."
    return Sketch(name, told, Data(("method", "checkpoint", *measures), rows), draw)


def _beside(right: float) -> Literal["left", "center", "right"]:
    """How a label is aligned that must not run across the circle, by how far to the right of its middle it is."""
    return "center" if abs(right) < 0.1 else "left" if right > 0 else "right"


def composition(name: str, names: Sequence[str], compositions: Sequence[Composition]) -> Sketch:
    """Stacked bars of the classes called `names` over checkpoints, a panel for each method."""
    words = Words("Kinds of levels in the buffer", "share of its levels at each checkpoint, mean over seeds")

    def draw(width: int) -> Figure:
        columns = min(len(compositions), 3 if width >= WIDE else 1)
        rows, hues = math.ceil(len(compositions) / columns), shades(len(names))
        top = 78 + 16 * legend_rows(names, width)
        canvas = Canvas(name, width, top + rows * 190 + (rows - 1) * 60 + 40, 52, 4, top=top)
        figure = canvas.figure(words)
        legend(figure, canvas, list(zip(names, hues, strict=True)), above=top - 54)
        for x, cell in zip(compositions, canvas.cells(rows, columns, (60, 60)), strict=False):
            axes = figure.add_axes(cell)
            bases = np.cumsum(x.shares, axis=1) - x.shares
            for share, base, hue in zip(x.shares.T, bases.T, hues, strict=True):
                axes.bar(range(len(base)), share, 0.7, base, color=hue, linewidth=0)
            axes.set_title(x.label, size=SMALL, loc="left")
            axes.set_xticks(range(len(x.checkpoints)), [f"{updates:,}" for updates in x.checkpoints])
            axes.set_ylim(0, 1)
            share_axis(axes.yaxis)
        return figure

    rows = [
        [x.label, updates, kind, x.shares[c, k]]
        for x in compositions
        for c, updates in enumerate(x.checkpoints)
        for k, kind in enumerate(names)
    ]
    last = "; ".join(f"{x.label} {names[-1]} {x.shares[-1, -1]:.0%}" for x in compositions)
    data = Data(("method", "checkpoint", "class", "share"), rows)
    return Sketch(name, f"{words.title}, at the end: {last}.", data, draw)
