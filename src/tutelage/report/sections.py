"""The parts of a run's page, each a function from the run's story to HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tutelage.errors import UserError
from tutelage.report import figures, pictures, provenance, text
from tutelage.report.animation import Animation, Episode, animation
from tutelage.report.markup import Markup, element, join
from tutelage.report.pictures import Exhibit
from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs.browse import Found
from tutelage.runs.evaluate import Result, Summary, by_level, overall
from tutelage.runs.run import Run

WIDE, NARROW = 1080, 360  # pixels of the two versions of a figure; the page shows the one that fits


class Gap(Exception):
    """A part of the page that cannot be shown. Its text is a sentence for the reader that says why."""


@dataclass(frozen=True)
class Story:
    """What the page is about."""

    run: Run
    results: tuple[Result, ...]
    suite_name: str
    seconds: float | None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The run's metrics."""
        return self.run.metrics()

    @cached_property
    def found(self) -> list[list[Found]]:
        """Each seed's levels of highest score."""
        try:
            found = pictures.best_of_each_seed(self.run)
        except UserError as error:
            raise Gap("There is no whole checkpoint, so there is no buffer to take levels from.") from error
        if not any(found):
            raise Gap("The buffer holds no levels yet.")
        return found

    @cached_property
    def flags(self) -> set[str]:
        """Metrics that are 0 or 1 on every level found: yes or no."""
        metrics = [f.metrics for levels in self.found for f in levels]
        return {name for name in metrics[0] if all(m[name] in (0, 1) for m in metrics)}

    def measures(self, f: Found) -> list[str]:
        """A level's metrics, in words."""
        return [f"{text.words(name)} {self._said(name, value)}" for name, value in f.metrics.items()]

    def _said(self, name: str, value: float) -> str:
        is_flag = name in self.flags and value in (0, 1)
        return ("yes" if value else "no") if is_flag else text.number(value)

    @property
    def title(self) -> str:
        """Method and env."""
        return f"{type(self.run.config.method).__name__} on {self.run.config.env.name}"

    @property
    def updates(self) -> int:
        """Student updates done, as far as the run's files tell."""
        return max((0, *(row["updates"] for row in self.rows[-1:]), *self.run.checkpoints))

    @property
    def env_steps(self) -> int:
        """Of all seeds together, at the last log point."""
        return sum(row["env_steps"] for row in self.rows if row["updates"] == self.rows[-1]["updates"])


def _learning(story: Story) -> Markup:
    wide, narrow = (figures.learning_curves(story.rows, width=width) for width in (WIDE, NARROW))
    if wide is None or narrow is None:
        raise Gap("No solved rates were logged.")
    lead = "How often the student succeeds on the levels it meets in training"
    validated = any(row.get("eval/solved") is not None for row in story.rows)
    lead += ", and on validation levels, which it never learns from." if validated else "."
    return join(_lead(lead), element("div", wide, class_="wide"), element("div", narrow, class_="narrow"))


def _complexity(story: Story) -> Markup:
    panels = figures.complexity_curves(story.rows)
    if not panels:
        raise Gap("No measures of the buffer’s levels were logged.")
    lead = "The levels in the buffer while the student learned."
    if any(row.get("replay/solved") is not None for row in story.rows):
        lead += " “Replayed” weighs each by its odds of being replayed."
    return join(_lead(lead), element("div", *panels, class_="panels"))


def _gallery(story: Story) -> Markup:
    exhibits = _drawn(lambda: pictures.gallery(story.run.config.env.design(), story.found))
    lead = "The levels of highest score at the end, each seed’s best ones. "
    if getattr(story.run.config.method, "score", None) == "learnability":
        lead += "The score is learnability: highest where the student succeeds every other time."
    else:
        lead += "The score estimates the student’s regret: how far it stays behind what can be reached."
    return join(_lead(lead), _grid([(x, _score_caption(story, x.found)) for x in exhibits], "ul"))


def _ancestry(story: Story) -> Markup:
    line = _drawn(lambda: pictures.ancestry(story.run, story.found))
    if not line:
        raise Gap("None of the levels of highest score has ancestors on record.")
    last = line[-1].found
    generations = text.plural(last.generation, "generation")
    lead = f"From a level of the generator to one of the highest scores, in {generations} of edits, "
    lead += f"each kept for its score (level {last.id:,} of seed {last.seed})."
    return join(_lead(lead), _grid([(x, _birth_caption(story, x.found)) for x in line], "ol"))


def _drawn(draw: Callable[[], list[Exhibit]]) -> list[Exhibit]:
    try:
        return draw()
    except NotImplementedError as error:
        raise Gap("This env does not draw its levels.") from error


def _grid(exhibits: Sequence[tuple[Exhibit, Markup]], tag: str) -> Markup:
    """Pictures side by side; long, low ones get wider columns."""
    items = [element("li", element("figure", _picture(x), caption)) for x, caption in exhibits]
    first = exhibits[0][0]
    return element(tag, *items, class_="grid long" if first.width > 2 * first.height else "grid")


def _picture(x: Exhibit) -> Markup:
    """The alternative text is short: what can be measured is in the caption."""
    alt = f"A level of generation {x.found.generation}"
    return element("img", src=x.picture, width=str(x.width), height=str(x.height), alt=alt)


def _score_caption(story: Story, f: Found) -> Markup:
    return _caption(f"score {text.number(f.score)}", f"generation {f.generation}, seed {f.seed}", *story.measures(f))


def _birth_caption(story: Story, f: Found) -> Markup:
    return _caption(f"generation {f.generation}", f"update {f.birth:,}", *story.measures(f))


def _caption(first: str, *others: str) -> Markup:
    return element("figcaption", element("b", first), *(element("span", line) for line in others))


def _animation(story: Story) -> Markup:
    shown = _filmed(story)
    still = element("source", srcset=shown.still, media="(prefers-reduced-motion: reduce)")
    alt = f"An episode on {shown.episode.level_name}: {_outcome(shown.episode)}"
    moving = element("img", src=shown.moving, width=str(shown.width), height=str(shown.height), alt=alt)
    caption = _caption(shown.episode.level_name, _outcome(shown.episode), *_usual(story, shown.episode))
    kind = "film long" if shown.width > 2 * shown.height else "film"
    lead = "A student on a held-out level, its actions drawn from its policy."
    return join(_lead(lead), element("figure", element("picture", still, moving), caption, class_=kind))


def _filmed(story: Story) -> Animation:
    suite = story.run.config.env.suites().get(story.suite_name)
    if not suite:
        raise Gap(f"This env has no held-out levels called {story.suite_name}.")
    try:
        return animation(story.run, suite, story.results)
    except NotImplementedError as error:
        raise Gap("This env does not draw its episodes.") from error
    except UserError as error:
        raise Gap("There is no whole checkpoint, so there is no student to play.") from error


def _outcome(e: Episode) -> str:
    steps = text.plural(e.steps, "step")
    return f"solved in {steps}" if e.solved else f"not solved within {steps}"


def _usual(story: Story, e: Episode) -> list[str]:
    """How this student fares on the level in general, since the episode shown was chosen."""
    rates = [r.solved_rate for r in story.results if (r.level, r.seed) == (e.level_name, e.seed)]
    return [f"seed {e.seed}, which solves {text.percent(rate)} of its episodes here" for rate in rates[:1]]


def _table(story: Story) -> Markup:
    if not story.results:
        raise Gap("There are no results on held-out levels.")
    titles = ("level", "solved rate", "return", "length in steps")
    head = element("thead", element("tr", *(element("th", t, scope="col") for t in titles)))
    body = element("tbody", *(_row(name, row) for name, row in by_level(story.results).items()))
    foot = element("tfoot", _row("mean", overall(story.results)))
    lead = f"Zero-shot: the levels of the suite {story.suite_name} play no part in training. "
    lead += "Mean ± standard error over seeds." if len({r.seed for r in story.results}) > 1 else "One seed."
    return join(_lead(lead), element("div", element("table", head, body, foot), class_="scroll"))


def _row(name: str, row: dict[str, Summary]) -> Markup:
    solved = row["solved_rate"]
    bar = element("span", element("i", style=f"width:{100 * min(1.0, max(0.0, solved.mean)):.1f}%"), class_="bar")
    cells = [element("td", bar, *_with_error(text.percent(solved.mean), text.percent_error(solved)))]
    for key, digits in (("mean_return", 2), ("mean_length", 0)):
        cells.append(element("td", *_with_error(*text.plus_minus(row[key], digits))))
    return element("tr", element("th", name, scope="row"), *cells)


def _with_error(mean: str, error: str) -> tuple[Markup, ...]:
    return (element("span", mean), Markup(" "), element("small", error)) if error else (element("span", mean),)


def _making(story: Story) -> Markup:
    config = story.run.config
    again = provenance.command(config)
    how = element("pre", element("code", again)) if again else _lead("Trained from Python, not from a preset.")
    plain = json.dumps(configs.to_json(config, presets.method_name(config.method)), indent=2)
    details = element("details", element("summary", "The whole configuration"), element("pre", element("code", plain)))
    with_ = ", ".join(f"{name} {version}" for name, version in provenance.versions().items())
    return join(how, details, element("p", f"This page was written with {with_}.", class_="note"))


def _lead(sentence: str) -> Markup:
    return element("p", sentence, class_="lead")


SECTIONS: tuple[tuple[str, Callable[[Story], Markup]], ...] = (
    ("What the student learned", _learning),
    ("What became of the levels", _complexity),
    ("Levels of highest regret", _gallery),
    ("The ancestry of a level", _ancestry),
    ("The student at work", _animation),
    ("Held-out levels", _table),
    ("How it was made", _making),
)
