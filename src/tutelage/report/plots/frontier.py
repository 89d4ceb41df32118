"""The expanding frontier: what students of several checkpoints make of the generations of levels."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from itertools import pairwise

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import ColorbarBase
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tutelage.env import DesignSpace
from tutelage.report import text as texts
from tutelage.report.facts.levels import Frontier, evenly
from tutelage.report.plots.figure import (
    GREY,
    SMALL,
    STEPS,
    WIDE,
    Canvas,
    Data,
    Sketch,
    Words,
    legend,
    name_axes,
    shades,
)

COLUMNS = 4
SOLVED_MAP = "cividis"  # legible to the colour-blind


def generations(name: str, design: DesignSpace, f: Frontier) -> Sketch:
    """Four generations of one line: each level, and the return and positive value loss of every checkpoint on it."""
    chosen = [f.line[i] for i in evenly(len(f.line), COLUMNS)]
    words = Words("Four generations of one level", "what students of several updates make of them")
    titles = [f"generation {f.found[n].generation}" for n in chosen]
    pictures = [design.render(f.found[n].level) for n in chosen]
    rows = (("return", f.trials.returns[:, chosen]), ("PVL", f.trials.pvl[:, chosen]))
    hues = shades(len(f.labels))

    def draw(width: int) -> Figure:
        wide = width >= WIDE
        left, gap, bar, top = 60, 28 if wide else 12, 110 if wide else 84, 68 if wide else 100
        column = (width - left - 4 - gap * (len(titles) - 1)) / len(titles)
        shown = min(column, 190.0)
        canvas = Canvas(name, width, round(top + 22 + shown + 2 * (bar + 24)), left, 4, top=top)
        figure = canvas.figure(words)
        legend(figure, canvas, list(zip(f.labels, hues, strict=True)), above=18 if wide else 50)
        y = canvas.height - top - 18 - shown
        for n, (title, picture) in enumerate(zip(titles, pictures, strict=True)):
            x = left + n * (column + gap)
            short = title if wide else title.replace("generation", "gen.")
            figure.text(x / width, (y + shown + 10) / canvas.height, short, size=SMALL, va="center")
            axes = figure.add_axes(canvas.share((x, y, shown, shown)))
            axes.imshow(picture, interpolation="none")
            axes.set_axis_off()
            for r, (label, values) in enumerate(rows):
                axes = figure.add_axes(canvas.share((x, y - (r + 1) * (bar + 24) + 14, column, float(bar))))
                _bars(axes, values[:, n], hues, label if n == 0 else "")
                axes.set_ylim(min(0.0, values.min()), 1.05 * values.max() or 1)
        return figure

    ends = "; ".join(f"{t}: {texts.listed([f'{x:.2f}' for x in rows[0][1][:, n]])}" for n, t in enumerate(titles))
    return Sketch(name, f"Returns at {texts.listed(f.labels)} on {ends}.", _data(f), draw)


def _bars(axes: Axes, values: np.ndarray, hues: Sequence[str], label: str) -> None:
    axes.bar(range(len(values)), values, 0.72, color=hues, linewidth=0)
    axes.set_xticks([])
    axes.yaxis.set_major_locator(MaxNLocator(3, steps=STEPS))
    if label:
        axes.set_ylabel(label, size=SMALL, alpha=0.7)
    else:
        axes.tick_params(labelleft=False)


def _data(f: Frontier) -> Data:
    """A row for each checkpoint and level."""
    t, metrics = f.trials, list(f.found[0].metrics)
    played = (t.returns, t.solved, t.pvl)
    rows = [
        [updates, x.id, x.generation, int(n in f.line), *(y[c, n] for y in played), *x.metrics.values()]
        for c, updates in enumerate(t.checkpoints)
        for n, x in enumerate(f.found)
    ]
    return Data(("checkpoint", "id", "generation", "in_line", "return", "solved_rate", "pvl", *metrics), rows)


def bands(name: str, f: Frontier) -> Sketch:
    """Return and positive value loss by band of generations, for every checkpoint."""
    edges = _edges([x.generation for x in f.found])
    names = [f"{low}–{high - 1}" if high - 1 > low else f"{low}" for low, high in edges]
    inside = [[n for n, x in enumerate(f.found) if low <= x.generation < high] for low, high in edges]
    played = {"return": f.trials.returns, "PVL": f.trials.pvl}
    means = {label: np.array([values[:, n].mean(axis=1) for n in inside]) for label, values in played.items()}
    words = Words("Bands of generations", f"means over {len(f.found)} levels of one family", "generation")
    hues = shades(len(f.labels))

    def draw(width: int) -> Figure:
        wide = width >= WIDE
        top = 72 if wide else 104
        canvas = Canvas(name, width, top + (240 if wide else 420) + 46, 60, 4, top=top)
        figure = canvas.figure(words)
        legend(figure, canvas, list(zip(f.labels, hues, strict=True)), above=22 if wide else 54)
        cells = canvas.cells(1, 2, (70, 0)) if wide else canvas.cells(2, 1, (0, 44))
        for (label, values), cell in zip(means.items(), cells, strict=True):
            axes = figure.add_axes(cell)
            for c, hue in enumerate(hues):
                places = np.arange(len(names)) + (c - (len(hues) - 1) / 2) * 0.8 / len(hues)
                axes.bar(places, values[:, c], 0.72 / len(hues), color=hue, linewidth=0)
            axes.set_xticks(range(len(names)), names)
            axes.yaxis.set_major_locator(MaxNLocator(4, steps=STEPS))
            name_axes(axes, Words("", "", words.x, label))
        return figure

    rows = [
        [band, updates, means["return"][b, c], means["PVL"][b, c], len(inside[b])]
        for b, band in enumerate(names)
        for c, updates in enumerate(f.trials.checkpoints)
    ]
    told = f"{words.title}: mean return and positive value loss of {texts.listed(f.labels)}, {len(names)} bands."
    return Sketch(name, told, Data(("generations", "checkpoint", "return", "pvl", "levels"), rows), draw)


def _edges(generations: Sequence[int], n: int = 4) -> list[tuple[int, int]]:
    """At most `n` bands of equal width that hold a level each."""
    last = max(generations) + 1
    cuts = np.unique(np.linspace(0, last, min(n, last) + 1).round().astype(int)).tolist()
    return [(a, b) for a, b in pairwise(cuts) if any(a <= g < b for g in generations)]


def difficulty(name: str, f: Frontier, classes: Container[str]) -> Sketch | None:
    """Solved rate over the domain's first two amounts, a panel for each checkpoint; None where it has only one."""
    amounts = [m for m in f.found[0].metrics if m not in classes][:2]
    if len(amounts) < 2:
        return None
    x, y = (np.array([level.metrics[m] for level in f.found]) for m in amounts)
    across, up = map(texts.words, amounts)
    words = Words("What each student can solve", f"{texts.plural(len(f.found), 'level')} of one family", across, up)

    def draw(width: int) -> Figure:
        panels = len(f.labels)
        columns = panels if width >= WIDE else min(2, panels)
        rows = math.ceil(panels / columns)
        canvas = Canvas(name, width, 96 + rows * 210 + (rows - 1) * 44 + 46, 48, 10, top=96)
        figure, scale = canvas.figure(words), matplotlib.colormaps[SOLVED_MAP]
        for n, (label, cell) in enumerate(zip(f.labels, canvas.cells(rows, columns, (26, 44)), strict=False)):
            axes = figure.add_axes(cell)
            axes.scatter(x, y, s=26, c=f.trials.solved[n], cmap=scale, vmin=0, vmax=1, linewidths=0.5, edgecolors=GREY)
            axes.set_title(label, size=SMALL, loc="left")
            axes.grid(axis="x")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(4, integer=True))
            axes.tick_params(labelleft=not n % columns)
            name_axes(axes, Words("", "", across if n >= panels - columns else "", "" if n % columns else up))
        _solved_bar(figure, canvas)
        return figure

    rates = "; ".join(f"{label} {np.mean(s):.0%}" for label, s in zip(f.labels, f.trials.solved, strict=True))
    return Sketch(name, f"Solved rate over {across} and {up}: {rates}.", _data(f), draw)


def _solved_bar(figure: Figure, canvas: Canvas) -> None:
    """What the colours mean, at the upper right."""
    axes = figure.add_axes(canvas.share((canvas.width - 130, canvas.height - 58, 90, 8)))
    bar = ColorbarBase(axes, cmap=matplotlib.colormaps[SOLVED_MAP], orientation="horizontal", ticks=[0, 1])
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    axes.set_xticklabels(["0%", "100%"])
    axes.set_title("solved", size=SMALL)
