"""Figures that compare methods: how they learn, what levels they make, how they fare on levels they never saw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tutelage.errors import UserError
from tutelage.report import text as texts
from tutelage.report.facts.comparison import Comparison
from tutelage.report.facts.levels import Findings
from tutelage.report.facts.runs import Row
from tutelage.report.plots.bars import Mark, Panel, bar_figure, interval_figure
from tutelage.report.plots.figure import BLUE, GREEN, NARROW, PALETTE, PANEL, PURPLE, VERMILLION, Data, Sketch, Words
from tutelage.report.plots.lines import Curve, Line, Scale, curve, line_sketch
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

MOST_BARS = 100  # levels; where there are more, the table has them
DASHES = ("-", "--", ":")  # for the first, second and third method of a colour
TINTS = ("", "90", "48")  # opacity, in the same way
SHARE = Scale(texts.percent, share=True)
SOLVED = (
    ("replay/solved", "replayed", BLUE),
    ("explore/solved", "new", VERMILLION),
    ("edit/solved", "edited", GREEN),
    ("eval/solved", "validation", PURPLE),
)


def colours(c: Comparison) -> dict[str, str]:
    """A colour for each method, the same in all figures."""
    return {group.label: PALETTE[n % len(PALETTE)] for n, group in enumerate(c.groups)}


def _dashes(c: Comparison) -> dict[str, str]:
    """How the line of each method is drawn: those of one colour differ."""
    return {group.label: DASHES[n // len(PALETTE) % len(DASHES)] for n, group in enumerate(c.groups)}


def _tints(c: Comparison) -> dict[str, str]:
    """How the bars of each method are filled: those of one colour differ."""
    full = colours(c)
    return {group.label: full[group.label] + TINTS[n // len(PALETTE) % len(TINTS)] for n, group in enumerate(c.groups)}


def learning(c: Comparison) -> list[Sketch]:
    """Solved rates over student updates: of one method by kind of level, of several on validation and on training."""
    if len(c.groups) == 1:
        words = Words("Solved rate by kind of level", _spread(c.groups[0].seeds), "student updates", "episodes solved")
        lines = _kinds_of_lines(c.groups[0].rows, SOLVED)
        return [line_sketch(f"{c.slug}-learning", words, lines, SHARE)] if lines else []
    kinds = {
        "validation": ("Validation levels, never trained on", ("eval/solved",)),
        "training": ("Levels trained on", ("replay/solved", "explore/solved")),
    }
    found = []
    for name, (title, keys) in kinds.items():
        words = Words(title, "mean over seeds, band: ± 1 standard error", "student updates", "episodes solved")
        if lines := _method_lines(c, keys):
            found.append(line_sketch(f"{c.slug}-{name}", words, lines, SHARE))
    return found


def complexity(c: Comparison) -> list[Sketch]:
    """Each measure of the buffer's levels over student updates: of one method plain and by the odds of being replayed.

    Several methods are compared by the latter, since these are the levels that students train on.
    """
    rows, found, alone = [row for group in c.groups for row in group.rows], [], len(c.groups) == 1
    for name in _measured(rows):
        both = ((f"buffer/{name}", "buffer", BLUE), (f"buffer/{name}_replay", "replayed", VERMILLION))
        kinds = both if curve(rows, "replay/solved") is not None else both[:1]
        if lines := _kinds_of_lines(rows, kinds) if alone else _method_lines(c, [both[1][0]]):
            words = Words(
                texts.sentence_case(texts.words(name)), _spread(c.groups[0].seeds if alone else 2, brief=True)
            )
            words = replace(words, x="student updates")
            found.append(
                line_sketch(f"{c.slug}-complexity-{texts.slug(name)}", words, lines, Scale(texts.number), (PANEL,))
            )
    return found


def _measured(rows: Sequence[Row]) -> list[str]:
    """The measures of levels that were logged: each is there twice, plain and by the odds of being replayed."""
    keys = dict.fromkeys(key for row in rows for key in row)
    names = [k.removeprefix("buffer/") for k in keys if k.startswith("buffer/") and f"{k}_replay" in keys]
    return sorted(names, key=lambda name: name == "generation")


def _spread(seeds: int, *, brief: bool = False) -> str:
    """What a line and its band are."""
    if seeds == 1:
        return "mean of the levels" if brief else "one seed"
    return "mean over seeds, band ± s.e." if brief else f"mean of {seeds} seeds, band: ± 1 standard error"


def _kinds_of_lines(rows: Sequence[Row], kinds: Sequence[tuple[str, str, str]]) -> list[Line]:
    found = [(label, colour, curve(rows, name)) for name, label, colour in kinds]
    return [Line.of(label, colour, c) for label, colour, c in found if c is not None]


def _method_lines(c: Comparison, keys: Sequence[str]) -> list[Line]:
    """A line for each method, of the first of the metrics that it logged."""
    found = []
    for group in c.groups:
        curves = (curve(group.rows, key) for key in keys)
        if (first := next((x for x in curves if x is not None), None)) is not None:
            found.append(Line.of(group.label, colours(c)[group.label], first, _dashes(c)[group.label]))
    return found


def concentration(c: Comparison, findings: Sequence[Findings]) -> Sketch | None:
    """How much of the best levels goes back to ten levels of the generator, over student updates."""
    lines = []
    for f in findings:
        try:
            found = f.concentrations
        except UserError:
            continue
        if found:
            values = [Summary.of(shares) for shares in found.values()]
            course = Curve(np.array([*found], float), *(np.array(x) for x in zip(*values, strict=True)))
            lines.append(Line.of(f.group.label, colours(c)[f.group.label], course, _dashes(c)[f.group.label]))
    words = Words("Concentration", "of the best 100, those from ten ancestors", "student updates", "share of levels")
    return line_sketch(f"{c.slug}-concentration", words, lines, SHARE) if lines else None


AGGREGATES = {
    "IQM, more is better": iqm,
    "Mean, more is better": mean,
    "Optimality gap, less is better": optimality_gap,
}


def aggregates(c: Comparison) -> Sketch | None:
    """Interquartile mean, mean and optimality gap of each method, with intervals."""
    if not c.common:
        return None
    panels = [
        Panel(title, [Mark(g.label, colours(c)[g.label], estimate(statistic, c.normalised(g))) for g in c.evaluated])
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


def improvement(c: Comparison) -> Sketch | None:
    """How probably the leading method beats each other one on a level; None if there is no other."""
    best = c.leader
    others = [g for g in c.evaluated if g is not best]
    if best is None or not others:
        return None
    ours = c.normalised(best)
    marks = [
        Mark(f"over {g.label}", colours(c)[g.label], estimate(probability_of_improvement, ours, c.normalised(g)))
        for g in others
    ]
    words = Words("Probability of improvement", f"of {best.label} over each other method", "with 95% intervals")
    rows = [[best.label, m.name.removeprefix("over "), *_ends(m.interval)] for m in marks]
    said = "; ".join(f"{m.name} {m.interval.value:.2f}" for m in marks)
    name = f"{c.slug}-improvement"
    data = Data(("method", "over", "probability", "low", "high"), rows)
    panels = [Panel("", marks, reference=0.5)]
    alternative = f"{words.title} of {best.label}: {said}."
    return Sketch(name, alternative, data, lambda w: interval_figure(name, w, words, panels), (520, NARROW))


def profile(c: Comparison) -> Sketch | None:
    """The share of run × level scores above each threshold."""
    if not c.common:
        return None
    thresholds, lines = np.linspace(0, 0.99, 100), []  # no score is above 1
    above = partial(performance_profile, thresholds=thresholds)
    for group in c.evaluated:
        scores = c.normalised(group)
        share = above(scores)
        ends = bounds(above, scores) if len(scores) > 1 else (share, share)
        lines.append(Line(group.label, colours(c)[group.label], thresholds, share, *ends, _dashes(c)[group.label]))
    words = Words("Performance profile", _bars_are(c, "bands"), "score τ", "share of scores above τ")
    return line_sketch(f"{c.slug}-profile", words, lines, Scale(texts.percent, share=True, share_x=True, ends=False))


def level_bars(c: Comparison) -> Sketch | None:
    """Every method on every level, mean ± standard error."""
    if not c.evaluated or len(c.levels) > MOST_BARS:
        return None
    hues, measure = _tints(c), c.measure
    clusters, rows = [], []
    for n, level in enumerate(c.levels):
        marks = []
        for group in c.evaluated:
            raw = group.scores(measure.of, c.levels)[:, n]
            found = _mean_and_error(raw[np.isfinite(raw)])
            rows.append([level, group.label, found.value, found.high - found.value])
            scaled = measure.normalised(np.array([found.value, found.low, found.high]))
            marks.append(Mark(group.label, hues[group.label], Interval(*scaled.tolist())))
        clusters.append(Panel(level, marks))
    lines = "mean over seeds, lines: ± 1 standard error" if c.repeated else "one seed"
    words = Words("Held-out levels", lines, _score(c))
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
    how = f"{what}: 95% intervals, stratified bootstrap" if c.repeated else "one seed, which tells no interval"
    return f"{texts.plural(len(c.common), 'level')}; {how}"
