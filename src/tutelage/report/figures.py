"""The figures of one run's page: how it learned, and what became of its levels."""

from __future__ import annotations

from collections.abc import Sequence

from tutelage.report.curves import Rows, curve, seeds_of, updates_per_point
from tutelage.report.drawing import BLUE, GREEN, PURPLE, VERMILLION, Canvas, Words, inline
from tutelage.report.lines import Line, Scale, line_figure, told
from tutelage.report.markup import Markup
from tutelage.report.text import number, percent, sentence_case, words

SOLVED = (
    ("replay/solved", "replayed", BLUE),
    ("explore/solved", "new", VERMILLION),
    ("edit/solved", "edited", GREEN),
    ("eval/solved", "validation", PURPLE),
)


def learning_curves(rows: Rows, *, width: int = 1080) -> Markup | None:
    """Solved rate on replayed, new, edited and validation levels over student updates; None without such metrics."""
    lines = _lines(rows, SOLVED)
    if not lines:
        return None
    text = Words(
        "Solved rate by kind of level",
        spread(rows),
        f"student updates (a point for every {updates_per_point(rows):,})",
        "episodes solved",
    )
    canvas = Canvas(f"learning-{width}", width, 400 if width > 600 else 300, left=60, right=116)
    return _plot(canvas, text, lines, Scale(percent, share=True))


def complexity_curves(rows: Rows, *, width: int = 260) -> list[Markup]:
    """A small figure for each metric of the buffer's levels that the domain describes, and for their generation."""
    replays = curve(rows, "replay/solved") is not None
    figures = []
    for n, name in enumerate(described(rows)):
        kinds = ((f"buffer/{name}", "buffer", BLUE), (f"buffer/{name}_replay", "replayed", VERMILLION))
        if lines := _lines(rows, kinds if replays else kinds[:1]):
            text = Words(sentence_case(words(name)), spread(rows, brief=True), "student updates")
            canvas = Canvas(f"complexity-{n}", width, round(0.8 * width), left=36, right=66)
            figures.append(_plot(canvas, text, lines, Scale(number)))
    return figures


def described(rows: Rows) -> list[str]:
    """The measures of levels that were logged: each is there twice, plain and by the odds of being replayed."""
    keys = dict.fromkeys(key for row in rows for key in row)
    names = [k.removeprefix("buffer/") for k in keys if k.startswith("buffer/") and f"{k}_replay" in keys]
    return sorted(names, key=lambda name: name == "generation")


def spread(rows: Rows, *, brief: bool = False) -> str:
    """What a line and its band are."""
    seeds = seeds_of(rows)
    if seeds == 1:
        return "mean of the levels" if brief else "one seed"
    return f"mean, band ± s.e. of {seeds} seeds" if brief else f"mean of {seeds} seeds, band: ± 1 standard error"


def _lines(rows: Rows, kinds: Sequence[tuple[str, str, str]]) -> list[Line]:
    found = [(label, colour, curve(rows, name)) for name, label, colour in kinds]
    return [Line.of(label, colour, c) for label, colour, c in found if c is not None]


def _plot(canvas: Canvas, text: Words, lines: Sequence[Line], scale: Scale) -> Markup:
    return inline(canvas.name, lambda: line_figure(canvas, text, lines, scale), told(text, lines, scale))
