"""Figures of ancestry: sheets of pictures, the family tree of a level, and how concentrated a buffer is."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from tutelage.env import DesignSpace
from tutelage.report import text as texts
from tutelage.report.data import Data
from tutelage.report.drawing import GREY, VERMILLION, WIDE, Canvas, Sketch, Words, count_axis, name_axes, write
from tutelage.report.genealogy import Tree
from tutelage.runs.browse import Found

WHOLE = ("id", "parent", "generation", "birth")


def sheet(name: str, words: Words, design: DesignSpace, found: Sequence[Found], columns: int = 6) -> Sketch:
    """Pictures of levels with what is known of each; the data hold the levels themselves, as JSON."""
    captions = [f"score {texts.number(f.score)}, generation {f.generation}" for f in found]

    def draw(width: int) -> Figure:
        return _sheet_figure(name, width, words, [design.render(f.level) for f in found], captions, columns)

    metrics = list(found[0].metrics)
    rows = [
        [f.seed, f.id, f.parent, f.generation, f.birth, f.score]
        + [f.metrics[m] for m in metrics]
        + [json.dumps(design.to_json(f.level))]
        for f in found
    ]
    data = Data(("seed", "id", "parent", "generation", "birth", "score", *metrics, "level"), rows)
    return Sketch(name, f"{words.title}: {texts.plural(len(found), 'level')}.", data, draw, (WIDE,))


def _sheet_figure(
    name: str, width: int, words: Words, pictures: Sequence[np.ndarray], captions: Sequence[str], columns: int
) -> Figure:
    rows = math.ceil(len(pictures) / columns)
    cell = (width - 16 * (columns - 1)) / columns
    tall = max(cell * p.shape[0] / p.shape[1] for p in pictures)
    wrapped = [textwrap.wrap(caption, round(cell / 6.2)) for caption in captions]
    below = 16 + 14 * max(len(lines) for lines in wrapped)
    canvas = Canvas(name, width, 48 + round(rows * tall) + below * rows - 4, 0, 0, bottom=below - 4)
    figure = canvas.figure()
    write(figure, canvas, words)
    for picture, lines, box in zip(pictures, wrapped, canvas.cells(rows, columns, (16, below)), strict=False):
        axes = figure.add_axes(box)
        axes.imshow(picture, interpolation="none")
        axes.set_axis_off()
        axes.set_anchor("N")
        caption, under = "\n".join(lines), (0, -3)
        axes.annotate(caption, (0, 0), under, "axes fraction", "offset points", annotation_clip=False, va="top", size=9)
    return figure


def tree_figure(name: str, width: int, words: Words, tree: Tree) -> Figure:
    """Generations to the right; the line of descent of the deepest leaf stands out."""
    heights = tree.rows()
    canvas = Canvas(name, width, 48 + 40 + max(120, round(15 * (1 + max(heights.values())))) + 46, 8, 24, top=60)
    axes = canvas.axes()
    marked = set(tree.pedigree.line(tree.deepest))
    for parent, children in tree.children.items():
        for child in children:
            x, y = (tree.generation(parent), tree.generation(child)), (heights[parent], heights[child])
            hue, thick = (VERMILLION, 2.5) if child in marked else (GREY, 1.2)
            axes.plot([x[0], x[0], x[1]], [y[0], y[1], y[1]], color=hue, linewidth=thick, zorder=2 + (child in marked))
    for leaf in tree.leaves:
        hue = VERMILLION if leaf in marked else GREY
        axes.plot(tree.generation(leaf), heights[leaf], "o", color=hue, markersize=6, zorder=4, clip_on=False)
    root = tree.lines[0][0]
    axes.plot(0, heights[root], "s", color=VERMILLION, markersize=8, zorder=4, clip_on=False)
    axes.set_yticks([])
    axes.set_xlim(left=0)
    axes.grid(axis="x")
    count_axis(axes.xaxis, 6 if width < WIDE else 10)
    assert isinstance(axes.figure, Figure)
    write(axes.figure, canvas, words)
    name_axes(axes, words)
    return axes.figure


def family_tree(name: str, tree: Tree) -> Sketch:
    """The ancestors of the best levels that share the first one."""
    admitted, places = tree.pedigree.admitted, tree.pedigree.places
    levels = sorted({level for line in tree.lines for level in line}, key=lambda level: (tree.generation(level), level))
    columns = ("id", "parent", "generation", "birth", "score")
    rows = [[getattr(admitted, c)[places[level]] for c in columns] + [int(level in tree.leaves)] for level in levels]
    leaves, line = texts.plural(len(tree.leaves), "level"), tree.generation(tree.deepest)
    words = Words("A family of levels", f"■ the generator’s level, ● its {leaves} among the best 100", "generation")
    told = f"{words.title}: from one level of the generator descend {leaves} of the best 100, up to generation {line}."
    return Sketch(name, told, Data((*columns, "is_leaf"), rows), lambda w: tree_figure(name, w, words, tree))


def levels_of(tree: Tree, levels: Sequence[int], metrics: dict[str, np.ndarray]) -> list[Found]:
    """Levels of a family, as they were when they were admitted; `metrics` are theirs, `[N]` each."""
    admitted = tree.pedigree.admitted
    found = []
    for n, place in enumerate(tree.pedigree.places[list(levels)]):
        id_, parent, generation, birth = (int(getattr(admitted, name)[place]) for name in WHOLE)
        measures = {name: float(values[n]) for name, values in metrics.items()}
        level, score = admitted.at(int(place)).level, float(admitted.score[place])
        found.append(Found(level, id_, parent, generation, birth, score, tree.pedigree.seed, measures))
    return found
