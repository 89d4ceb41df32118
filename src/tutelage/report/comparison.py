"""Figures that compare methods: how they learn, what levels they make, how they fare on levels they never saw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from tutelage.report import text as texts
from tutelage.report.bars import Cluster, Mark, Panel, bar_figure, interval_figure
from tutelage.report.curves import curve
from tutelage.report.data import Data
from tutelage.report.drawing import PALETTE, WIDE, Canvas, Sketch, Words
from tutelage.report.figures import described
from tutelage.report.gather import Comparison, Group
from tutelage.report.lines import Line, Scale, end_labels, label_height, label_margin, line_figure, told
from tutelage.statistics import (
    Interval,
    Statistic,
    Summary,
    bounds,
    interval,
    iqm,
    mean,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
)

PANEL = 330  # pixels of a small figure


DASHES = ("-", "--", ":")  # for the first, second and third method of a colour
TINTS = ("", "90", "48")  # opacity, in the same way


def colours(c: Comparison) -> dict[str, str]:
    """A colour for each method, the same in all figures."""
    return {group.label: PALETTE[n % len(PALETTE)] for n, group in enumerate(c.groups)}


def dashes(c: Comparison) -> dict[str, str]:
    """How the line of each method is drawn: those of one colour differ."""
    return {group.label: DASHES[n // len(PALETTE) % len(DASHES)] for n, group in enumerate(c.groups)}


def _tints(c: Comparison) -> dict[str, str]:
    """How the bars of each method are filled: those of one colour differ."""
    full = colours(c)
    return {group.label: full[group.label] + TINTS[n // len(PALETTE) % len(TINTS)] for n, group in enumerate(c.groups)}


def learning(c: Comparison) -> list[Sketch]:
    """Solved rates over student updates, on validation levels and on those the students trained on."""
    kinds = {
        "validation": ("Validation levels, never trained on", ("eval/solved",)),
        "training": ("Levels trained on", ("replay/solved", "explore/solved")),
    }
    found = []
    for name, (title, keys) in kinds.items():
        words = Words(title, "mean over seeds, band: ± 1 standard error", "student updates", "episodes solved")
        lines = _method_lines(c, keys)
        if lines:
            found.append(line_sketch(f"{c.slug}-{name}", words, lines, Scale(texts.percent, share=True)))
    return found


def complexity(c: Comparison) -> list[Sketch]:
    """Each measure of the levels the students were trained on, over student updates."""
    found = []
    for name in described([row for group in c.groups for row in group.rows[:1]]):
        lines = _method_lines(c, (f"buffer/{name}_replay",))
        if lines:
            words = Words(texts.sentence_case(texts.words(name)), "mean over seeds, band ± s.e.", "student updates")
            sketch = line_sketch(f"{c.slug}-complexity-{texts.slug(name)}", words, lines, Scale(texts.number), (PANEL,))
            found.append(sketch)
    return found


def line_sketch(
    name: str, words: Words, lines: Sequence[Line], scale: Scale, widths: tuple[int, ...] = (WIDE, 360)
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


def _method_lines(c: Comparison, keys: Sequence[str]) -> list[Line]:
    """A line for each method, of the first of the metrics that it logged."""
    found = []
    for group in c.groups:
        curves = (curve(group.rows, key) for key in keys)
        first = next((x for x in curves if x is not None), None)
        if first is not None:
            found.append(Line.of(group.label, colours(c)[group.label], first, dashes(c)[group.label]))
    return found


def normalised(c: Comparison, group: Group) -> np.ndarray:
    """Scores `[seeds, levels]` between 0 and 1, on the levels that every seed played."""
    return c.measure.normalised(group.scores(c.measure, c.common))


AGGREGATES = {
    "IQM, more is better": iqm,
    "Mean, more is better": mean,
    "Optimality gap, less is better": optimality_gap,
}


def aggregates(c: Comparison) -> Sketch | None:
    """Interquartile mean, mean and optimality gap of each method, with intervals."""
    if not c.common:
        return None
    hues = colours(c)
    panels = [
        Panel(title, [Mark(g.label, hues[g.label], estimate(statistic, normalised(c, g))) for g in c.evaluated])
        for title, statistic in AGGREGATES.items()
    ]
    rows = [[p.title.split(",")[0], m.name, *_ends(m.interval)] for p in panels for m in p.marks]
    words = Words("Aggregate over held-out levels", _bars_are(c), _score(c))
    said = "; ".join(f"{kind} of {name} {value:.2f}" for kind, name, value, *_ in rows)
    name = f"{c.slug}-aggregate"
    data = Data(("statistic", "method", "value", "low", "high"), rows)
    return Sketch(name, f"{words.title}: {said}.", data, lambda w: interval_figure(name, w, words, panels))


def estimate(statistic: Statistic, scores: np.ndarray, *others: np.ndarray) -> Interval:
    """With its interval, unless there are too few seeds to tell one."""
    if min(len(x) for x in (scores, *others)) < 2:
        return Interval(float(statistic(scores, *others)), math.nan, math.nan)
    return interval(statistic, scores, *others)


def leader(c: Comparison) -> Group | None:
    """The method of the highest mean."""
    return max(c.evaluated, key=lambda g: float(mean(normalised(c, g))), default=None) if c.common else None


def improvement(c: Comparison) -> Sketch | None:
    """How probably the leading method beats each other one on a level; None if there is no other."""
    best = leader(c)
    others = [g for g in c.evaluated if g is not best]
    if best is None or not others:
        return None
    ours = normalised(c, best)
    marks = [
        Mark(f"over {g.label}", colours(c)[g.label], estimate(probability_of_improvement, ours, normalised(c, g)))
        for g in others
    ]
    words = Words("Probability of improvement", f"of {best.label} over each other method", "with 95% intervals")
    rows = [[best.label, m.name.removeprefix("over "), *_ends(m.interval)] for m in marks]
    said = "; ".join(f"{m.name} {m.interval.value:.2f}" for m in marks)
    name = f"{c.slug}-improvement"
    data = Data(("method", "over", "probability", "low", "high"), rows)
    panels = [Panel("", marks, reference=0.5)]
    alternative = f"{words.title} of {best.label}: {said}."
    return Sketch(name, alternative, data, lambda w: interval_figure(name, w, words, panels), (520, 360))


def profile(c: Comparison) -> Sketch | None:
    """The share of run × level scores above each threshold."""
    if not c.common:
        return None
    thresholds = np.linspace(0, 0.99, 100)  # no score is above 1
    lines = []
    for group in c.evaluated:
        scores = normalised(c, group)
        share = performance_profile(scores, thresholds)
        ends = (
            bounds(partial(performance_profile, thresholds=thresholds), scores) if len(scores) > 1 else (share, share)
        )
        lines.append(Line(group.label, colours(c)[group.label], thresholds, share, *ends, dashes(c)[group.label]))
    words = Words("Performance profile", _bars_are(c, "bands"), "score τ", "share of scores above τ")
    return line_sketch(f"{c.slug}-profile", words, lines, Scale(texts.percent, share=True, share_x=True, ends=False))


def level_bars(c: Comparison) -> Sketch | None:
    """Every method on every level, mean ± standard error."""
    if not c.evaluated:
        return None
    hues, measure = _tints(c), c.measure
    clusters, rows = [], []
    for n, level in enumerate(c.levels):
        marks = []
        for group in c.evaluated:
            raw = group.scores(measure, c.levels)[:, n]
            found = _mean_and_error(raw[np.isfinite(raw)])
            rows.append([level, group.label, found.value, found.high - found.value])
            scaled = measure.normalised(np.array([found.value, found.low, found.high]))
            marks.append(Mark(group.label, hues[group.label], Interval(*scaled.tolist())))
        clusters.append(Cluster(level, marks))
    words = Words("Held-out levels", "mean over seeds, lines: ± 1 standard error", _score(c))
    name = f"{c.slug}-levels"
    said = (
        f"{words.title}: {len(c.levels)} levels, {texts.listed([g.label for g in c.evaluated])}; numbers in the table."
    )
    data = Data(("level", "method", measure.name.replace(" ", "_"), "standard_error"), rows)
    return Sketch(name, said, data, lambda w: bar_figure(name, w, words, clusters))


def _mean_and_error(values: np.ndarray) -> Interval:
    if not len(values):
        return Interval(math.nan, math.nan, math.nan)
    s = Summary.of(values.tolist())
    return Interval(s.mean, s.mean - s.error, s.mean + s.error)


def _ends(i: Interval) -> tuple[float, float, float]:
    return i.value, i.low, i.high


def _score(c: Comparison) -> str:
    measure = c.measure
    scaled = (measure.zero, measure.one) != (0.0, 1.0)
    return f"{measure.name} over [{measure.zero:g}, {measure.one:g}]" if scaled else measure.name


def _bars_are(c: Comparison, what: str = "bars") -> str:
    return f"{texts.plural(len(c.common), 'level')}; {what}: 95% intervals, stratified bootstrap"
