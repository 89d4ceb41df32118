"""Plots in rows: each row has its name above it, so that a long name needs no margin, on a phone too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tutelage.report.plots.figure import (
    GREY,
    INK,
    SMALL,
    STEPS,
    WIDE,
    Canvas,
    Words,
    legend,
    legend_rows,
    name_axes,
    share_axis,
)
from tutelage.statistics import Interval

ROW, NAME, BAR, GAP = 40, 17, 11, 10  # pixels: an interval with its name, a name, a bar, between groups of bars


@dataclass(frozen=True)
class Mark:
    """A named value with an interval around it."""

    name: str
    colour: str
    interval: Interval


@dataclass(frozen=True)
class Panel:
    """Marks that belong together, below a title; `reference` is a value to be told from."""

    title: str
    marks: Sequence[Mark]
    reference: float | None = None


def interval_figure(name: str, width: int, text: Words, panels: Sequence[Panel]) -> Figure:
    """Panels side by side where there is room, else one below the other."""
    columns = min(3, len(panels)) if width >= WIDE else 1
    rows = math.ceil(len(panels) / columns)
    tall = ROW * max(len(p.marks) for p in panels)
    heading = 24 if any(p.title for p in panels) else 0
    between = heading + 34
    canvas = Canvas(name, width, 48 + heading + rows * tall + (rows - 1) * between + 46, 8, 14, top=48 + heading)
    figure = canvas.figure(text)
    limits = _limits([mark for panel in panels for mark in panel.marks])
    for panel, cell in zip(panels, canvas.cells(rows, columns, (40, between)), strict=False):
        axes = figure.add_axes(cell)
        _frame(axes, tall, limits)
        _intervals(axes, panel, tall)
        axes.text(0, tall + 12, panel.title, transform=_pixels(axes), size=12, weight="bold", va="center")
    name_axes(figure.axes[-1] if columns == 1 else figure.axes[0], text)
    return figure


def bar_figure(name: str, width: int, text: Words, clusters: Sequence[Panel]) -> Figure:
    """Clusters of bars in columns, as many as fit, with one legend for all; error bars end where intervals do."""
    entries = {mark.name: mark.colour for cluster in clusters for mark in cluster.marks}
    rows = math.ceil(len(clusters) / max(1, width // 320))
    columns = math.ceil(len(clusters) / rows)
    each = NAME + BAR * len(entries) + GAP
    top = 54 + 16 * legend_rows(list(entries), width)
    canvas = Canvas(name, width, top + rows * each + 46, 8, 14, top=top)
    figure = canvas.figure(text)
    legend(figure, canvas, list(entries.items()), above=16 * legend_rows(list(entries), width))
    limits = _limits([mark for cluster in clusters for mark in cluster.marks])
    for n, cell in enumerate(canvas.cells(1, columns, (36, 0))):
        axes = figure.add_axes(cell)
        _frame(axes, rows * each, limits)
        _clusters(axes, clusters[n * rows : (n + 1) * rows], each)
    name_axes(figure.axes[0], text)
    return figure


def _limits(marks: Sequence[Mark]) -> tuple[float, float]:
    """From 0 to 1, or as far as the marks reach."""
    ends = [x for m in marks for x in (m.interval.low, m.interval.high, m.interval.value) if math.isfinite(x)]
    return min(0.0, *ends), max(1.0, *ends)


def _frame(axes: Axes, tall: int, limits: tuple[float, float]) -> None:
    axes.set_ylim(0, tall)
    axes.set_xlim(*limits)
    axes.set_yticks([])
    axes.grid(visible=False)
    if limits[0] >= -0.1 and limits[1] <= 1.1:
        share_axis(axes.xaxis)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=STEPS))


def _guides(axes: Axes, low: float, high: float) -> None:
    """The grid beside a row of bars; names stay clear of it."""
    left, right = axes.get_xlim()
    ticks = [x for x in axes.get_xticks() if left <= x <= right]
    axes.vlines(ticks, low, high, color=INK, alpha=0.15, linewidth=0.8, zorder=0)


def _pixels(axes: Axes):
    """Places by share of the width and by pixels of height."""
    return axes.get_yaxis_transform()


def _intervals(axes: Axes, panel: Panel, tall: int) -> None:
    for n, mark in enumerate(panel.marks):
        y, i = tall - ROW * n, mark.interval
        said = f"{mark.name}  {i.value:.2f}" + ("" if math.isnan(i.low) else f" [{i.low:.2f}, {i.high:.2f}]")
        axes.text(0, y - 12, said, transform=_pixels(axes), size=SMALL, va="center", clip_on=False)
        _guides(axes, y - 36, y - 20)
        if panel.reference is not None:
            axes.vlines(panel.reference, y - 37, y - 19, color=GREY, linewidth=1.5, zorder=1)
        axes.barh(y - 28, i.high - i.low, 10, i.low, color=mark.colour, alpha=0.4, linewidth=0)
        axes.plot([i.value, i.value], [y - 34, y - 22], color=mark.colour, linewidth=3, solid_capstyle="butt")


def _clusters(axes: Axes, clusters: Sequence[Panel], each: int) -> None:
    tall = axes.get_ylim()[1]
    for n, cluster in enumerate(clusters):
        y = tall - n * each
        axes.text(0, y - 9, cluster.title, transform=_pixels(axes), size=SMALL, va="center", clip_on=False)
        _guides(axes, y - each + GAP, y - NAME)
        for m, mark in enumerate(cluster.marks):
            middle, i = y - NAME - BAR * (m + 0.5), mark.interval
            axes.barh(middle, i.value, BAR - 2, color=mark.colour, linewidth=0)
            axes.plot([i.low, i.high], [middle, middle], color=GREY, linewidth=1.5)
            if not i.value:  # a bar of no length would look like a level that was not played
                axes.plot(0, middle, "|", color=mark.colour, markersize=BAR - 2, markeredgewidth=3, clip_on=False)
