"""Pieces of HTML that pages are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tutelage.report import text
from tutelage.report.animation import Animation, Episode
from tutelage.report.markup import Markup, element
from tutelage.report.pictures import Exhibit
from tutelage.runs.evaluate import Result


class Gap(Exception):
    """A part of the page that cannot be shown. Its text is a sentence for the reader that says why."""


def lead(sentence: str) -> Markup:
    """What stands below a heading."""
    return element("p", sentence, class_="lead")


def gap(sentence: str) -> Markup:
    """What stands in the place of something that is not there."""
    return element("p", sentence, class_="gap")


def facts(known: Mapping[str, str]) -> Markup:
    """Names and values, side by side."""
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in known.items()]
    return element("dl", *pairs, class_="facts")


def grid(exhibits: Sequence[tuple[Exhibit, Markup]], tag: str) -> Markup:
    """Pictures side by side; long, low ones get wider columns."""
    items = [element("li", element("figure", _picture(x), said)) for x, said in exhibits]
    first = exhibits[0][0]
    return element(tag, *items, class_="grid long" if first.width > 2 * first.height else "grid")


def _picture(x: Exhibit) -> Markup:
    """The alternative text is short: what can be measured is in the caption."""
    alt = f"A level of generation {x.found.generation}"
    return element("img", src=x.picture, width=str(x.width), height=str(x.height), alt=alt)


def caption(first: str, *others: str) -> Markup:
    """Lines below a picture, the first one bold."""
    return element("figcaption", element("b", first), *(element("span", line) for line in others))


FLAGS = frozenset({"solvable"})  # metrics that mean yes or no; others are amounts, even where all are 0 or 1


def measures(metrics: Mapping[str, float]) -> list[str]:
    """A level's metrics in words."""
    return [f"{text.words(name)} {_said(value, name in FLAGS)}" for name, value in metrics.items()]


def _said(value: float, flag: bool) -> str:
    return ("yes" if value else "no") if flag and value in (0, 1) else text.number(value)


def with_error(mean: str, error: str) -> tuple[Markup, ...]:
    """A number, and its error in small type where there is one."""
    return (element("span", mean), Markup(" "), element("small", error)) if error else (element("span", mean),)


def film(shown: Animation, results: Sequence[Result], *title: str) -> Markup:
    """An episode with its outcome; a still picture for those who want nothing to move."""
    e = shown.episode
    still = element("source", srcset=shown.still, media="(prefers-reduced-motion: reduce)")
    alt = f"An episode on {e.level_name}: {_outcome(e)}"
    moving = element("img", src=shown.moving, width=str(shown.width), height=str(shown.height), alt=alt)
    said = caption(*(title or (e.level_name,)), _outcome(e), *_usual(results, e))
    kind = "film long" if shown.width > 2 * shown.height else "film"
    return element("figure", element("picture", still, moving), said, class_=kind)


def _outcome(e: Episode) -> str:
    steps = text.plural(e.steps, "step")
    return f"solved in {steps}" if e.solved else f"not solved within {steps}"


def _usual(results: Sequence[Result], e: Episode) -> list[str]:
    """How this student fares on the level in general, since the episode shown was chosen."""
    rates = [r.solved_rate for r in results if (r.level, r.seed) == (e.level_name, e.seed)]
    return [f"seed {e.seed}, which solves {text.percent(rate)} of its episodes here" for rate in rates[:1]]
