"""HTML that cannot be broken by what it shows, and the pieces that pages are made of.

Every text is escaped unless it is `Markup` already. A page needs nothing but itself: no network, and no script unless
one was put in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import resources

from tutelage.page.document import digest
from tutelage.report import text
from tutelage.report.facts.students import Episode
from tutelage.report.plots.pictures import Animation, Exhibit
from tutelage.runs.evaluate import Result

_VOID = frozenset({"img", "meta", "source"})
FLAGS = {"solvable": ("no", "yes")}  # metrics of any domain that are answers

# What a page may load: its own pictures and style, and a script only if it is the very one that was put in.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Markup(str):
    """A piece of finished HTML."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """`<tag attributes>children</tag>`. An attribute that is a Python keyword ends in `_`; `_` within is a hyphen."""
    opening = tag + "".join(f' {_attribute(k)}="{escape(v)}"' for k, v in attributes.items())
    return Markup(f"<{opening}>") if tag in _VOID else Markup(f"<{opening}>{join(*children)}</{tag}>")


def join(*children: str) -> Markup:
    """Pieces one after another, texts escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in children))


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def document(title: str, *body: Markup, script: str = "") -> str:
    """A page that needs nothing but itself; what its script adds is a convenience."""
    policy = POLICY + (f"; script-src 'sha256-{digest(script)}'" if script else "")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", title),
        element("style", Markup(resource("page.css"))),
    )
    scripts = [element("script", Markup(script))] if script else []
    return "<!doctype html>\n" + element("html", head, element("body", *body, *scripts), lang="en") + "\n"


def resource(name: str) -> str:
    """A text file of this package."""
    return resources.files("tutelage.report.pages").joinpath(name).read_text("utf-8")


def lead(sentence: str) -> Markup:
    """What stands below a heading."""
    return element("p", sentence, class_="lead")


def gap(sentence: str) -> Markup:
    """What stands in the place of something that is not there."""
    return element("p", marked(sentence), class_="gap")


def marked(note: str) -> Markup:
    """What stands between backticks as code."""
    return join(*(element("code", part) if n % 2 else part for n, part in enumerate(note.split("`"))))


def facts(known: Mapping[str, str]) -> Markup:
    """Names and values, side by side."""
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in known.items()]
    return element("dl", *pairs, class_="facts")


def grid(
    exhibits: Sequence[tuple[Exhibit, Markup]], tag: str, door: Callable[[Exhibit], str | None] = lambda x: None
) -> Markup:
    """Pictures side by side; long, low ones get wider columns. `door` is the address that a picture leads to."""
    items = [element("li", element("figure", _linked(_picture(x), door(x)), said)) for x, said in exhibits]
    first = exhibits[0][0]
    return element(tag, *items, class_="grid long" if first.width > 2 * first.height else "grid")


def _linked(picture: Markup, address: str | None) -> Markup:
    return element("a", picture, href=address, title="Play in this level") if address else picture


def _picture(x: Exhibit) -> Markup:
    """The alternative text is short: what can be measured is in the caption."""
    alt = f"A level of generation {x.found.generation}"
    return element("img", src=x.picture, width=str(x.width), height=str(x.height), alt=alt)


def caption(first: str, *others: str) -> Markup:
    """Lines below a picture, the first one bold."""
    return element("figcaption", element("b", first), *(element("span", line) for line in others))


def measures(metrics: Mapping[str, float], classes: Mapping[str, Sequence[str]]) -> list[str]:
    """A level's metrics in words; `classes` has what each value of some of them means."""
    return [f"{text.words(name)} {_said(value, FLAGS.get(name, classes.get(name)))}" for name, value in metrics.items()]


def _said(value: float, meanings: Sequence[str] | None) -> str:
    return meanings[int(value)] if meanings and value in range(len(meanings)) else text.number(value)


def film(shown: Animation, results: Sequence[Result], title: str) -> Markup:
    """An episode with its outcome; a still picture for those who want nothing to move."""
    e = shown.episode
    still = element("source", srcset=shown.still, media="(prefers-reduced-motion: reduce)")
    alt = f"An episode on {e.level_name}: {_outcome(e)}"
    moving = element("img", src=shown.moving, width=str(shown.width), height=str(shown.height), alt=alt)
    said = caption(title, _outcome(e), *_usual(results, e))
    kind = "film long" if shown.width > 2 * shown.height else "film"
    return element("figure", element("picture", still, moving), said, class_=kind)


def _outcome(e: Episode) -> str:
    steps = text.plural(e.steps, "step")
    return f"solved in {steps}" if e.solved else f"not solved within {steps}"


def _usual(results: Sequence[Result], e: Episode) -> list[str]:
    """How this student fares on the level in general, since the episode shown was chosen."""
    rates = [r.solved_rate for r in results if (r.level, r.seed) == (e.level_name, e.seed)]
    return [f"seed {e.seed}, which solves {text.percent(rate)} of its episodes here" for rate in rates[:1]]
